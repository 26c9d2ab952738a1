/** A handler that was left behind answers after all: nobody waits for it, and what it says is not lost (field case 4). */
import type { Claim } from '../task/claim.ts';
import type { Settled } from './handler-call.ts';
import { persist } from './persist.ts';
import { appliedJson, failedJson, recordLate } from './record.ts';
import type { EffectAttempt } from './record.ts';
import { keepOutput } from './keep-result.ts';

/**
 * An applied effect goes into the row while the claim is still the row's, so that the next attempt finds it; else it is
 * kept as the late outcome (S2.7). A failure proves nothing about other attempts and is only kept.
 */
export function recordLateAnswer(
  attempt: EffectAttempt,
  claim: Claim,
  answer: Promise<Settled<unknown>>,
): void {
  void answer
    .then((settled) => keep(attempt, claim, settled))
    .catch(() => {
      const { operationId } = claim;
      attempt.deps.log?.warn(
        { operationId, attempt: claim.attempt },
        'the late outcome of an attempt could not be recorded',
      );
    });
}

async function keep(attempt: EffectAttempt, claim: Claim, settled: Settled<unknown>): Promise<void> {
  if (settled.kind === 'threw') return recordLate(attempt, claim, failedJson(attempt.clean(settled.failure)));
  const kept = await keepOutput(attempt, settled.value);
  const written = await persist(() =>
    attempt.deps.ledger.storeApplied(claim, kept.result.stored, 'executed'),
  );
  if (written.kind === 'stale') await recordLate(attempt, claim, appliedJson(kept.result.stored));
}
