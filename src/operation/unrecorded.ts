/**
 * A `safe` action run while the ledger is away, where its contract allows that (field case 16). It changes nothing, so
 * there is nothing to claim, to reconcile or to commit.
 */
import { remoteTaskIn } from '../contract/handlers.ts';
import type { Failure } from '../task/failure.ts';
import type { OperationOutcome } from '../task/outcome.ts';
import { askPrecondition, askVerify, notChecked } from './asking.ts';
import { composeOutput } from './keep-result.ts';
import type { EffectAttempt } from './record.ts';
import { NO_RESULT } from './result.ts';

export async function performUnrecorded(attempt: EffectAttempt): Promise<OperationOutcome> {
  const { plan, purpose, attempt: number } = attempt.request;
  if (plan.effect !== 'safe') throw new Error(`${plan.action} is ${plan.effect} and may not run unrecorded`);
  const signals = [attempt.runtime.signal];
  if (purpose === 'settle')
    return { kind: 'released', failure: again('Nothing is in doubt: the action changes nothing.') };
  const found = await askPrecondition(attempt, signals);
  if (found.kind === 'fails') return { kind: 'refused', reason: found.reason };
  if (found.kind === 'threw') return { kind: 'released', failure: notChecked(found.failure) };
  const claim = {
    ordinal: attempt.request.ordinal,
    attempt: number,
    generation: 0,
    operationId: plan.operationId,
    taskId: attempt.request.taskId,
    claimedUntil: 0,
  };
  const answer = await attempt.call('execute', signals, (signal) =>
    attempt.deps.handlers.execute(
      attempt.input(),
      attempt.executeContext(signal, claim, () => Promise.resolve(), { isFirstSend: false }),
    ),
  );
  if (answer.kind === 'returned' && remoteTaskIn(answer.value) !== null)
    return { kind: 'released', failure: again('Only a recorded action’s remote task can be watched.') };
  if (answer.kind === 'returned') return judgeOutput(attempt, answer.value);
  const { failure } = answer;
  if (failure.kind === 'permanent') return { kind: 'failed', failure };
  return failure.kind === 'unknown'
    ? { kind: 'unknown', failure, attention: false }
    : { kind: 'released', failure };
}

async function judgeOutput(attempt: EffectAttempt, output: unknown): Promise<OperationOutcome> {
  const { composed, misfit } = composeOutput(attempt, output);
  if (misfit !== null)
    return { kind: 'released', failure: again(`The result does not fit the contract: ${misfit}`) };
  const found = await askVerify(attempt, composed.value, [attempt.runtime.signal]);
  switch (found.kind) {
    case 'verified': {
      // Without a ledger there is nowhere to put a large result.
      const { answer } = composed;
      const result = answer.kind === 'reference' ? { ...answer, kind: 'dropped' as const } : answer;
      return { kind: 'committed', result: result ?? NO_RESULT, replayed: false };
    }
    case 'mismatch':
      return { kind: 'failed', failure: { kind: 'permanent', code: 'verify_failed', message: found.reason } };
    case 'not_yet':
      if (!attempt.request.verifyFinal)
        return { kind: 'notYet', ...(found.reason !== undefined && { reason: found.reason }) };
      return {
        kind: 'failed',
        failure: {
          kind: 'permanent',
          code: 'verify_failed',
          message: 'The result could not be verified in time.',
        },
      };
    default:
      return found satisfies never;
  }
}

const again = (message: string): Failure => ({ kind: 'notApplied', code: 'attempt_failed', message });
