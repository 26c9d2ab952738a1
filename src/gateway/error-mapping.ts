/**
 * Every error that leaves the gateway, mapped in this one file.
 *
 * - What a caller can act on, in `tools/call`: a tool result with `isError`, whose structured content and text name
 *   code, details and what to do. A model reads it; a protocol error may never reach one.
 * - Misuse of the protocol, and anything about a task id in `tasks/*`: a JSON-RPC error.
 * - A message refused before the SDK sees it: a JSON-RPC error, over HTTP under the status that fits.
 * - Anything unexpected: `internal_error` with a correlation id, logged with its cause; the caller never sees a stack.
 */
import { randomUUID } from 'node:crypto';
import {
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
} from '@modelcontextprotocol/server';
import type { CallToolResult } from '@modelcontextprotocol/server';
import { ERROR_CODES, HoldfastError } from '../contract/error.ts';
import type { ErrorCode } from '../contract/error.ts';
import { TASK_META } from '../contract/wire-names.ts';
import type { JsonObject } from '../task/json.ts';
import type { TaskEnd, TaskError, TaskStatus } from '../task/outcome.ts';
import type { GatewayLog } from './log.ts';

/** An error as callers see it: the CLI's `{code, message, details}` and what to do about it. */
export interface ShownError {
  code: string;
  message: string;
  details: JsonObject;
  retryable: boolean;
  action: string;
}

export function shownError(error: { code: string; message: string; details?: JsonObject }): ShownError {
  const known = isErrorCode(error.code) ? ERROR_CODES[error.code] : null;
  const mustAsk = error.details?.safeToRepeat === false;
  return {
    code: error.code,
    message: error.message,
    details: error.details ?? {},
    retryable: !mustAsk && (known?.retryable ?? false),
    action: mustAsk ? 'Ask for the task named in `details.taskId`.' : (known?.action ?? 'Read the message.'),
  };
}

const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(ERROR_CODES, code);

/** A HoldfastError as it is; anything else as `internal_error`, logged here under the correlation id it carries. */
export function asHoldfastError(error: unknown, log: GatewayLog, doing: string): HoldfastError {
  if (error instanceof HoldfastError) return error;
  const correlationId = randomUUID();
  log.error({ correlationId, doing, err: error }, 'unexpected error');
  return new HoldfastError(
    'internal_error',
    `A defect in Holdfast stopped ${doing}; report correlation id ${correlationId}.`,
    {
      details: { correlationId },
      cause: error,
    },
  );
}

/** `tools/call`: the error as a tool result. Protocol errors pass through to the SDK. */
export function toolErrorResult(error: unknown, log: GatewayLog, tool: string): CallToolResult {
  if (error instanceof ProtocolError) throw error;
  const shown = shownError(asHoldfastError(error, log, `the call of ${tool}`).toJSON());
  return {
    content: [{ type: 'text', text: errorText(shown) }],
    structuredContent: { error: shown },
    isError: true,
    ...(shown.code === 'engine_unavailable' && perhapsStarted(shown.details)),
  };
}

/** M1.5: a task that was reserved, and perhaps started. */
function perhapsStarted({ taskId, operationId, autoRetry }: JsonObject): Pick<CallToolResult, '_meta'> {
  if (typeof taskId !== 'string') return {};
  const unknown = { effect: null, cause: null, replayed: false, attached: false, stale: true };
  return { _meta: { [TASK_META]: { taskId, operationId, status: 'proposed', autoRetry, ...unknown } } };
}

export function errorText(shown: ShownError): string {
  const details = Object.keys(shown.details).length > 0 ? `\nDetails: ${JSON.stringify(shown.details)}` : '';
  return `${shown.code}: ${shown.message}\nWhat to do: ${shown.action}${details}`;
}

/** `tasks/*`: unknown, foreign and expired ids look the same (M2.6); the rest is the server's trouble, -32603. */
export function taskProtocolError(error: unknown, log: GatewayLog, method: string): ProtocolError {
  if (error instanceof ProtocolError) return error;
  const known = asHoldfastError(error, log, method);
  if (known.code === 'task_not_found')
    return new ProtocolError(ProtocolErrorCode.InvalidParams, 'task not found');
  return new ProtocolError(ProtocolErrorCode.InternalError, known.message, shownError(known.toJSON()));
}

/** What a task that did not complete ended with. An end that was recorded past the task has a cause alone. */
export function endError({ status, cause, error }: EndedTask): TaskError {
  if (error !== null) return error;
  const code =
    status === 'cancelled' ? 'cancelled' : cause === 'engine_closed' ? 'engine_closed' : 'internal_error';
  return { code, message: ERROR_CODES[code].meaning };
}

/** M2.2: it ended through no fault of the tool and no decision of anybody's: what would have been a JSON-RPC error. */
export const isProtocolFailure = (task: EndedTask): boolean =>
  task.status === 'failed' && (task.cause === 'engine_closed' || endError(task).code === 'internal_error');

/** `error` of a task whose wire status is `failed`. */
export function taskFailure(task: EndedTask): { code: number; message: string; data: ShownError } {
  const data = shownError(endError(task));
  return { code: ProtocolErrorCode.InternalError, message: data.message, data };
}

interface EndedTask {
  status: TaskStatus;
  cause: TaskEnd['cause'] | null;
  error: TaskError | null;
}

