/**
 * S3.7: whether a decision may be asked for (again). Counted by the ledger's row, whose executions each are one ask that
 * was begun: no crash, reset or later run of the procedure begins the count anew.
 */
import type { OperationRow } from '../ledger/ledger.ts';
import type { OperationOutcome } from '../task/outcome.ts';
import type { EffectAttempt } from './record.ts';

export type DecisionLimit =
  { kind: 'open' } | { kind: 'paced'; waitMs: number } | { kind: 'spent'; reason: string };

/** `row`: as it was before this attempt's claim. Open for everything that is no decision. */
export async function decisionLimit(
  { plan, deps }: Pick<EffectAttempt, 'plan' | 'deps'>,
  row: OperationRow,
): Promise<DecisionLimit> {
  if (plan.decision == null) return { kind: 'open' };
  const { asksMax, intervalMs } = plan.decision;
  const { executions: asks } = row;
  if (asks >= asksMax) return { kind: 'spent', reason: spentReason(asks, asksMax) };
  if (asks === 0) return { kind: 'open' };
  const waitMs = askedAt(row, plan.deadlines.attemptMs) + intervalMs - (await deps.ledger.now());
  return waitMs > 0 ? { kind: 'paced', waitMs } : { kind: 'open' };
}

export const paced = (waitMs: number): OperationOutcome => ({
  kind: 'busy',
  retryAfterMs: waitMs,
  reason: 'paced',
});

/** Where an answer came that was no use, the row's last change is what is known of the ask. */
function askedAt({ attemptDeadline, updatedAt }: OperationRow, attemptMs: number): number {
  return attemptDeadline === null ? updatedAt : Math.min(updatedAt, attemptDeadline - attemptMs);
}

function spentReason(asks: number, asksMax: number): string {
  if (asks === 0) return 'One ask costs more than decision.costMax allows; nothing was asked.';
  return `Asked ${asks} times with no answer on record; its contract’s decision budget is ${asksMax}.`;
}
