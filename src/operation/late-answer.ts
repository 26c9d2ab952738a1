/**
 * What a handler answers when its attempt is over: it was left behind, or its claim was lost while it was at work. Its
 * answer changes no result and is not lost (S2.7, field case 4).
 */
import type { Claim } from '../task/claim.ts';
import type { Settled } from './handler-call.ts';
import { persist } from './persist.ts';
import { appliedJson, failedJson, recordLate } from './record.ts';
import type { EffectAttempt } from './record.ts';
import { keepOutput } from './keep-result.ts';

/** For a handler that was left behind: nobody waits for it. */
export function recordLateAnswer(
  attempt: EffectAttempt,
  claim: Claim,
  answer: Promise<Settled<unknown>>,
): void {
  void answer
    .then((settled) => keepLateAnswer(attempt, claim, settled))
    .catch(() => {
      const { operationId } = claim;
      attempt.deps.log?.warn(
        { operationId, attempt: claim.attempt },
        'the late outcome of an attempt could not be recorded',
      );
    });
}

/**
 * An applied effect goes into the row while the claim is still the row's, so that the next attempt finds it; else it is
 * kept as the late outcome, as is a result that the contract does not allow. A failure proves nothing about other
 * attempts and is only kept.
 */
export async function keepLateAnswer(
  attempt: EffectAttempt,
  claim: Claim,
  settled: Settled<unknown>,
): Promise<void> {
  if (settled.kind === 'threw') return recordLate(attempt, claim, failedJson(attempt.clean(settled.failure)));
  const { result, misfit } = await keepOutput(attempt, settled.value);
  if (misfit === null) {
    const written = await persist(() => attempt.deps.ledger.storeApplied(claim, result.stored, 'executed'));
    if (written.kind === 'written') return;
  }
  await recordLate(attempt, claim, appliedJson(result.stored));
}
