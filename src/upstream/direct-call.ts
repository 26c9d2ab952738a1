/**
 * A safe tool of an upstream, called at once and without a task: nothing is recorded, and nothing needs to be, since a call
 * that is lost may be made again.
 */
import { HoldfastError } from '../contract/error.ts';
import type { RemoteTaskHandle } from '../contract/remote-server.ts';
import type { JsonObject } from '../task/json.ts';
import { withoutMarks } from './answer.ts';
import { endOfTask, taskEndWords } from './awaited-task.ts';
import type { Upstream, UpstreamCall } from './upstream.ts';

export type DirectCall = (
  args: JsonObject,
  call: Required<Pick<UpstreamCall, 'signal' | 'onProgress'>>,
) => Promise<JsonObject>;

/**
 * The tool's answer, as it is but for what in its `_meta` calls itself ours. Throws `permanent_failure` where the server refuses, `rate_limited` and `attempt_failed`
 * where it can't be reached or does not answer; the call may then be made again.
 */
export function directCall(upstream: Upstream, tool: string): DirectCall {
  return async (args, { signal, onProgress }) => {
    const reply = await upstream.call({ tool, args, signal, onProgress });
    switch (reply.kind) {
      case 'answer': {
        const { resultType: _type, ...answer } = reply.raw;
        return withoutMarks(answer);
      }
      case 'task':
        return await resultOf(upstream, reply.task, signal);
      case 'refused':
        throw failure('permanent_failure', tool, reply.message, { code: reply.code });
      case 'not_sent': {
        const { retryAfterMs } = reply;
        if (retryAfterMs === undefined) throw failure('attempt_failed', tool, reply.message);
        throw failure('rate_limited', tool, reply.message, { retryAfterMs });
      }
      case 'in_doubt':
        throw failure('attempt_failed', tool, reply.message);
      default:
        return reply satisfies never;
    }
  };
}

/** Waited for as long as the caller waits, and cancelled when he leaves. */
async function resultOf(
  upstream: Upstream,
  task: RemoteTaskHandle,
  signal: AbortSignal,
): Promise<JsonObject> {
  const end = await endOfTask(upstream, task, signal).catch((error: unknown) => {
    throw failure('attempt_failed', task.tool, `its task was given up: ${(error as Error).message}`);
  });
  if (end.kind === 'completed') return withoutMarks(end.result);
  throw failure('permanent_failure', task.tool, taskEndWords(end.kind));
}

const failure = (
  code: 'permanent_failure' | 'attempt_failed' | 'rate_limited',
  tool: string,
  message: string,
  details: JsonObject = {},
): HoldfastError => new HoldfastError(code, `${tool}: ${message}`, { details: { tool, ...details } });
