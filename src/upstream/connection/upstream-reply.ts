/**
 * What a reply to `tools/call` means for the call (S5).
 *
 * A JSON-RPC error is a refusal only where its code says that nothing was begun: the message, the method or its parameters
 * were refused. An error of the server's own (-32603, -32000 and the like) may follow an effect and leaves it in doubt.
 */
import { failureOfError } from '../../mcp-client/reply.ts';
import type { Reply } from '../../mcp-client/reply.ts';
import { isJsonObject } from '../../task/json.ts';
import type { JsonObject } from '../../task/json.ts';
import type { RemoteTaskHandle } from '../../contract/remote-server.ts';
import type { UpstreamReply } from '../upstream.ts';
import { exactResult } from './exact-result.ts';

export interface CallNames {
  server: string;
  tool: string;
  /** 2025-11-25: asked for a task, the server may answer with one. */
  asTask: boolean;
}

export function upstreamReply(
  reply: Reply,
  names: CallNames,
  clean: (text: string) => string,
): UpstreamReply {
  switch (reply.kind) {
    case 'result':
      return replyOfResult(reply.result, names);
    case 'error': {
      const { code, message } = reply.error;
      const words = clean(message);
      // Only the code counts: in `data` another's server may put whatever it likes.
      return failureOfError({ code, message }) === 'refused'
        ? { kind: 'refused', code, message: words }
        : { kind: 'in_doubt', message: `the server met an error of its own, ${code}: ${words}` };
    }
    case 'failure':
      return replyOfFailure({ ...reply, message: clean(reply.message) });
    case 'cancelled':
      return { kind: 'in_doubt', message: 'cancelled after it was sent' };
  }
}

function replyOfFailure(failure: Extract<Reply, { kind: 'failure' }>): UpstreamReply {
  const { message, retryAfterMs } = failure;
  switch (failure.failure) {
    case 'not_sent':
    case 'told_later':
      return { kind: 'not_sent', message, ...(retryAfterMs !== undefined && { retryAfterMs }) };
    case 'refused':
      return { kind: 'refused', code: INVALID_REQUEST, message };
    case 'lost':
      return { kind: 'in_doubt', message };
  }
}

/** For a refusal that came without a code of JSON-RPC. */
const INVALID_REQUEST = -32_600;

function replyOfResult(result: JsonObject, names: CallNames): UpstreamReply {
  const wire = result.resultType === 'task' ? result : names.asTask ? result.task : undefined;
  if (isJsonObject(wire)) {
    const task = taskHandle(wire, names);
    return task
      ? { kind: 'task', task }
      : { kind: 'in_doubt', message: 'the server made it a task and gave it no usable id' };
  }
  if (result.resultType === 'input_required')
    return {
      kind: 'in_doubt',
      message:
        'the server asks for input in mid-call, which can not be passed on, and does not go on without',
    };
  const raw = exactResult(result);
  const { content, structuredContent = null, isError } = raw;
  return {
    kind: 'answer',
    isError: isError === true,
    content: Array.isArray(content) ? content : [],
    structured: structuredContent,
    raw,
  };
}

const TASK_ID_LENGTH_MAX = 1_024;
/** Where a server says nothing. */
const POLL_INTERVAL_MS = 1_000;

/** Of 2026-07-28 (`ttlMs`, `pollIntervalMs`) or 2025-11-25 (`ttl`, `pollInterval`). */
function taskHandle(wire: JsonObject, { server, tool }: CallNames): RemoteTaskHandle | null {
  const { taskId } = wire;
  if (typeof taskId !== 'string' || taskId === '' || taskId.length > TASK_ID_LENGTH_MAX) return null;
  return {
    ...{ server, tool, taskId },
    pollIntervalMs: spanOf(wire.pollIntervalMs ?? wire.pollInterval) ?? POLL_INTERVAL_MS,
    ttlMs: spanOf(wire.ttlMs ?? wire.ttl) ?? null,
  };
}

export const spanOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
