/**
 * Which news of a task are news (M6.3). Pure.
 *
 * Identity is stable and carried by the message: the subscription it came over, the task, and the task's own sequence
 * (the time of its last change). No order of arrival, no event id and no connection is part of it.
 *
 * Invariants:
 * 1. What comes over any subscription but the live one is dropped: it is from before a reconnect.
 * 2. A task never goes back: an older sequence is dropped, and so is everything after its end.
 * 3. The same state is told once, however often it arrives and by whichever way.
 */

export interface TaskNews {
  /** The subscription it came over; null: an authoritative read. */
  subscriptionId: string | null;
  taskId: string;
  /** Grows with the task's changes. */
  sequence: number;
  /** Tells apart two states with one sequence. */
  fingerprint: string;
  hasEnded: boolean;
}

export interface Seen {
  /** The live subscription. */
  readonly subscriptionId: string | null;
  readonly tasks: Readonly<Record<string, Pick<TaskNews, 'sequence' | 'fingerprint' | 'hasEnded'>>>;
}

export const NOTHING_SEEN: Seen = { subscriptionId: null, tasks: {} };

/** After a reconnect: what was seen of the tasks stays seen, the old subscription is dead. */
export const withSubscription = (seen: Seen, subscriptionId: string | null): Seen => ({
  ...seen,
  subscriptionId,
});

export function isNews(seen: Seen, news: TaskNews): boolean {
  if (news.subscriptionId !== null && news.subscriptionId !== seen.subscriptionId) return false;
  const last = Object.hasOwn(seen.tasks, news.taskId) ? seen.tasks[news.taskId] : undefined;
  if (last === undefined) return true;
  if (last.hasEnded) return false;
  // Its time is the ledger's, those before it were the engine's: they may disagree.
  if (news.hasEnded) return true;
  if (news.sequence < last.sequence) return false;
  return news.sequence > last.sequence || news.fingerprint !== last.fingerprint;
}

export const remember = (seen: Seen, { taskId, sequence, fingerprint, hasEnded }: TaskNews): Seen => ({
  ...seen,
  tasks: { ...seen.tasks, [taskId]: { sequence, fingerprint, hasEnded } },
});
