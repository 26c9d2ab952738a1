/**
 * What one failed attempt proves (S5). Only two things prove that nothing was applied: the handler says so
 * (`ActionFailure`), or the network says that no connection was ever made. Everything else is an unknown outcome.
 */
import type { Failure } from '../task/failure.ts';
import type { JsonObject } from '../task/json.ts';
import { canonicalText, tryExactJson } from './canonical.ts';
import { ActionFailure } from './handlers.ts';
import { LIMITS } from './limits.ts';
import { withoutCredentials } from './redact.ts';
import { keptText } from './text.ts';

/** Errors of Node and undici after which no byte of a request can have left. */
const NOTHING_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN']);

/** How many causes deep an error is believed; more is a cycle or noise. */
const CAUSES_MAX = 8;

/**
 * The failure that `error`, as thrown by a handler, stands for. Never throws. `ActionFailure` is taken as declared;
 * refused connections and failed name look-ups (also as undici's `cause` and as an AggregateError of only such) are
 * `notApplied`; all else is `unknown`. Messages are cut to 2,000 characters, after `clean` and `withoutCredentials` took
 * out what must not be kept, and hold no stack; details beyond 16 KiB are left out.
 *
 * It sees one error and not the calls before it: a handler that makes several calls, or lets `fetch` follow redirects,
 * must catch what fails after its first call and throw an error of its own, which is then an unknown outcome.
 */
export function classifyFailure(error: unknown, clean: (text: string) => string = asItIs): Failure {
  try {
    return bounded(declaredBy(error), clean);
  } catch {
    // A Proxy, a getter or a toString that throws itself: what such an error says proves nothing.
    return { kind: 'unknown', code: 'outcome_unknown', message: 'a handler threw what can not be read' };
  }
}

const asItIs = (text: string): string => text;

function declaredBy(error: unknown): Failure {
  if (isActionFailure(error)) return error.failure;
  const message = messageOf(error);
  return provesNothingSent(error, 0)
    ? { kind: 'notApplied', code: 'attempt_failed', message }
    : { kind: 'unknown', code: 'outcome_unknown', message };
}

/**
 * The failure that an HTTP response stands for, for handlers that call HTTP targets: `throw new ActionFailure(fetchFailure(response))`.
 * Null for 1xx to 3xx.
 *
 * 429 and 503 with a valid `Retry-After` (seconds or an HTTP date) are `rateLimited`: the target said "later" itself.
 * 400, 401, 403, 404, 409 and 422 are `permanent`. Everything else is `unknown`, 502, 503 and 504 without `Retry-After`
 * above all: a proxy may have made them after the target acted. `nowMs` is the clock an HTTP date is measured against.
 */
export function fetchFailure(
  response: { status: number; headers: { get(name: string): string | null } },
  nowMs: number = Date.now(),
): Failure | null {
  const { status } = response;
  if (status < 400) return null;
  const message = `the target answered HTTP ${status}`;
  const details = { status };
  const retryAfterMs = parseRetryAfter(response.headers.get('retry-after'), nowMs);
  if ((status === 429 || status === 503) && retryAfterMs !== null) {
    return { kind: 'rateLimited', code: 'rate_limited', message, retryAfterMs, details };
  }
  if ([400, 401, 403, 404, 409, 422].includes(status)) {
    return { kind: 'permanent', code: 'permanent_failure', message, details };
  }
  return { kind: 'unknown', code: 'outcome_unknown', message, details };
}

/** `Retry-After` in milliseconds from `nowMs`, 0 to a day; null when absent or malformed. */
function parseRetryAfter(value: string | null, nowMs: number): number | null {
  const text = value?.trim() ?? '';
  const ms = /^\d{1,10}$/.test(text) ? Number(text) * 1000 : httpDateMs(text) - nowMs;
  if (Number.isNaN(ms)) return null;
  return Math.min(Math.max(ms, 0), LIMITS.retryIntervalMsMax.value);
}

/** RFC 9110: only the preferred form `Sun, 06 Nov 1994 08:49:37 GMT`; Date.parse alone would take `2` for a date. */
const httpDateMs = (text: string): number =>
  /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text)
    ? Date.parse(text)
    : Number.NaN;

/** By shape, not by class: a handler's package may bring its own copy of Holdfast. */
export function isActionFailure(error: unknown): error is ActionFailure {
  return (
    error instanceof ActionFailure ||
    (error instanceof Error && error.name === 'ActionFailure' && 'failure' in error)
  );
}

function provesNothingSent(error: unknown, depth: number): boolean {
  if (!(error instanceof Error) || depth > CAUSES_MAX) return false;
  // Node gives an AggregateError the code of its first member, whatever the others are: look at each.
  if (error instanceof AggregateError) {
    return error.errors.length > 0 && error.errors.every((each) => provesNothingSent(each, depth + 1));
  }
  if ('code' in error) return NOTHING_SENT.has(String(error.code)) && isBeforeSending(error);
  // Only fetch's own wrapper is looked through: any other may be a client that sent once, retried and was then refused.
  return (
    error instanceof TypeError &&
    error.message === 'fetch failed' &&
    provesNothingSent(error.cause, depth + 1)
  );
}

/** A UDP socket reports ECONNREFUSED for what it has already sent, with `recvmsg` or `send` as the call. */
const isBeforeSending = (error: Error): boolean =>
  !('syscall' in error) || /^(connect|getaddrinfo|query\w*)$/.test(String(error.syscall));

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error === 'string' ? error : `a handler threw ${typeof error}`;
  const cause = error.cause instanceof Error && error.cause.message !== '' ? `: ${error.cause.message}` : '';
  return `${error.message || error.name}${cause}`;
}

const KINDS = ['notApplied', 'rateLimited', 'permanent', 'unknown'] as const;

/** For a failure whose code says nothing. */
const UNNAMED: Record<Failure['kind'], string> = {
  notApplied: 'attempt_failed',
  rateLimited: 'rate_limited',
  permanent: 'permanent_failure',
  unknown: 'outcome_unknown',
};

/** A failure as it may be stored: known kind, bounded strings, plain details. A malformed one proves nothing. */
function bounded(failure: Failure, clean: (text: string) => string): Failure {
  const details = detailsOf(failure.details);
  const kind = KINDS.includes(failure.kind) ? failure.kind : 'unknown';
  const wait = failure.retryAfterMs;
  const told = String(failure.message);
  return {
    kind,
    code: kind === failure.kind ? keptText(String(failure.code), 100) || UNNAMED[kind] : UNNAMED.unknown,
    message: keptText(withoutCredentials(clean(told)), LIMITS.failureMessageLengthMax.value),
    ...(typeof wait === 'number' &&
      wait >= 0 && { retryAfterMs: Math.min(wait, LIMITS.retryIntervalMsMax.value) }),
    ...(details && { details }),
  };
}

function detailsOf(details: unknown): JsonObject | null {
  const exact = tryExactJson(details);
  if (!exact.ok || typeof exact.value !== 'object' || exact.value === null || Array.isArray(exact.value))
    return null;
  const bytes = Buffer.byteLength(canonicalText(exact.value));
  return bytes <= LIMITS.failureDetailsBytesMax.value ? exact.value : null;
}
