/** What became of one request, and what a failed one proves (S5). */
import { SdkError, SdkErrorCode, UnauthorizedError } from '@modelcontextprotocol/client';
import { classifyFailure } from '../contract/classify-failure.ts';
import type { JsonObject } from '../task/json.ts';
import type { RequestFailure } from './retry-matrix.ts';

export interface RpcError {
  code: number;
  message: string;
  data?: unknown;
}

export interface FailedRequest {
  kind: 'failure';
  failure: RequestFailure;
  message: string;
  /** Of `told_later`, where the server named a time. */
  retryAfterMs?: number;
}

export type Reply =
  | { kind: 'result'; result: JsonObject }
  /** The server's own answer: it has read the request. */
  | { kind: 'error'; error: RpcError }
  | FailedRequest
  /** Cancelled from this side; whatever still comes is ignored. */
  | { kind: 'cancelled' };

export const lost = (message: string): FailedRequest => ({ kind: 'failure', failure: 'lost', message });

/**
 * The reply that an error of the transport's `send` stands for. Nothing but a refused connection, an unknown name, an
 * unconnected transport or the server's own word proves that nothing was begun. `inSession`: the request named a session of
 * 2025-11-25, so that a 404 is about that session.
 */
export function replyOfSendError(error: unknown, inSession = false): Reply {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof UnauthorizedError) return { kind: 'failure', failure: 'refused', message };
  if (error instanceof SdkError && error.code === SdkErrorCode.NotConnected)
    return { kind: 'failure', failure: 'not_sent', message };
  const http = httpErrorOf(error);
  if (http !== null) return replyOfHttpError(http, message, inSession);
  const failure = classifyFailure(error);
  if (failure.kind === 'notApplied')
    return { kind: 'failure', failure: 'not_sent', message: failure.message };
  if (failure.kind === 'rateLimited') {
    const { retryAfterMs } = failure;
    return {
      kind: 'failure',
      failure: 'told_later',
      message: failure.message,
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    };
  }
  return lost(failure.message);
}

interface HttpError {
  status: number;
  text: string;
}

function replyOfHttpError({ status, text }: HttpError, message: string, inSession: boolean): Reply {
  if (status === 429) return { kind: 'failure', failure: 'told_later', message };
  if (status >= 300 && status < 400) return lost(redirectWords(status));
  const error = rpcErrorIn(text);
  // 2025's sessions: the server knows this one no more, and read no further. Servers that were written before the
  // status was agreed on say 400 and, in words, why.
  const isForgotten =
    (status === 404 && (inSession || error?.code === SESSION_NOT_FOUND)) ||
    (status === 400 && inSession && error?.code !== INVALID_PARAMS && /\bsession\b/i.test(text));
  if (isForgotten) return { kind: 'failure', failure: 'not_sent', message };
  if (status >= 400 && status < 500 && error !== null) return { kind: 'error', error };
  const isRefusal = status >= 400 && status < 500 && !AFTER_ALL.has(status);
  return { kind: 'failure', failure: isRefusal ? 'refused' : 'lost', message };
}

/** What is sent to one address is for it alone. */
export const redirectWords = (status: number): string =>
  `the server redirects (HTTP ${status}), and no redirect is followed: configure the address that it redirects to`;

const SESSION_NOT_FOUND = -32_001;
const INVALID_PARAMS = -32_602;
/** No refusals: either may follow a request that was carried out. 499 is what the SDK makes of one cut by a closing server. */
const AFTER_ALL: ReadonlySet<number> = new Set([408, 499]);

/** By shape: the SDK throws several classes for an HTTP status. */
export function httpErrorOf(error: unknown): HttpError | null {
  const { data } = (error ?? {}) as { data?: { status?: unknown; text?: unknown } };
  if (typeof data?.status !== 'number') return null;
  return { status: data.status, text: typeof data.text === 'string' ? data.text : '' };
}

function rpcErrorIn(text: string): RpcError | null {
  try {
    const { error } = JSON.parse(text) as { error?: Partial<RpcError> };
    if (typeof error?.code !== 'number') return null;
    return { code: error.code, message: String(error.message), ...('data' in error && { data: error.data }) };
  } catch {
    return null;
  }
}

/** JSON-RPC codes after which nothing was carried out: the message, the method or its parameters were refused. */
const REFUSALS: ReadonlySet<number> = new Set([
  -32700, -32600, -32601, -32602, -32020, -32021, -32022, -32042,
]);

/** What the server's own error proves about a `tools/call`. One of its own trouble proves nothing. */
export function failureOfError({ code, data }: RpcError): RequestFailure {
  if (REFUSALS.has(code)) return 'refused';
  const named = (data as { code?: unknown } | undefined)?.code;
  return typeof named === 'string' ? failureOfCode(named) : 'lost';
}

/** Codes of docs/errors.md that leave open whether the call has begun. */
const LEAVES_OPEN: ReadonlySet<string> = new Set([
  ...['internal_error', 'outcome_unknown', 'engine_unavailable', 'ledger_unavailable'],
  'operation_in_progress',
]);

/** What the code proves by which a Holdfast gateway names why a call went no further. */
export function failureOfCode(code: string): RequestFailure {
  if (code === 'too_many_calls' || code === 'too_many_listens') return 'told_later';
  return LEAVES_OPEN.has(code) ? 'lost' : 'refused';
}
