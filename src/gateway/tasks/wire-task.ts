/**
 * A task as the Tasks extension speaks of it.
 *
 * Its statuses are fewer than ours. `input_required` promises input requests that this client can answer: an approval
 * is one only where its policy allows this channel, this principal may decide and the client takes forms (M2.3, M7.3).
 * Everything else that is open is `working`, `needs_attention` included, and `statusMessage` says who is waited for,
 * and where. A domain failure is `completed` with `result.isError`; `failed` is for what would have been a JSON-RPC
 * error: a defect of ours, or a task that was closed in the engine past us (M2.2).
 */
import type { CallToolResult } from '@modelcontextprotocol/server';
import type { TaskAnswer } from '../../client/task-client.ts';
import { TASK_META } from '../../contract/wire-names.ts';
import type { Json, JsonObject } from '../../task/json.ts';
import { isProtocolFailure, taskFailure } from '../error-mapping.ts';
import { approvalQuestion, askableApprovals } from '../approval.ts';
import type { Onlooker } from '../approval.ts';
import { needsPerson, taskMeta } from '../task-answer.ts';
import { toolResult } from '../tool-result.ts';
import { elsewhereWords } from '../words.ts';

export type WireStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';

/** M2.2: `resultType: 'task'` makes it the answer to `tools/call`. */
export const createTaskResult = (answer: TaskAnswer, onlooker: Onlooker) => ({
  resultType: 'task' as const,
  ...wireTask(answer, onlooker),
});

/** The answer to `tasks/get`. */
export function detailedTask(answer: TaskAnswer, onlooker: Onlooker) {
  const task = wireTask(answer, onlooker);
  if (task.status === 'failed') return { ...task, error: taskFailure(answer) };
  const approvals = askableApprovals(answer, onlooker);
  // Each key is the approval's own: unique for the task's life (S4.1).
  if (approvals.length > 0)
    return {
      ...task,
      inputRequests: Object.fromEntries(
        approvals.map((approval) => [approval.callId, approvalQuestion(answer, approval)]),
      ),
    };
  if (onlooker.canElicit && Object.keys(remoteRequests(answer)).length > 0)
    return { ...task, inputRequests: remoteRequests(answer) };
  if (task.status !== 'completed') return task;
  // The SDK stamps only the outermost result; a client refuses an inner one without its own `resultType`.
  const result = { resultType: 'complete', ...toolResult(answer, onlooker.principal) };
  return { ...task, result: result satisfies CallToolResult };
}

/** M8.4: what another server's task asks for, as ours: each is an MCP request, handed through as it came. */
export const remoteRequests = ({ remote, cancelRequested }: TaskAnswer): JsonObject =>
  cancelRequested ? {} : (remote?.requests ?? {});

function wireTask(answer: TaskAnswer, onlooker: Onlooker) {
  const isAsked =
    askableApprovals(answer, onlooker).length > 0 ||
    (onlooker.canElicit && Object.keys(remoteRequests(answer)).length > 0);
  return {
    taskId: answer.taskId,
    status: isAsked ? 'input_required' : wireStatus(answer),
    statusMessage: `${answer.statusMessage || answer.status}${isAsked ? '' : elsewhereWords(answer)}`,
    createdAt: new Date(answer.createdAt).toISOString(),
    lastUpdatedAt: new Date(answer.updatedAt).toISOString(),
    // M2.7: the ledger's row outlives the task; nothing expires.
    ttlMs: null,
    pollIntervalMs: isAsked ? 1_000 : pollIntervalMs(answer),
    _meta: { [TASK_META]: taskMeta(answer) } satisfies Record<string, JsonObject> as Record<string, Json>,
  };
}

function wireStatus(answer: TaskAnswer): Exclude<WireStatus, 'input_required'> {
  switch (answer.status) {
    case 'completed':
      return 'completed';
    case 'failed':
      return isProtocolFailure(answer) ? 'failed' : 'completed';
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
