/** S2.3: the claim, and what an attempt is told that does not get it. */
import type { ClaimAnswer, ClaimRequest, OperationRow } from '../ledger/ledger.ts';
import type { OperationOutcome } from '../task/outcome.ts';
import { claimMsOf } from './attempt.ts';
import type { HeldClaim } from './held-claim.ts';
import { decidedOutcome, tooLate } from './look.ts';
import type { EffectAttempt } from './record.ts';

export type Claimed =
  { kind: 'granted'; held: HeldClaim; before: OperationRow } | { kind: 'refused'; outcome: OperationOutcome };

/** `executing`: with the intent to send, in one transaction; else to reconcile first. Whoever is granted lets it go. */
export async function claim(attempt: EffectAttempt, executing: boolean): Promise<Claimed> {
  const answer = await attempt.deps.ledger.claim(claimRequest(attempt, executing));
  if (answer.kind !== 'granted') return { kind: 'refused', outcome: refusedClaim(attempt, answer) };
  return { kind: 'granted', held: attempt.hold(answer.claim, attempt.request.inline), before: answer.before };
}

export function claimRequest({ plan, request }: EffectAttempt, executing: boolean): ClaimRequest {
  return {
    operationId: plan.operationId,
    taskId: request.taskId,
    ordinal: request.ordinal,
    attempt: request.attempt,
    claimMs: claimMsOf(plan, request.inline),
    attemptMs: plan.deadlines.attemptMs,
    executing,
    edited: plan.edited ?? null,
    lease: request.lease,
    notes: request.journal,
  };
}

export function refusedClaim(
  { request }: EffectAttempt,
  answer: Exclude<ClaimAnswer, { kind: 'granted' }>,
): OperationOutcome {
  switch (answer.kind) {
    case 'busy':
      return { kind: 'busy', retryAfterMs: answer.retryAfterMs, reason: 'claimed' };
    case 'stale': {
      const { rowAttempt, superseded, leaseFence } = answer;
      return { kind: 'fenceStale', rowAttempt, superseded, ...(leaseFence !== undefined && { leaseFence }) };
    }
    case 'closed':
      return decidedOutcome(answer.row, request) ?? tooLate(answer.row, request);
    default:
      return answer satisfies never;
  }
}
