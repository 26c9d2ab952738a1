/**
 * What a handler answers when its attempt is over: it was left behind, or its claim was lost while it was at work. Its
 * answer changes no result and is not lost (S2.7, field case 4).
 */
import { remoteTaskIn } from '../contract/handlers.ts';
import type { Claim } from '../task/claim.ts';
import { handleIn } from './hand-over.ts';
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
 * attempts and is only kept. A remote task has only begun: it is watched where the claim still allows that.
 */
export async function keepLateAnswer(
  attempt: EffectAttempt,
  claim: Claim,
  settled: Settled<unknown>,
): Promise<void> {
  if (settled.kind === 'threw') return recordLate(attempt, claim, failedJson(attempt.clean(settled.failure)));
  if (remoteTaskIn(settled.value) !== null) return keepLateHandle(attempt, claim, settled.value);
  const { result, misfit } = await keepOutput(attempt, settled.value);
  if (misfit === null) {
    const written = await persist(() => attempt.deps.ledger.storeApplied(claim, result.stored, 'executed'));
    if (written.kind === 'written') return;
  }
  await recordLate(attempt, claim, appliedJson(result.stored));
}

/** Nobody waited for it, so another execution may have begun meanwhile: what failed there proves nothing about that one. */
async function keepLateHandle(attempt: EffectAttempt, claim: Claim, answered: unknown): Promise<void> {
  const handle = handleIn(answered);
  if (handle !== null) {
    const remote = { handle, inDoubtBefore: true };
    const kept = await persist(() => attempt.deps.ledger.registerRemoteTask(claim, remote));
    if (kept.kind === 'registered' || kept.kind === 'known') return;
  }
  await recordLate(attempt, claim, { kind: 'remote', ...handle });
}
