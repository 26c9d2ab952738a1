/**
 * The tasks that a server keeps, over the Tasks extension of 2026-07-28 and over the tasks of 2025-11-25.
 *
 * | | 2026-07-28 | 2025-11-25 |
 * | --- | --- | --- |
 * | result | in `tasks/get` | `tasks/result`, asked once `tasks/get` says that it ended |
 * | `failed` | a JSON-RPC error | also a tool error, which is then `completed` here, with `isError` |
 * | input | requests in `tasks/get`, answered by `tasks/update` | in mid-request: not declared, so no server may ask |
 *
 * It keeps nothing: a handle is enough, from any process. A server that restarts between two requests is met anew.
 */
import { AnswerRefused } from '../../contract/remote-server.ts';
import type { RemoteServer, RemoteStatus, RemoteTaskHandle } from '../../contract/remote-server.ts';
import { HoldfastError } from '../../contract/error.ts';
import type { Link } from '../../mcp-client/link.ts';
import type { Reply } from '../../mcp-client/reply.ts';
import { isJsonObject } from '../../task/json.ts';
import type { Json, JsonObject } from '../../task/json.ts';
import type { Connection } from './connection.ts';
import { exactResult } from './exact-result.ts';
import { spanOf } from './upstream-reply.ts';

/** -32602 on a request that has nothing but the task's id. */
const NOT_FOUND = -32_602;

interface Asked {
  reply: Reply;
  era: Link['era'] | null;
}

export function createRemoteTasks(connection: Connection, clean: (text: string) => string): RemoteServer {
  const ask = async (method: string, params: JsonObject, signal: AbortSignal): Promise<Asked> => {
    let era: Link['era'] | null = null;
    const paramsFor = (link: Link) => {
      era = link.era;
      return params;
    };
    return { reply: await connection.control(method, paramsFor, signal), era };
  };
  return {
    async status({ taskId }, signal) {
      const { reply, era } = await ask('tasks/get', { taskId }, signal);
      if (isNotFound(reply)) return { kind: 'not_found' };
      const wire = resultOf(reply, 'tasks/get', clean);
      const hasEnded = wire.status === 'completed' || wire.status === 'failed';
      if (era === 'modern' || !hasEnded) return statusOf(wire, clean);
      const { reply: end } = await ask('tasks/result', { taskId }, signal);
      return isNotFound(end) ? { kind: 'not_found' } : endOf(end, wire.status === 'failed', clean);
    },
    async cancel({ taskId }, signal) {
      const { reply } = await ask('tasks/cancel', { taskId }, signal);
      // Ended already, or forgotten: there is nothing left to cancel.
      if (!isNotFound(reply)) resultOf(reply, 'tasks/cancel', clean);
    },
    async answer(task: RemoteTaskHandle, inputResponses, signal) {
      const { reply } = await ask('tasks/update', { taskId: task.taskId, inputResponses }, signal);
      if (reply.kind === 'error' && REFUSALS.includes(reply.error.code))
        throw new AnswerRefused(clean(`The server refuses the answer: ${reply.error.message}`));
      resultOf(reply, 'tasks/update', clean);
    },
  };
}

/** Invalid request, no such method, invalid params. */
const REFUSALS: readonly number[] = [-32_600, -32_601, -32_602];

const isNotFound = (reply: Reply): boolean => reply.kind === 'error' && reply.error.code === NOT_FOUND;

function statusOf(wire: JsonObject, clean: (text: string) => string): RemoteStatus {
  const message = typeof wire.statusMessage === 'string' ? { message: clean(wire.statusMessage) } : {};
  const pollIntervalMs = spanOf(wire.pollIntervalMs ?? wire.pollInterval);
  const interval = pollIntervalMs === undefined ? {} : { pollIntervalMs };
  switch (wire.status) {
    case 'working':
      return { kind: 'working', ...message, ...interval };
    case 'input_required': {
      const { inputRequests } = wire;
      const requests = isJsonObject(inputRequests) ? inputRequests : {};
      return { kind: 'input_required', requests, ...message, ...interval };
    }
    case 'completed':
      return completed(wire.result, false);
    case 'failed':
      return failed(wire.error, clean);
    case 'cancelled':
      return { kind: 'cancelled', ...message };
    default:
      throw unreadable('tasks/get', 'names no status of a task');
  }
}

/** What `tasks/result` answered. */
function endOf(reply: Reply, isFailed: boolean, clean: (text: string) => string): RemoteStatus {
  // Of a task that did not fail, an error is the server's own trouble: its result may still come.
  if (reply.kind === 'error' && isFailed) return failed(reply.error as unknown as JsonObject, clean);
  return completed(resultOf(reply, 'tasks/result', clean), isFailed);
}

function completed(result: Json | undefined, isFailed: boolean): RemoteStatus {
  if (!isJsonObject(result)) throw unreadable('tasks/get', 'says completed and has no result');
  const { resultType: _type, ...answer } = exactResult(result);
  return { kind: 'completed', result: isFailed ? { ...answer, isError: true } : answer };
}

function failed(error: Json | undefined, clean: (text: string) => string): RemoteStatus {
  const { code, message } = isJsonObject(error) ? error : {};
  return {
    kind: 'failed',
    message: clean(typeof message === 'string' ? message : 'the server said no more'),
    ...(typeof code === 'number' && { code }),
  };
}

const unreadable = (method: string, what: string): HoldfastError =>
  new HoldfastError('attempt_failed', `The answer to ${method} ${what}.`, { details: { method } });

/** Throws `attempt_failed`: nothing is known of the task but what was known before. */
export function resultOf(reply: Reply, method: string, clean: (text: string) => string): JsonObject {
  if (reply.kind === 'result') return reply.result;
  const { message, details } = wordsOf(reply);
  throw new HoldfastError('attempt_failed', `${method}: ${clean(message)}`, {
    details: { method, ...details },
  });
}

function wordsOf(reply: Exclude<Reply, { kind: 'result' }>): { message: string; details: JsonObject } {
  switch (reply.kind) {
    case 'error':
      return {
        message: `the server answered with error ${reply.error.code}: ${reply.error.message}`,
        details: { code: reply.error.code },
      };
    case 'failure': {
      const { message, retryAfterMs } = reply;
      return { message, details: retryAfterMs === undefined ? {} : { retryAfterMs } };
    }
    case 'cancelled':
      return { message: 'cancelled', details: {} };
  }
}
