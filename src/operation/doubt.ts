/** What is known of an execution whose outcome is in doubt, once the target was asked (S2.4). */
import type { OperationRow } from '../ledger/ledger.ts';
import type { OperationOutcome } from '../task/outcome.ts';
import { lookupKindOf } from './asking.ts';
import type { Doubt, Found } from './reconcile.ts';
import type { EffectAttempt } from './record.ts';

export interface OpenDoubt extends Doubt {
  settlesInMs: number;
}

/** `row`: as it was when the newest execution in doubt had begun. */
export async function doubtAbout(
  attempt: EffectAttempt,
  row: OperationRow,
  found: Found,
): Promise<OpenDoubt> {
  const { effect, autoRetry } = attempt.plan;
  const { purpose, verifyFinal } = attempt.request;
  const lookup = lookupKindOf(attempt);
  const settlesInMs = await settlesIn(attempt, row);
  const isSettled = settlesInMs === 0;
  return { effect, autoRetry, lookup, found, purpose, isSettled, isFinal: verifyFinal, settlesInMs };
}

/** How long a request may still be on its way, by the ledger's clock. */
async function settlesIn(attempt: EffectAttempt, row: OperationRow): Promise<number> {
  if (row.attemptDeadline === null) return 0;
  const settledAt = row.attemptDeadline + attempt.plan.deadlines.settleMs;
  return Math.max(0, settledAt - (await attempt.deps.ledger.now()));
}

export const settling = ({ settlesInMs }: OpenDoubt): OperationOutcome => ({
  kind: 'busy',
  retryAfterMs: settlesInMs,
  reason: 'settling',
});
