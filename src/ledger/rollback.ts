/**
 * S6.2: a rollback is an operation of its own, whose row names its parent. Both rows are locked, the parent first, and
 * move together: while one rollback runs, no attempt of the parent can write.
 */
import assert from 'node:assert/strict';
import type { Claim } from '../task/claim.ts';
import type { Failure } from '../task/failure.ts';
import type { JsonObject } from '../task/json.ts';
import type { TaskEnd } from '../task/outcome.ts';
import { beginAttempt, endAttempt, loseAttempt } from './attempt.ts';
import { isCurrent, isHeld, leaseData } from './claim.ts';
import { overtakenBy } from './fence.ts';
import type { Alert, RollbackClaimAnswer, RollbackClaimRequest, RowState, Written } from './ledger.ts';
import { stored } from './row.ts';
import type { OperationTable } from './schema.ts';
import { ended, failureData } from './settle.ts';
import { Held } from './unit.ts';
import type { Unit } from './unit.ts';

/** States of a parent from which a rollback may start or go on. */
const ROLLS_BACK: readonly RowState[] = ['in_flight', 'applied', 'committed', 'rolling_back'];

export async function claimRollback(unit: Unit, request: RollbackClaimRequest): Promise<RollbackClaimAnswer> {
  const parent = await unit.lock(request.parentOperationId);
  const rollback = await unit.tryLock(request.operationId);
  await unit.notes(parent.record, request.taskId, request.notes);
  const { record } = parent;
  if (record.ordinal !== request.ordinal || record.task_id !== request.taskId) {
    return { kind: 'stale', rowAttempt: record.attempt };
  }
  if (record.state === 'rolled_back' && rollback) return { kind: 'done', row: rollback.row };
  const ours = rollback?.record.ordinal === request.ordinal ? rollback.record : null;
  const rowAttempt = Math.max(record.attempt, ours?.attempt ?? 0);
  if (request.attempt < rowAttempt) return { kind: 'stale', rowAttempt };
  if (!ROLLS_BACK.includes(record.state) || record.task_end !== null)
    return { kind: 'closed', row: parent.row };
  const running =
    ours?.attempt === request.attempt ? ours : record.attempt === request.attempt ? record : null;
  const remainingMs = (running?.claimed_until ?? 0) - parent.now;
  if (remainingMs > 0) return { kind: 'busy', retryAfterMs: remainingMs };
  const leaseFence = await overtakenBy(unit.tx, request.lease);
  if (leaseFence !== null) return { kind: 'stale', rowAttempt, leaseFence };
  return grant(unit, parent, rollback, request);
}

function grant(
  unit: Unit,
  parent: Held,
  rollback: Held | null,
  request: RollbackClaimRequest,
): RollbackClaimAnswer {
  loseAttempt(unit, parent.record, parent.now);
  unit.save(parent, {
    by: 'claimRollback',
    to: 'rolling_back',
    columns: {
      attempt: request.attempt,
      generation: parent.record.generation + 1,
      claimed_until: null,
      attempt_deadline: null,
    },
    event: 'operation.rollback_claimed',
    data: { reason: request.reason, rollback: request.operationId, ...leaseData(request.lease) },
  });
  const claimed = rollback ? takeOver(unit, rollback, request) : insertRollback(unit, parent, request);
  beginAttempt(unit, claimed, request.taskId, true);
  const { operation_id: operationId, task_id: taskId, ordinal, attempt, generation } = claimed.record;
  const claimedUntil = claimed.now + request.claimMs;
  const { lease } = request;
  return {
    kind: 'granted',
    claim: { operationId, taskId, ordinal, attempt, generation, claimedUntil, ...(lease && { lease }) },
    parent: parent.row,
  };
}

function takeOver(unit: Unit, rollback: Held, request: RollbackClaimRequest): Held {
  const { record, now } = rollback;
  loseAttempt(unit, record, now);
  unit.save(rollback, {
    by: 'claimRollback',
    to: 'in_flight',
    columns: {
      task_id: request.taskId,
      ordinal: request.ordinal,
      attempt: request.attempt,
      generation: record.generation + 1,
      claimed_until: now + request.claimMs,
      attempt_deadline: now + request.attemptMs,
      executions: record.executions + 1,
    },
    event: 'operation.rollback_intended',
    data: { parent: request.parentOperationId },
  });
  return rollback;
}

function insertRollback(unit: Unit, parent: Held, request: RollbackClaimRequest): Held {
  const { now } = parent;
  const record: OperationTable = {
    ...parent.record,
    operation_id: request.operationId,
    key: `rollback of ${request.parentOperationId}`,
    state: 'in_flight',
    attempt: request.attempt,
    generation: 1,
    claimed_until: now + request.claimMs,
    attempt_deadline: now + request.attemptMs,
    executions: 1,
    result: null,
    failure: null,
    late_outcome: null,
    parent_operation_id: request.parentOperationId,
    attachable: 0,
    edited: null,
    created_at: now,
    updated_at: now,
  };
  unit.tx.send(
    unit.tx.statements.get('insert rollback', record, (db, slots) =>
      db.insertInto('operation').values(slots),
    ),
    1,
  );
  const held = new Held({ record, now });
  unit.inserted(held, 'claimRollback', 'operation.rollback_intended', { parent: request.parentOperationId });
  return held;
}

