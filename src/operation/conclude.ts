/**
 * From an applied effect to its commit (S2.6, S2.7), the same whether it was executed just now, looked up, or found in
 * the row.
 *
 * Invariants:
 * 1. Nothing is committed that its verify handler has not verified.
 * 2. The first `not_yet` stores the result before anything else is asked.
 * 3. The attempt's own cancellation does not stop the first look: an effect that is there is written down.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Failure } from '../task/failure.ts';
import type { OperationOutcome } from '../task/outcome.ts';
import { askLookup, askVerify } from './asking.ts';
import type { VerifyFound } from './asking.ts';
import { verifyWindowMs } from './budget.ts';
import type { HeldClaim } from './held-claim.ts';
import { keepOutput } from './keep-result.ts';
import { commit, fail, raiseAttention, recordMismatch, storeApplied } from './record.ts';
import type { EffectAttempt } from './record.ts';
import type { Result } from './result.ts';

export interface Applied {
  result: Result;
  how: 'executed' | 'looked_up';
  /** The row is `applied` already. */
  isStored: boolean;
}

/** Pauses between looks within one attempt; a target that shows its effects at once needs none. */
const POLL_INITIAL_MS = 50;
/** A verify that takes longer than this is not asked again within the attempt. */
const QUICK_MS = 500;

export async function conclude(
  attempt: EffectAttempt,
  held: HeldClaim,
  applied: Applied,
): Promise<OperationOutcome> {
  const verified = attempt.deps.handlers.verify !== undefined;
  const found = await verifyOnce(attempt, held, applied);
  if (found.kind !== 'not_yet') return act(attempt, held, applied, found, verified);
  if (attempt.request.verifyFinal) return giveUp(attempt, held, applied, found.reason);
  if (!applied.isStored) {
    const overtaken = await storeApplied(attempt, held.claim, applied.result, applied.how);
    if (overtaken !== null) return overtaken;
  }
  const later = await poll(attempt, held, applied, found);
  return act(attempt, held, { ...applied, isStored: true }, later, verified);
}

async function act(
  attempt: EffectAttempt,
  held: HeldClaim,
  applied: Applied,
  found: VerifyFound,
  verified: boolean,
): Promise<OperationOutcome> {
  switch (found.kind) {
    case 'verified':
      await attempt.reach('after_verify');
      return commit(attempt, held.claim, applied.result, { verified, how: applied.how });
    case 'mismatch':
      return onMismatch(attempt, held, applied.result, found.reason);
    case 'not_yet':
      return { kind: 'notYet', ...(found.reason !== undefined && { reason: found.reason }) };
    default:
      return found satisfies never;
  }
}

function verifyOnce(attempt: EffectAttempt, held: HeldClaim, { result }: Applied): Promise<VerifyFound> {
  return askVerify(attempt, result.value, [held.lost]);
}

/** Looks again for up to the in-attempt window, while looking is quick; beyond it the workflow polls by timer. */
async function poll(
  attempt: EffectAttempt,
  held: HeldClaim,
  applied: Applied,
  first: VerifyFound,
): Promise<VerifyFound> {
  const endsAt = performance.now() + verifyWindowMs(attempt.plan);
  let found = first;
  for (let pauseMs = POLL_INITIAL_MS; performance.now() + pauseMs < endsAt; pauseMs *= 2) {
    await sleep(pauseMs);
    if (held.isLost || attempt.runtime.signal.aborted) break;
    const askedAt = performance.now();
    found = await verifyOnce(attempt, held, applied);
    if (found.kind !== 'not_yet' || performance.now() - askedAt > QUICK_MS) break;
  }
  return found;
}

/** S2.6: the verify deadline ends in `unknown`, not in failure. */
function giveUp(
  attempt: EffectAttempt,
  held: HeldClaim,
  { result }: Applied,
  reason: string | undefined,
): Promise<OperationOutcome> {
  const why = reason === undefined ? '' : `: ${reason}`;
  const message = `The effect was applied and could not be seen by verify within its deadline${why}`.slice(
    0,
    2_000,
  );
  return raiseAttention(
    attempt,
    held.claim,
    { kind: 'unknown', code: 'outcome_unknown', message },
    { result },
  );
}

/** S2.6: look up first; only an effect that is there is rolled back. */
async function onMismatch(
  attempt: EffectAttempt,
  held: HeldClaim,
  result: Result,
  reason: string,
): Promise<OperationOutcome> {
  const failure: Failure = { kind: 'permanent', code: 'verify_failed', message: reason };
  if (attempt.plan.effect === 'safe') return fail(attempt, held.claim, failure);
  const found = await askLookup(attempt, [held.lost]);
  const options = { type: 'verify_failed', result } as const;
  switch (found.kind) {
    case 'not_applied':
      return fail(attempt, held.claim, failure);
    case 'unknown':
    case 'threw':
      return raiseAttention(attempt, held.claim, { ...failure, kind: 'unknown' }, options);
    case 'applied':
    case 'none':
      return canBeUndone(attempt)
        ? recordMismatch(attempt, held.claim, result, reason)
        : raiseAttention(attempt, held.claim, { ...failure, kind: 'unknown' }, options);
    default:
      return found satisfies never;
  }
}

const canBeUndone = ({ plan }: EffectAttempt): boolean =>
  plan.rollback.kind === 'inBand' || plan.rollback.kind === 'compensate';

/**
 * What a lookup says was applied. An output the contract does not allow is an effect without a usable result: a person
 * must give it.
 */
export async function adoptLookedUp(
  attempt: EffectAttempt,
  held: HeldClaim,
  output: unknown,
): Promise<OperationOutcome> {
  const { result, misfit } = await keepOutput(attempt, output);
  if (misfit !== null)
    return raiseAttention(attempt, held.claim, misfitFailure('lookup', misfit), { result });
  return conclude(attempt, held, { result, how: 'looked_up', isStored: false });
}

export const misfitFailure = (handler: string, misfit: string): Failure => ({
  kind: 'unknown',
  code: 'outcome_unknown',
  message: `The effect was applied, and what the ${handler} handler returned does not fit the contract: ${misfit}`,
});
