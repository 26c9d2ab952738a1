/** The claim on a rollback (S6.2), what it is to undo, and what a rollback that is already decided stands for. */
import type { OperationRow, Transitions } from '../ledger/ledger.ts';
import type { Claim } from '../task/claim.ts';
import { rolledBackEnd } from '../task/ends.ts';
import type { Failure } from '../task/failure.ts';
import type { Json } from '../task/json.ts';
import type { RollbackOutcome, TaskEnd } from '../task/outcome.ts';
import { askLookup, lookupKindOf } from './asking.ts';
import { claimMsOf } from './attempt.ts';
import { isRecallable, keepOutput, recallValue } from './keep-result.ts';
import { alertOf } from './record.ts';
import type { RollbackAttempt } from './undo.ts';

type Claimed =
  { kind: 'granted'; claim: Claim; parent: OperationRow } | { kind: 'refused'; outcome: RollbackOutcome };

export async function claimRollback(
  attempt: RollbackAttempt,
  transitions: Pick<Transitions, 'claimRollback' | 'appendAudit'>,
): Promise<Claimed> {
  const { plan, taskId, ordinal, attempt: number, reason, journal } = attempt.request;
  const answer = await transitions.claimRollback({
    parentOperationId: plan.operationId,
    operationId: attempt.operationId,
    taskId,
    ordinal,
    attempt: number,
    claimMs: claimMsOf(plan, false),
    attemptMs: plan.deadlines.attemptMs,
    reason,
    lease: attempt.request.lease,
    notes: journal,
  });
  if (answer.kind === 'granted') return answer;
  if (answer.kind === 'stale')
    return { kind: 'refused', outcome: staleRollback(answer.rowAttempt, answer.leaseFence) };
  if (answer.kind === 'busy') {
    const { retryAfterMs } = answer;
    const failure: Failure = {
      kind: 'notApplied',
      code: 'attempt_failed',
      message: 'Another attempt at this rollback is at work.',
      retryAfterMs,
    };
    return { kind: 'refused', outcome: { kind: 'retry', failure } };
  }
  if (answer.kind === 'done')
    return { kind: 'refused', outcome: { kind: 'rolledBack', ...remainsOf(answer.row) } };
  return { kind: 'refused', outcome: await closedOutcome(attempt, transitions, answer.row) };
}

export const staleRollback = (rowAttempt: number, leaseFence: number | undefined): RollbackOutcome => ({
  kind: 'fenceStale',
  rowAttempt,
  ...(leaseFence !== undefined && { leaseFence }),
});

/**
 * What an effect that is not to be undone any more stands for. No later attempt would find it otherwise, be its end
 * recorded or its row in another state: a person is told.
 */
async function closedOutcome(
  attempt: RollbackAttempt,
  { appendAudit }: Pick<Transitions, 'appendAudit'>,
  row: OperationRow,
): Promise<RollbackOutcome> {
  if (row.state === 'rolled_back') return { kind: 'rolledBack' };
  if (row.state === 'attention')
    return { kind: 'attention', failure: row.failure ?? cannot('No reason was recorded.') };
  const failure = cannot(
    `The ledger allows no rollback any more: the operation is ${row.state}${row.end ? ' and has ended' : ''}.`,
  );
  const alert = alertOf(attempt, 'rollback_failed', `The effect could not be undone: ${failure.message}`);
  const { operationId, principal } = attempt.plan;
  const { taskId } = attempt.request;
  await appendAudit({ taskId, operationId, tenant: principal.tenant, notes: [], alert });
  return { kind: 'attention', failure };
}

function remainsOf(row: OperationRow): { remains?: string } {
  const value = row.result?.kind === 'inline' ? row.result.value : null;
  const remains =
    typeof value === 'object' && value !== null && !Array.isArray(value) ? value['remains'] : null;
  return typeof remains === 'string' ? { remains } : {};
}

/** Why Holdfast has no way to undo this effect; null when it has (S6.1). */
export function cannotUndo({ deps, plan }: RollbackAttempt): Failure | null {
  const { kind } = plan.rollback;
  const hasWay = deps.handlers.rollback !== undefined && (kind === 'inBand' || kind === 'compensate');
  return hasWay ? null : cannot(`This effect is not undone by Holdfast (rollback ${kind}).`);
}

/**
 * An earlier rollback took effect and its answer was lost: a conclusive lookup that no longer finds the effect is the
 * proof. Asked only where the handler could not be given the whole result any more.
 */
export async function isUndoneAlready(
  attempt: RollbackAttempt,
  signals: readonly AbortSignal[],
  parent: OperationRow,
): Promise<boolean> {
  if (isRecallable(attempt, parent) || lookupKindOf(attempt) !== 'conclusive') return false;
  return (await askLookup(attempt, signals)).kind === 'not_applied';
}

/** Whole, as the handler returned it: the row's own, or where that is redacted or gone the target's. */
export async function resultToUndo(
  attempt: RollbackAttempt,
  signals: readonly AbortSignal[],
  parent: OperationRow,
): Promise<Json> {
  if (!isRecallable(attempt, parent)) {
    const found = await askLookup(attempt, signals);
    const kept = found.kind === 'applied' ? await keepOutput(attempt, found.output) : null;
    if (kept !== null && kept.misfit === null) return kept.result.value;
  }
  return (await recallValue(attempt, parent.result)) ?? null;
}

export function endOfRollback(attempt: RollbackAttempt, remains: string | undefined): TaskEnd {
  const { plan, reason } = attempt.request;
  return rolledBackEnd({ plan, cancelRequested: reason === 'cancelled' }, reason, remains);
}

const cannot = (message: string): Failure => ({ kind: 'permanent', code: 'rollback_failed', message });
