/** What the parts of one client share. */
import type { Clock } from '../contract/clock.ts';
import type { Connector } from './connector.ts';
import type { Link } from './link.ts';
import { createBackoff } from './backoff.ts';
import { NEVER, pause } from '../contract/clock.ts';
import { startClocks } from './two-clocks.ts';
import type { ClockEnd } from './two-clocks.ts';
import type { RequestOptions } from './dispatch.ts';
import { errorOfRpc, errorWithoutTask } from './outcome.ts';
import { failureOfCode, lost } from './reply.ts';
import type { FailedRequest, Reply } from './reply.ts';

export interface ClientParts {
  connector: Connector;
  clock: Clock;
  /** In [0, 1); seedable. */
  random: () => number;
}

/** The span of one call or one operation on a task. */
export interface Span {
  idleMs: number;
  /** By the clock; nothing moves it. */
  maximumAt: number;
  signal?: AbortSignal;
}

/** A span that is over says why. */
export type Over = { kind: 'over'; end: Exclude<ClockEnd, 'idle'> };

export type Attempted = Exclude<Reply, { kind: 'cancelled' }> | Over;

export type Send = (link: Link, clocked: RequestOptions) => Promise<Reply>;

/** One try: a link, one request on it, both clocks. An idle clock that runs out makes it a lost request. */
export async function attempt(
  { connector, clock }: ClientParts,
  span: Span,
  send: Send,
  onProgress?: RequestOptions['onProgress'],
): Promise<Attempted> {
  const clocks = startClocks(clock, span, span.signal);
  try {
    const found = await unlessAborted(connector.link(), clocks.signal);
    if (found === null) return clocks.end === 'idle' ? NO_LINK : over(clocks.end);
    if (found.kind === 'failure') return found;
    const { link } = found;
    const heardBefore = link.heard;
    const reply = await send(link, {
      signal: clocks.signal,
      ...(onProgress && {
        onProgress: (progress) => {
          clocks.progressed(progress.progress);
          onProgress(progress);
        },
      }),
    });
    const isBroken = reply.kind === 'failure' && (reply.failure === 'lost' || reply.failure === 'not_sent');
    if (isBroken) connector.suspect(link, link.heard === heardBefore);
    if (reply.kind !== 'cancelled') return reply;
    if (clocks.end !== 'idle') return over(clocks.end);
    connector.suspect(link, link.heard === heardBefore);
    return lost(`no progress for ${span.idleMs} ms`);
  } finally {
    clocks.stop();
  }
}

const NO_LINK: FailedRequest = {
  kind: 'failure',
  failure: 'not_sent',
  message: 'the server did not answer the handshake',
};

const over = (end: ClockEnd | null): Over => ({ kind: 'over', end: end === 'maximum' ? end : 'abandoned' });

/** As `work`, but null as soon as `signal` aborts; what comes of the work afterwards is ignored. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | null> {
  return new Promise((resolve, reject) => {
    const leave = () => resolve(null);
    if (signal.aborted) return leave();
    signal.addEventListener('abort', leave, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}

/** An answer, or a refusal. */
export type Repeated = Exclude<Attempted, FailedRequest> | (FailedRequest & { failure: 'refused' });

/**
 * A request that may be repeated at will: a read, or one that the server takes once however often it comes. Repeated with
 * backoff, each time under a new id, until the server answers or refuses, or the span is over. That its engine or its store is away is no answer.
 */
export async function repeat(parts: ClientParts, span: Span, send: Send): Promise<Repeated> {
  const backoff = createBackoff(parts.random);
  for (;;) {
    const reply = await attempt(parts, span, send);
    const trouble = troubleOf(reply);
    if (trouble === null) return reply as Repeated;
    const end = await waitOut(parts, span, backoff.next(trouble.retryAfterMs));
    if (end !== null) return end;
  }
}

/** That the server could not answer just now, and when it may; null: this is its answer. */
function troubleOf(reply: Attempted): { retryAfterMs?: number } | null {
  if (reply.kind === 'over') return null;
  if (reply.kind === 'failure') return reply.failure === 'refused' ? null : reply;
  const error = reply.kind === 'error' ? errorOfRpc(reply.error) : errorWithoutTask(reply.result);
  if (!error?.retryable || failureOfCode(error.code) === 'refused') return null;
  const { retryAfterMs } = error.details;
  return typeof retryAfterMs === 'number' ? { retryAfterMs } : {};
}

/** Waits; answers what ended the span meanwhile. */
export async function waitOut(
  { clock }: ClientParts,
  { maximumAt, signal }: Pick<Span, 'maximumAt' | 'signal'>,
  delayMs: number,
): Promise<Over | null> {
  const leftMs = maximumAt - clock.now();
  await pause(clock, Math.max(0, Math.min(delayMs, leftMs)), signal ?? NEVER);
  if (signal?.aborted) return { kind: 'over', end: 'abandoned' };
  return delayMs >= leftMs ? { kind: 'over', end: 'maximum' } : null;
}