export const unknownTool = (name: string): ProtocolError =>
  new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool ${JSON.stringify(name.slice(0, 128))}.`, {
    code: 'unknown_action',
  });

export const invalidParams = (message: string): ProtocolError =>
  new ProtocolError(ProtocolErrorCode.InvalidParams, message);

/** -32021: the request needs an extension that it did not declare. */
export const missingExtension = (extension: string): ProtocolError =>
  new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: { [extension]: {} } } });

export interface JsonRpcError {
  jsonrpc: '2.0';
  id: string | number | null;
  error: { code: number; message: string; data: ShownError };
}

/** Why a message goes no further than its text. */
export type MessageRefusalReason = 'body_too_large' | 'not_json' | 'too_deep' | 'inexact';

interface RefusedMessage {
  id: string | number | null;
  limit: number;
  path?: string;
}

export function messageRefusal(
  reason: MessageRefusalReason,
  { id, limit, path = '' }: RefusedMessage,
): JsonRpcError {
  switch (reason) {
    case 'body_too_large':
      return jsonRpcError(
        id,
        SERVER_ERROR,
        'payload_too_large',
        `The message is larger than ${limit} bytes. Nothing was started.`,
        { bytesMax: limit },
      );
    case 'not_json':
      return jsonRpcError(
        id,
        ProtocolErrorCode.ParseError,
        'invalid_arguments',
        'The message is not JSON in UTF-8.',
      );
    case 'too_deep':
      return jsonRpcError(
        id,
        ProtocolErrorCode.InvalidRequest,
        'invalid_arguments',
        `The message is nested deeper than ${limit} levels.`,
        { depthMax: limit },
      );
    case 'inexact':
      return jsonRpcError(
        id,
        ProtocolErrorCode.InvalidRequest,
        'invalid_arguments',
        `The value at ${path} can not be kept exactly. Send integers beyond 2^53 as strings, and each key once.`,
        { path },
      );
  }
}

/** An HTTP answer instead of a message's: status, headers and a JSON-RPC error as body. */
export interface HttpRefusal {
  status: number;
  headers: Record<string, string>;
  body: JsonRpcError;
}

const MESSAGE_STATUS = {
  body_too_large: 413,
  not_json: 400,
  too_deep: 400,
  inexact: 400,
} as const satisfies Record<MessageRefusalReason, number>;

export const httpMessageRefusal = (reason: MessageRefusalReason, facts: RefusedMessage): HttpRefusal => ({
  status: MESSAGE_STATUS[reason],
  headers: {},
  body: messageRefusal(reason, facts),
});

export const unauthorized = (wwwAuthenticate: string, message: string): HttpRefusal => ({
  status: 401,
  headers: { 'www-authenticate': wwwAuthenticate },
  body: jsonRpcError(null, SERVER_ERROR, 'unauthorized', message),
});

export const forbidden = (wwwAuthenticate: string, message: string, details: JsonObject): HttpRefusal => ({
  status: 403,
  headers: { 'www-authenticate': wwwAuthenticate },
  body: jsonRpcError(null, SERVER_ERROR, 'forbidden', message, details),
});

export const authUnavailable = (message: string): HttpRefusal => ({
  status: 503,
  headers: { 'retry-after': '2' },
  body: jsonRpcError(null, SERVER_ERROR, 'auth_unavailable', message),
});

/** 2025-11-25: a client that gets it initializes anew. Whose session it was is not told. */
export const unknownSession = (): HttpRefusal => ({
  status: 404,
  headers: {},
  body: jsonRpcError(null, SESSION_NOT_FOUND, 'session_not_found', ERROR_CODES.session_not_found.meaning),
});

export const idInUse = (id: string | number): HttpRefusal => ({
  status: 400,
  headers: {},
  body: jsonRpcError(
    id,
    ProtocolErrorCode.InvalidRequest,
    'invalid_arguments',
    'A request with this id is under way in this session.',
  ),
});

export const tooManyCalls = ({ code, message, details }: HoldfastError): HttpRefusal => ({
  status: 429,
  headers: { 'retry-after': String(Math.max(1, Math.ceil(Number(details.retryAfterMs) / 1_000))) },
  body: jsonRpcError(null, SERVER_ERROR, code, message, details),
});

export const encodedBody = (): HttpRefusal => ({
  status: 415,
  headers: {},
  body: jsonRpcError(
    null,
    SERVER_ERROR,
    'invalid_arguments',
    'A Content-Encoding is not supported; send the body as it is.',
  ),
});

export const shuttingDown = (): HttpRefusal => ({
  status: 503,
  headers: { 'retry-after': '1' },
  body: jsonRpcError(
    null,
    SERVER_ERROR,
    'engine_unavailable',
    'This gateway is shutting down; nothing was started by this request.',
  ),
});

/** JSON-RPC's range for a server's own errors. */
const SERVER_ERROR = -32_000;
/** The SDK's own, which its clients know. */
const SESSION_NOT_FOUND = -32_001;

const jsonRpcError = (
  id: string | number | null,
  rpcCode: number,
  code: ErrorCode,
  message: string,
  details: JsonObject = {},
): JsonRpcError => ({
  jsonrpc: '2.0',
  id,
  error: { code: rpcCode, message, data: shownError({ code, message, details }) },
});
