/**
 * What becomes of a call whose request failed (M6.3). Pure; docs/mcp-client.md prints the table.
 *
 * Invariants:
 * 1. An unsafe call leaves this client at most once: it is sent again only after a proof that nothing was sent or begun.
 * 2. A conditional call is sent again only under the key, and with the arguments, of its first sending.
 * 3. Where a task is known, the task is read and nothing is sent again, whatever the class.
 */
import type { EffectClass } from '../task/plan.ts';

/** What is known of a request that brought no answer. */
export type RequestFailure =
  /** No byte left: connection refused, name unknown, process gone before. */
  | 'not_sent'
  /** The server itself said "later" before it began: HTTP 429, or 503 with `Retry-After`. */
  | 'told_later'
  /** The server itself refused for good before it began. */
  | 'refused'
  /** Anything else: cut, timed out, a 5xx that a proxy may have made. It may have been carried out. */
  | 'lost';

export type Situation = RequestFailure | 'lost_with_task';

export type RetryVerdict =
  /** Again, under a new request id. */
  | 'again_new_id'
  /** Again, under a new request id, with the same idempotency key and the same arguments. */
  | 'again_same_key'
  /** Never again: the task is read until it says how it ended. */
  | 'read_task'
  /** Never again: its task is looked for under its key, and then read. */
  | 'find_task'
  | 'refused'
  /** Never again, and there is nothing to read: a person or the target must be asked. */
  | 'unknown';

export const SITUATIONS: Readonly<Record<Situation, string>> = {
  not_sent: 'nothing was sent',
  told_later: 'the server said "later"',
  refused: 'the server refused for good',
  lost: 'lost, no task known',
  lost_with_task: 'lost, task known',
};

export const RETRY_MATRIX: Readonly<Record<EffectClass, Readonly<Record<Situation, RetryVerdict>>>> = {
  safe: {
    not_sent: 'again_new_id',
    told_later: 'again_new_id',
    refused: 'refused',
    lost: 'again_new_id',
    lost_with_task: 'read_task',
  },
  conditional: {
    not_sent: 'again_same_key',
    told_later: 'again_same_key',
    refused: 'refused',
    lost: 'again_same_key',
    lost_with_task: 'read_task',
  },
  unsafe: {
    not_sent: 'again_new_id',
    told_later: 'again_new_id',
    refused: 'refused',
    lost: 'find_task',
    lost_with_task: 'read_task',
  },
};

export interface SentCall {
  effect: EffectClass;
  /** The tool takes an idempotency key. Without one nobody could deduplicate a conditional call. */
  canCarryKey: boolean;
  /** The server tells of tasks by key: a Holdfast gateway, of its own tools. */
  canBeFound: boolean;
  taskId: string | null;
}

export function retryVerdict(call: SentCall, failure: RequestFailure): RetryVerdict {
  const effect = call.effect === 'conditional' && !call.canCarryKey ? 'unsafe' : call.effect;
  const situation = failure === 'lost' && call.taskId !== null ? 'lost_with_task' : failure;
  const verdict = RETRY_MATRIX[effect][situation];
  return verdict === 'find_task' && !call.canBeFound ? 'unknown' : verdict;
}
