/** What a `TaskAnswer` says, in the few words the rest of the gateway asks it. */
import type { TaskAnswer } from '../client/task-client.ts';
import type { JsonObject } from '../task/json.ts';
import { isTerminal } from '../task/outcome.ts';

export const hasEnded = ({ status }: TaskAnswer): boolean => isTerminal(status);

/** The task waits for a person; no amount of waiting by the caller moves it. */
export const needsPerson = (answer: TaskAnswer): boolean =>
  answer.status === 'needs_attention' || answer.status === 'awaiting_approval';

/** An attempt may have reached the world, and whether it did is not known now (S5). */
export const isOutcomeUnknown = (answer: TaskAnswer): boolean =>
  answer.effect === 'unknown' || answer.status === 'needs_attention' || answer.status === 'reconciling';

/** M1.5: `_meta["holdfast/task"]` of every result that stands for a task. */
export const taskMeta = (answer: TaskAnswer): JsonObject => ({
  taskId: answer.taskId,
  operationId: answer.operationId,
  status: answer.status,
  effect: answer.effect,
  cause: answer.cause,
  replayed: answer.replayed,
  attached: answer.attached,
  autoRetry: answer.autoRetry,
  ...(answer.cancelRequested && { cancelRequested: true }),
  ...(answer.stale && { stale: true }),
  ...(answer.editedFrom && { editedFrom: { ...answer.editedFrom } }),
});
