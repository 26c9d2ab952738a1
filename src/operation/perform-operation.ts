/**
 * One attempt at one operation: the protocol S2 as a function. It knows no Temporal; an activity and a local activity are
 * two ways of calling it (architecture.md, idea 5).
 *
 * Guarantees: for one operation the effect is sent once however many attempts run, where and until whenever they crash,
 * as far as the action's effect class allows (S5.1); what is answered is in the ledger before it is answered; no promise
 * of the row outruns what is known. On the happy path two ledger transactions: claim and commit.
 * Does not: retry, wait for people, or decide when to look again; the workflow does.
 *
 * Throws `HoldfastError` where the ledger can't be used, and the signal's reason when it was stopped before anything was
 * sent. In both cases the workflow must assume that something may have been sent.
 */
import { HoldfastError } from '../contract/error.ts';
import type { OperationRow } from '../ledger/ledger.ts';
import type { AttemptRequest } from '../task/activity-api.ts';
import type { OperationOutcome } from '../task/outcome.ts';
import { askPrecondition, notChecked } from './asking.ts';
import { Attempt, assertLease } from './attempt.ts';
import { claim } from './claim.ts';
import type { AttemptRuntime, OperationDeps } from './deps.ts';
import { execute } from './execute.ts';
import { decidedOutcome, look, refusedOutcome, staleOutcome, tooLate } from './look.ts';
import type { RefusalCause } from './look.ts';
import { decisionLimit, paced } from './decision-limit.ts';
import { refusedEnd } from './record.ts';
import type { EffectAttempt } from './record.ts';
import { reconcileHeld, takeOver } from './take-over.ts';
import { performInTransaction } from './transactional.ts';
import { performUnrecorded } from './unrecorded.ts';

export async function performOperation(
  deps: OperationDeps,
  request: AttemptRequest,
  runtime: AttemptRuntime,
): Promise<OperationOutcome> {
  const attempt: EffectAttempt = new Attempt(deps, request, runtime);
  assertLease(request);
  if (!request.plan.recorded) return performUnrecorded(attempt);
  const row = await findRow(attempt);
  const decided = look(row, request);
  if (decided !== null) {
    await appendNotes(attempt);
    return decided;
  }
  if (request.purpose === 'settle' || row.state === 'in_flight' || row.state === 'applied')
    return takeOver(attempt);
  return request.plan.transactional ? performInTransaction(attempt) : begin(attempt, row);
}

/** S1.5: the row was inserted before the workflow was started. */
async function findRow(attempt: EffectAttempt): Promise<OperationRow> {
  const { operationId } = attempt.plan;
  const row = await attempt.deps.ledger.find(operationId);
  if (row !== null) return row;
  throw new HoldfastError(
    'internal_error',
    `The ledger has no row of ${operationId}: it was never reserved, or this is another ledger.`,
    {
      details: { operationId },
    },
  );
}

/** S10.3: an answer read from the row has no transaction for the journal's entries to ride in. */
async function appendNotes(attempt: EffectAttempt): Promise<void> {
  const { plan, taskId, journal } = attempt.request;
  if (journal.length === 0) return;
  const { operationId, principal } = plan;
  await attempt.deps.ledger.appendAudit({ taskId, operationId, tenant: principal.tenant, notes: journal });
}

/** Nothing was ever sent: precondition, claim and intent, execution. */
async function begin(attempt: EffectAttempt, row: OperationRow): Promise<OperationOutcome> {
  const { signal } = attempt.runtime;
  const limit = await decisionLimit(attempt, row);
  if (limit.kind === 'spent') return refuseUnclaimed(attempt, limit.reason, 'decision_budget_spent');
  if (limit.kind === 'paced') {
    await appendNotes(attempt);
    return paced(limit.waitMs);
  }
  const found = await askPrecondition(attempt, [signal]);
  if (found.kind === 'fails') return refuseUnclaimed(attempt, found.reason, 'precondition_failed');
  signal.throwIfAborted();
  if (found.kind === 'threw') {
    await appendNotes(attempt);
    return { kind: 'released', failure: notChecked(found.failure) };
  }
  await attempt.reach('before_claim');
  const answer = await claim(attempt, true);
  if (answer.kind !== 'granted') return answer.outcome;
  const { held, before } = answer;
  // Between look and claim another attempt may have begun.
  if (before.state === 'in_flight' || before.state === 'applied') return reconcileHeld(attempt, held, before);
  try {
    return await execute(attempt, held, 'nothing_sent');
  } finally {
    held.letGo();
  }
}

/** S2.2: a guarded write, since between look and here another attempt may have claimed. */
async function refuseUnclaimed(
  attempt: EffectAttempt,
  reason: string,
  cause: RefusalCause,
): Promise<OperationOutcome> {
  const { plan, taskId, ordinal, attempt: number, lease, journal } = attempt.request;
  const { operationId } = plan;
  const request = { operationId, taskId, ordinal, attempt: number, lease, notes: journal };
  const written = await attempt.deps.ledger.refuse(request, reason, refusedEnd(plan, reason, cause));
  if (written.kind === 'written') return refusedOutcome(reason, cause);
  if (written.leaseFence !== undefined) return staleOutcome(written, attempt.request);
  return decidedOutcome(written.row, attempt.request) ?? overtakenUnclaimed(attempt, written.row);
}

function overtakenUnclaimed(attempt: EffectAttempt, row: OperationRow): OperationOutcome {
  // The same attempt, run twice by the engine, is at work elsewhere.
  if (row.attempt === attempt.request.attempt)
    return { kind: 'busy', retryAfterMs: attempt.plan.deadlines.heartbeatMs, reason: 'claimed' };
  return tooLate(row, attempt.request);
}
