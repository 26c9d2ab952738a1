/**
 * Writing down how an attempt ended, and what it is told when it comes too late (S2.7).
 *
 * Each function makes one ledger transition under the attempt's claim and answers the outcome it stands for. A stale
 * write changes no result: what was to be written is kept as the late outcome.
 */
import { LIMITS } from '../contract/limits.ts';
import { cut } from '../contract/text.ts';
import type { Alert, Written } from '../ledger/ledger.ts';
import type { AttemptRequest } from '../task/activity-api.ts';
import type { Claim } from '../task/claim.ts';
import { committedEnd, endedWith } from '../task/ends.ts';
import type { Failure } from '../task/failure.ts';
import type { Json } from '../task/json.ts';
import type { OperationOutcome, StoredResult, TaskEnd } from '../task/outcome.ts';
import type { Plan } from '../task/plan.ts';
import type { Attempt } from './attempt.ts';
import { refusedOutcome, staleOutcome } from './look.ts';
import type { RefusalCause } from './look.ts';
import { persist } from './persist.ts';
import type { Result } from './result.ts';

export type EffectAttempt = Attempt<AttemptRequest>;
type How = 'executed' | 'looked_up';

/** Null where a cancel, or the failure of the procedure it is a step of, may still undo the effect: the workflow records that task's end (S7.4). */
export function commitEnd(plan: Plan): TaskEnd | null {
  return plan.onCancel === 'rollback' || plan.stepOf != null
    ? null
    : committedEnd({ plan, cancelRequested: false });
}

const failedEnd = (plan: Plan, failure: Failure): TaskEnd =>
  endedWith(
    { plan, cancelRequested: false },
    failure.code === 'verify_failed' ? 'verify_failed' : 'permanent_failure',
    failure.message,
    failure,
  );

/** S6.5: a person hears of a failed verification, also where nothing is left standing. */
export function failedWith(attempt: EffectAttempt, failure: Failure): [TaskEnd, Alert?] {
  const end = failedEnd(attempt.plan, failure);
  if (end.cause !== 'verify_failed') return [end];
  const message = `What was reported could not be verified, and nothing of it stands: ${failure.message}`;
  return [end, alertOf(attempt, 'verify_failed', message)];
}

export const refusedEnd = (
  plan: Plan,
  reason: string,
  cause: RefusalCause = 'precondition_failed',
): TaskEnd => endedWith({ plan, cancelRequested: false }, cause, reason);

export async function commit(
  attempt: EffectAttempt,
  claim: Claim,
  result: Result,
  options: { verified: boolean; how: How },
): Promise<OperationOutcome> {
  const { ledger } = attempt.deps;
  const end = commitEnd(attempt.plan);
  const written = await persist(() => ledger.commit(claim, result.stored, { ...options, end }));
  if (written.kind === 'stale') return late(attempt, claim, written, appliedJson(result.stored));
  await attempt.reach('after_commit');
  return { kind: 'committed', result: result.answer, replayed: false };
}

/** Null when stored; else what the attempt is told. */
export async function storeApplied(
  attempt: EffectAttempt,
  claim: Claim,
  result: Result,
  how: How,
): Promise<OperationOutcome | null> {
  const written = await persist(() => attempt.deps.ledger.storeApplied(claim, result.stored, how));
  return written.kind === 'written' ? null : late(attempt, claim, written, appliedJson(result.stored));
}

export async function release(
  attempt: EffectAttempt,
  claim: Claim,
  failure: Failure,
): Promise<OperationOutcome> {
  const written = await persist(() => attempt.deps.ledger.release(claim, failure));
  return landed(attempt, claim, written, { kind: 'released', failure });
}

export async function fail(
  attempt: EffectAttempt,
  claim: Claim,
  failure: Failure,
): Promise<OperationOutcome> {
  const written = await persist(() =>
    attempt.deps.ledger.fail(claim, failure, ...failedWith(attempt, failure)),
  );
  return landed(attempt, claim, written, { kind: 'failed', failure });
}

export async function refuse(
  attempt: EffectAttempt,
  claim: Claim,
  reason: string,
  cause: RefusalCause,
): Promise<OperationOutcome> {
  const written = await persist(() =>
    attempt.deps.ledger.refuse({ claim }, reason, refusedEnd(attempt.plan, reason, cause)),
  );
  return landed(attempt, claim, written, refusedOutcome(reason, cause));
}

/** S6.5: the effect is not as promised; it is to be undone and a person is told. */
export async function recordMismatch(
  attempt: EffectAttempt,
  claim: Claim,
  result: Result,
  reason: string,
): Promise<OperationOutcome> {
  const alert = alertOf(
    attempt,
    'verify_failed',
    `The effect is not as promised and is being undone: ${reason}`,
  );
  const written = await persist(() => attempt.deps.ledger.mismatched(claim, result.stored, reason, alert));
  if (written.kind === 'written') return { kind: 'mismatch', reason };
  return late(attempt, claim, written, appliedJson(result.stored));
}

/** S3.5: it can't be known here; a person must look. `result` when something is known to be applied. */
export async function raiseAttention(
  attempt: EffectAttempt,
  claim: Claim,
  failure: Failure,
  options: { type?: Alert['type']; result?: Result } = {},
): Promise<OperationOutcome> {
  const alert = alertOf(attempt, options.type ?? 'needs_attention', failure.message);
  const stored = options.result?.stored;
  const written = await persist(() => attempt.deps.ledger.raiseAttention(claim, failure, alert, stored));
  if (written.kind === 'written') return { kind: 'unknown', failure, attention: true };
  return late(attempt, claim, written, stored === undefined ? failedJson(failure) : appliedJson(stored));
}

async function landed(
  attempt: EffectAttempt,
  claim: Claim,
  written: Written,
  outcome: OperationOutcome & { failure?: Failure },
): Promise<OperationOutcome> {
  if (written.kind === 'written') return outcome;
  return late(attempt, claim, written, {
    kind: outcome.kind,
    ...(outcome.failure && { failure: asJson(outcome.failure) }),
  });
}

/** S2.7: what an overtaken attempt brought about is kept and changes no result. One that sent nothing has nothing to tell. */
async function late(
  attempt: EffectAttempt,
  claim: Claim,
  stale: Extract<Written, { kind: 'stale' }>,
  outcome: Json,
): Promise<OperationOutcome> {
  if (attempt.hasSent) await recordLate(attempt, claim, outcome);
  return staleOutcome(stale, attempt.request);
}

export async function recordLate(attempt: Attempt, claim: Claim, outcome: Json): Promise<void> {
  if (attempt.plan.effect === 'safe') return; // nothing took place that could have done so twice
  const alert = alertOf(
    attempt,
    'possible_duplicate',
    'An attempt that was taken over reported its outcome after another had begun: the effect may have taken place twice.',
  );
  await persist(() => attempt.deps.ledger.recordLate(claim, outcome, alert));
}

export const appliedJson = (stored: StoredResult): Json => ({ kind: 'applied', result: asJson(stored) });
export const failedJson = (failure: Failure): Json => ({ kind: 'failed', failure: asJson(failure) });
/** These types are plain JSON by construction; an interface just has no index signature. */
const asJson = (value: StoredResult | Failure): Json => value as unknown as Json;

export function alertOf(attempt: Attempt, type: Alert['type'], message: string): Alert {
  const { plan, request } = attempt;
  return {
    type,
    taskId: request.taskId,
    operationId: plan.operationId,
    tenant: plan.principal.tenant,
    action: plan.action,
    message: cut(message, LIMITS.failureMessageLengthMax.value),
    data: { attempt: request.attempt, ordinal: request.ordinal },
  };
}
