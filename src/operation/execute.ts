/**
 * Sending the effect (S2.5) under a claim whose intent is durable, and judging what came back (S5).
 *
 * Invariants:
 * 1. Whatever happens after the intent, either a ledger write says what is known, or the row stays `in_flight`.
 * 2. `released` and `failed` are written only when no execution of this operation can have applied anything: one that
 *    failed cleanly proves nothing about an earlier one that is still in doubt.
 */
import { remoteTaskIn } from '../contract/handlers.ts';
import type { OperationRow } from '../ledger/ledger.ts';
import type { Failure } from '../task/failure.ts';
import type { OperationOutcome } from '../task/outcome.ts';
import { askLookup, lookupKindOf } from './asking.ts';
import { adoptLookedUp, conclude, misfitFailure } from './conclude.ts';
import { doubtAbout, settling } from './doubt.ts';
import type { CallAnswer } from './handler-call.ts';
import type { HeldClaim } from './held-claim.ts';
import { keepOutput } from './keep-result.ts';
import { keepLateAnswer, recordLateAnswer } from './late-answer.ts';
import { staleOutcome } from './look.ts';
import { newerFence } from './newer-fence.ts';
import { handOver } from './hand-over.ts';
import { judgeToSettle } from './reconcile.ts';
import { fail, raiseAttention, release } from './record.ts';
import type { EffectAttempt } from './record.ts';

/** Whether an earlier execution may still have applied the effect when this one begins. */
export type Before = 'nothing_sent' | 'in_doubt';

export async function execute(
  attempt: EffectAttempt,
  held: HeldClaim,
  before: Before,
): Promise<OperationOutcome> {
  await attempt.reach('after_intent');
  if (!(await held.isOursStill())) return overtaken(attempt, held);
  const answer = await send(attempt, held, before);
  if (held.isLost) {
    await keepLate(attempt, held, answer);
    return overtaken(attempt, held);
  }
  switch (answer.kind) {
    case 'returned':
      await attempt.reach('after_effect');
      return remoteTaskIn(answer.value) === null
        ? onReturned(attempt, held, answer.value)
        : handOver(attempt, held, answer.value, before);
    case 'threw':
      return onFailure(attempt, held, answer.failure, before);
    case 'leftBehind':
      recordLateAnswer(attempt, held.claim, answer.late);
      return onUnknown(attempt, held, answer.failure);
    default:
      return answer satisfies never;
  }
}

function send(attempt: EffectAttempt, held: HeldClaim, before: Before): Promise<CallAnswer<unknown>> {
  const { handlers } = attempt.deps;
  attempt.hasSent = true;
  const isFirstSend = before === 'nothing_sent';
  return attempt.call('execute', [attempt.runtime.signal, held.lost], (signal) =>
    handlers.execute(
      attempt.input(),
      attempt.executeContext(signal, held.claim, held.assertOwner, { isFirstSend }),
    ),
  );
}

async function keepLate(attempt: EffectAttempt, held: HeldClaim, answer: CallAnswer<unknown>): Promise<void> {
  if (answer.kind === 'leftBehind') return recordLateAnswer(attempt, held.claim, answer.late);
  return keepLateAnswer(attempt, held.claim, answer);
}

/** The claim was taken over while this attempt was at work (S2.7). */
async function overtaken(attempt: EffectAttempt, held: HeldClaim): Promise<OperationOutcome> {
  const row = await rowOf(attempt);
  const leaseFence = await newerFence(attempt, held.claim);
  return staleOutcome(
    { kind: 'stale', row, ...(leaseFence !== undefined && { leaseFence }) },
    attempt.request,
  );
}

async function rowOf(attempt: EffectAttempt): Promise<OperationRow> {
  const row = await attempt.deps.ledger.find(attempt.operationId);
  if (row === null) throw new Error(`the row of ${attempt.operationId} is gone`);
  return row;
}

/**
 * An output that does not fit the contract is an applied effect with an unusable result. A `safe` action may simply ask
 * again; else the target is asked for a better one, and failing that a person is.
 */
export async function onReturned(
  attempt: EffectAttempt,
  held: HeldClaim,
  output: unknown,
): Promise<OperationOutcome> {
  const { result, misfit } = await keepOutput(attempt, output);
  if (misfit === null) return conclude(attempt, held, { result, how: 'executed', isStored: false });
  const failure = misfitFailure('execute', misfit);
  if (attempt.plan.effect === 'safe') {
    return release(attempt, held.claim, { ...failure, kind: 'notApplied', code: 'attempt_failed' });
  }
  const found = await askLookup(attempt, [held.lost]);
  if (found.kind === 'applied') return adoptLookedUp(attempt, held, found.output);
  return raiseAttention(attempt, held.claim, failure, { result });
}

export async function onFailure(
  attempt: EffectAttempt,
  held: HeldClaim,
  failure: Failure,
  before: Before,
): Promise<OperationOutcome> {
  switch (failure.kind) {
    case 'notApplied':
    case 'rateLimited':
      if (before === 'nothing_sent') return release(attempt, held.claim, failure);
      return onUnknown(attempt, held, { ...failure, kind: 'unknown' });
    case 'permanent':
      return before === 'nothing_sent'
        ? fail(attempt, held.claim, failure)
        : onPermanentInDoubt(attempt, held, failure);
    case 'unknown':
      return onUnknown(attempt, held, failure);
    default:
      return failure.kind satisfies never;
  }
}

/** Refused for good now, but an earlier execution may have been taken: perhaps it is refused because of that. */
async function onPermanentInDoubt(
  attempt: EffectAttempt,
  held: HeldClaim,
  failure: Failure,
): Promise<OperationOutcome> {
  const found = await askLookup(attempt, [held.lost]);
  if (found.kind === 'applied') return adoptLookedUp(attempt, held, found.output);
  const doubt = await doubtAbout(attempt, await rowOf(attempt), found.kind);
  const verdict = judgeToSettle(doubt);
  if (verdict === 'release') return fail(attempt, held.claim, failure);
  if (verdict === 'wait') return settling(doubt);
  return raiseAttention(attempt, held.claim, { ...failure, kind: 'unknown' });
}

/** S5: reconcile first. The row stays `in_flight` while something can still decide; else a person is alerted at once. */
function onUnknown(attempt: EffectAttempt, held: HeldClaim, failure: Failure): Promise<OperationOutcome> {
  const { effect, autoRetry } = attempt.plan;
  const mayBeSentAgain = effect === 'safe' || (effect === 'conditional' && autoRetry);
  if (mayBeSentAgain || lookupKindOf(attempt) !== 'none') {
    return Promise.resolve({ kind: 'unknown', failure, attention: false });
  }
  return raiseAttention(attempt, held.claim, failure);
}
