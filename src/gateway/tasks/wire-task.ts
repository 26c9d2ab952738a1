/**
 * A task as the Tasks extension speaks of it.
 *
 * Its statuses are fewer than ours. Everything open is `working`, `needs_attention` and `awaiting_approval` included:
 * `input_required` would promise input requests that the client can answer, and none of these is answered by the agent
 * that asked (S4.5); `statusMessage` says who is waited for. A domain failure is `completed` with `result.isError`;
 * `failed` is for what would have been a JSON-RPC error, a defect of ours (M2.2).
 */
import type { CallToolResult } from '@modelcontextprotocol/server';
import type { TaskAnswer } from '../../client/task-client.ts';
import type { Json, JsonObject } from '../../task/json.ts';
import { taskFailure } from '../error-mapping.ts';
import { needsPerson, TASK_META, taskMeta } from '../task-answer.ts';
import { toolResult } from '../tool-result.ts';

export type WireStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';

/** M2.2: `resultType: 'task'` makes it the answer to `tools/call`. */
export const createTaskResult = (answer: TaskAnswer) => ({
  resultType: 'task' as const,
  ...wireTask(answer),
});

/** The answer to `tasks/get`. */
export function detailedTask(answer: TaskAnswer) {
  const task = wireTask(answer);
  if (task.status === 'failed') return { ...task, error: taskFailure(answer.error) };
  if (task.status !== 'completed') return task;
  // The SDK stamps only the outermost result; a client refuses an inner one without its own `resultType`.
  return { ...task, result: { resultType: 'complete', ...toolResult(answer) } satisfies CallToolResult };
}

function wireTask(answer: TaskAnswer) {
  return {
    taskId: answer.taskId,
    status: wireStatus(answer),
    statusMessage: answer.statusMessage || answer.status,
    createdAt: new Date(answer.createdAt).toISOString(),
    lastUpdatedAt: new Date(answer.updatedAt).toISOString(),
    // M2.7: the ledger's row outlives the task; nothing expires.
    ttlMs: null,
    pollIntervalMs: pollIntervalMs(answer),
    _meta: { [TASK_META]: taskMeta(answer) } satisfies Record<string, JsonObject> as Record<string, Json>,
  };
}

export function wireStatus(answer: TaskAnswer): WireStatus {
  switch (answer.status) {
    case 'completed':
      return 'completed';
    case 'failed':
      return answer.error === null || answer.error.code === 'internal_error' ? 'failed' : 'completed';
    case 'cancelled':
      return 'cancelled';
    case 'proposed':
    case 'awaiting_approval':
    case 'running':
    case 'reconciling':
    case 'verifying':
    case 'backing_off':
    case 'rolling_back':
    case 'needs_attention':
      return 'working';
  }
}

/** Young tasks end soon; old ones, and those that wait for a person, don't. */
function pollIntervalMs(answer: TaskAnswer): number {
  if (needsPerson(answer)) return 5_000;
  const ageMs = answer.updatedAt - answer.createdAt;
  return ageMs < 5_000 ? 250 : ageMs < 60_000 ? 1_000 : 5_000;
}
