/**
 * A cancel that came while the effect was under way (S7.4). The row's end was written with the commit, which knew nothing
 * of it; the audit has it from before the task's end.
 */
import type { Ledger, OperationRow } from '../ledger/ledger.ts';

/** The row, its end saying whether a cancel was asked for. */
export async function withLateCancel(
  ledger: Pick<Ledger, 'audit'>,
  row: OperationRow,
): Promise<OperationRow> {
  const { end } = row;
  if (end?.status !== 'completed' || end.cancelRequested) return row;
  const entries = await ledger.audit({ taskId: row.taskId });
  const isAsked = entries.some(({ type }) => type === 'cancel_requested');
  return isAsked ? { ...row, end: { ...end, cancelRequested: true } } : row;
}