export async function finishRollback(
  unit: Unit,
  claim: Claim,
  parentOperationId: string,
  remains: string | null,
  end: TaskEnd,
): Promise<Written> {
  const { parent, rollback } = await lockBoth(unit, claim, parentOperationId);
  if (isCurrent(rollback.record, claim) && rollback.record.state === 'committed') {
    return { kind: 'written', row: rollback.row };
  }
  if (!isRunning(parent, rollback, claim)) return { kind: 'stale', row: rollback.row };
  const leaseFence = await overtakenBy(unit.tx, claim.lease);
  if (leaseFence !== null) return { kind: 'stale', row: rollback.row, leaseFence };
  unit.save(parent, {
    by: 'finishRollback',
    to: 'rolled_back',
    columns: ended(end),
    event: 'operation.rolled_back',
    data: { remains, end: { ...end } as unknown as JsonObject },
  });
  finish(unit, rollback, {
    by: 'finishRollback',
    to: 'committed',
    columns: { result: stored({ kind: 'inline', value: { remains } }), failure: null, task_end: stored(end) },
    data: { remains },
  });
  return { kind: 'written', row: rollback.row };
}

export async function releaseRollback(unit: Unit, claim: Claim, failure: Failure): Promise<Written> {
  const parentOperationId = await parentOf(unit, claim.operationId);
  const { rollback } = await lockBoth(unit, claim, parentOperationId);
  const { record } = rollback;
  if (isCurrent(record, claim) && record.state === 'released') return { kind: 'written', row: rollback.row };
  if (record.state !== 'in_flight' || !isHeld(record, claim)) return { kind: 'stale', row: rollback.row };
  const leaseFence = await overtakenBy(unit.tx, claim.lease);
  if (leaseFence !== null) return { kind: 'stale', row: rollback.row, leaseFence };
  finish(unit, rollback, {
    by: 'releaseRollback',
    to: 'released',
    columns: { failure: stored(failure) },
    data: { failure: failureData(failure) },
  });
  return { kind: 'written', row: rollback.row };
}

export async function rollbackAttention(
  unit: Unit,
  claim: Claim,
  parentOperationId: string,
  failure: Failure,
  alert: Alert,
): Promise<Written> {
  const { parent, rollback } = await lockBoth(unit, claim, parentOperationId);
  if (isCurrent(rollback.record, claim) && rollback.record.state === 'attention') {
    return { kind: 'written', row: rollback.row };
  }
  if (!isRunning(parent, rollback, claim)) return { kind: 'stale', row: rollback.row };
  const leaseFence = await overtakenBy(unit.tx, claim.lease);
  if (leaseFence !== null) return { kind: 'stale', row: rollback.row, leaseFence };
  const columns = { failure: stored(failure), attention_about: 'rollback' } as const;
  const data = { failure: failureData(failure) };
  unit.save(parent, {
    by: 'rollbackAttention',
    to: 'attention',
    columns,
    event: 'operation.attention',
    data,
  });
  finish(unit, rollback, { by: 'rollbackAttention', to: 'attention', columns, data });
  unit.alert(alert);
  return { kind: 'written', row: rollback.row };
}

/** The rollback's row leaves `in_flight`, and its claim is over. */
function finish(
  unit: Unit,
  rollback: Held,
  { by, to, columns, data }: { by: string; to: RowState; columns: Partial<OperationTable>; data: JsonObject },
): void {
  const { operation_id: operationId, generation } = rollback.record;
  unit.save(rollback, {
    by,
    to,
    columns: { ...columns, claimed_until: null, attempt_deadline: null },
    event: `operation.rollback_${to}`,
    data,
  });
  endAttempt(unit, { operationId, generation }, to, rollback.now);
}

/** The claim is the rollback's, and the parent still rolls back under it: no later task has taken the parent over. */
const isRunning = (parent: Held, rollback: Held, claim: Claim): boolean =>
  isHeld(rollback.record, claim) &&
  rollback.record.state === 'in_flight' &&
  parent.record.state === 'rolling_back' &&
  parent.record.ordinal === claim.ordinal &&
  parent.record.attempt === claim.attempt;

async function lockBoth(
  unit: Unit,
  claim: Claim,
  parentOperationId: string,
): Promise<{ parent: Held; rollback: Held }> {
  const parent = await unit.lock(parentOperationId);
  const rollback = await unit.lock(claim.operationId);
  assert.equal(
    rollback.record.parent_operation_id,
    parentOperationId,
    'a rollback names its parent for good',
  );
  return { parent, rollback };
}

/** Unlocked: who the parent is never changes, and the parent is locked first. */
async function parentOf(unit: Unit, operationId: string): Promise<string> {
  const record = await unit.tx.kysely
    .selectFrom('operation')
    .select('parent_operation_id')
    .where('operation_id', '=', operationId)
    .executeTakeFirst();
  assert(record?.parent_operation_id, `operation ${operationId} is no rollback that was claimed`);
  return record.parent_operation_id;
}
