/**
 * Who waits for a task, as the ledger knows it (M5.3): the newest mark of anyone, by the ledger's own clock. It is kept as
 * a fence: a cancel of what was abandoned holds the fence of the moment it was left, and any later mark refuses it.
 */
import type { Ledger } from '../ledger/ledger.ts';

/** Beyond every clock: whoever holds a task's handle has it for good. */
const FOR_GOOD = Number.MAX_SAFE_INTEGER;

const resourceOf = (taskId: string): string => `attended:${taskId}`;

/** The moment, by the ledger's clock. Nothing is written unless `allowed` resolves. */
export async function attend(
  ledger: Ledger,
  taskId: string,
  how: 'waiting' | 'handed',
  allowed?: Promise<unknown>,
): Promise<number> {
  const [now] = await Promise.all([ledger.now(), allowed]);
  await ledger.advanceFence(resourceOf(taskId), how === 'handed' ? FOR_GOOD : now);
  return now;
}

/** Whether nobody has said since `moment` that they wait. */
export const isUnattendedSince = (ledger: Ledger, taskId: string, moment: number): Promise<boolean> =>
  ledger.advanceFence(resourceOf(taskId), moment);
