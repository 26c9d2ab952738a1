/**
 * S2.3: who may act on an operation, until when. A claim that was granted is newer than every one before it; what an
 * older holder writes later is stale.
 */
import type { ExpressionBuilder } from 'kysely';
import type { Claim, HeldLease } from '../task/claim.ts';
import type { JsonObject } from '../task/json.ts';
import { beginAttempt, intendAttempt, loseAttempt } from './attempt.ts';
import { overtakenBy } from './fence.ts';
import type { ClaimAnswer, ClaimRequest, RowState, Written } from './ledger.ts';
import { stored } from './row.ts';
import type { OperationTable, Schema } from './schema.ts';
import type { Queries } from './store.ts';
import type { Held, Unit } from './unit.ts';
import { forgetBefore } from './upstream-memory.ts';

/** States in which an attempt has something to do. */
const CLAIMABLE: readonly RowState[] = ['reserved', 'released', 'in_flight', 'applied'];
/** Of these, the states in which nothing is in doubt, so that a claim may carry the intent to execute. */
const NOTHING_IN_DOUBT: readonly RowState[] = ['reserved', 'released'];

export type Place = Pick<Claim, 'taskId' | 'ordinal' | 'attempt'>;

/** True while `(ordinal, attempt, generation)` are still the row's (S2.7). */
export const isCurrent = (record: OperationTable, claim: Claim): boolean =>
  record.ordinal === claim.ordinal &&
  record.attempt === claim.attempt &&
  record.generation === claim.generation;

/** True while the claim is current and was not given back (released, closed, ended). */
export const isHeld = (record: OperationTable, claim: Claim): boolean =>
  isCurrent(record, claim) && record.claimed_until !== null;

/** A row whose task is another one has been reserved or recovered since: the asker is too late. */
export const isSuperseded = (record: OperationTable, place: Place): boolean =>
  record.ordinal !== place.ordinal || record.task_id !== place.taskId;

export async function claim(unit: Unit, request: ClaimRequest): Promise<ClaimAnswer> {
  const held = await unit.lock(request.operationId);
  const { record, now } = held;
  await unit.notes(record, request.taskId, request.notes);
  const superseded = isSuperseded(record, request);
  if (superseded || request.attempt < record.attempt) {
    return { kind: 'stale', rowAttempt: record.attempt, superseded };
  }
  if (record.task_end !== null || !CLAIMABLE.includes(record.state)) return { kind: 'closed', row: held.row };
  const remainingMs = request.attempt === record.attempt ? (record.claimed_until ?? 0) - now : 0;
  if (remainingMs > 0) return { kind: 'busy', retryAfterMs: remainingMs };
  const leaseFence = await overtakenBy(unit.tx, request.lease);
  if (leaseFence !== null)
    return { kind: 'stale', rowAttempt: record.attempt, superseded: false, leaseFence };
  const isIntent = request.executing && NOTHING_IN_DOUBT.includes(record.state);
  // Were it kept, a crash before the next reading would make it pass for what was there before this execution.
  if (isIntent && record.executions > 0) await forgetBefore(unit.tx, request.operationId);
  return grant(unit, held, request, isIntent);
}

/**
 * The intent rides in the claim where nothing is in doubt. Where something is, the claim is taken to reconcile, and the
 * earlier execution's deadline is kept: `intend` must precede another execution (S2.4).
 */
function grant(unit: Unit, held: Held, request: ClaimRequest, isIntent: boolean): ClaimAnswer {
  const before = held.row;
  const { record, now } = held;
  const claimedUntil = now + request.claimMs;
  const { edited = null, lease } = request;
  loseAttempt(unit, record, now);
  unit.save(held, {
    by: 'claim',
    to: isIntent ? 'in_flight' : record.state,
    columns: {
      attempt: request.attempt,
      generation: record.generation + 1,
      claimed_until: claimedUntil,
      edited: edited === null ? null : stored(edited),
      ...(isIntent && { attempt_deadline: now + request.attemptMs, executions: record.executions + 1 }),
    },
    event: 'operation.claimed',
    data: {
      executing: isIntent,
      claimedUntil,
      ...(edited !== null && { edited: { ...edited, fingerprint: { ...edited.fingerprint } } }),
      ...(isIntent && { attemptDeadline: now + request.attemptMs }),
      ...leaseData(lease),
    },
  });
  beginAttempt(unit, held, request.taskId, isIntent);
  const { operation_id: operationId, task_id: taskId, ordinal, attempt, generation } = held.record;
  return {
    kind: 'granted',
    claim: { operationId, taskId, ordinal, attempt, generation, claimedUntil, ...(lease && { lease }) },
    before,
  };
}

/** S10.4: under which grant it was sent. */
export const leaseData = (lease: HeldLease | undefined): JsonObject =>
  lease === undefined ? {} : { lease: { resource: lease.resource, fence: lease.fence } };

export async function intend(
  unit: Unit,
  claim: Claim,
  { claimMs, attemptMs }: { claimMs: number; attemptMs: number },
): Promise<Written> {
  const held = await unit.lock(claim.operationId);
  const { record, now } = held;
  const isOpen = record.state === 'in_flight' || NOTHING_IN_DOUBT.includes(record.state);
  if (!isHeld(record, claim) || !isOpen || record.task_end !== null) return { kind: 'stale', row: held.row };
  const leaseFence = await overtakenBy(unit.tx, claim.lease);
  if (leaseFence !== null) return { kind: 'stale', row: held.row, leaseFence };
  const attemptDeadline = Math.max(now + attemptMs, record.attempt_deadline ?? 0);
  unit.save(held, {
    by: 'intend',
    to: 'in_flight',
    columns: {
      claimed_until: Math.max(now + claimMs, record.claimed_until ?? 0),
      attempt_deadline: attemptDeadline,
      executions: record.executions + 1,
    },
    event: 'operation.intended',
    data: { attemptDeadline },
  });
  intendAttempt(unit, claim);
  return { kind: 'written', row: held.row };
}

/**
 * Extends a claim that is still the row's; never shortens it (S8.5). No audit entry: a heartbeat is no transition.
 * False: taken over, given back or ended.
 */
export async function renew(
  { query, statements, clock }: Queries,
  claim: Claim,
  claimMs: number,
): Promise<boolean> {
  const { operationId, ordinal, attempt, generation } = claim;
  const values = {
    operationId,
    ordinal,
    attempt,
    generation,
    claimMs,
    now: clock.value(),
    ...leaseSlots(claim),
  };
  const rows = await query(
    statements.get('renew claim', values, (db, slots) =>
      db
        .updateTable('operation')
        .set((eb) => {
          const until = eb(clock.expression(slots.now), '+', slots.claimMs);
          return {
            claimed_until: eb
              .case()
              .when('claimed_until', '>', until)
              .then(eb.ref('claimed_until'))
              .else(until)
              .end(),
          };
        })
        .where('operation_id', '=', slots.operationId)
        .where('ordinal', '=', slots.ordinal)
        .where('attempt', '=', slots.attempt)
        .where('generation', '=', slots.generation)
        .where('claimed_until', 'is not', null)
        .where('task_end', 'is', null)
        .where((eb) => noNewerFence(eb, slots))
        .returning('operation_id'),
    ),
  );
  return rows.length > 0;
}

/** S2.5: true while the claim is the row's and runs: past its end another attempt may take over at any moment. */
export async function owns({ read, statements, clock }: Queries, claim: Claim): Promise<boolean> {
  const { operationId, ordinal, attempt, generation } = claim;
  const values = { operationId, ordinal, attempt, generation, now: clock.value(), ...leaseSlots(claim) };
  const rows = await read(
    statements.get('owns claim', values, (db, slots) =>
      db
        .selectFrom('operation')
        .select('operation_id')
        .where('operation_id', '=', slots.operationId)
        .where('ordinal', '=', slots.ordinal)
        .where('attempt', '=', slots.attempt)
        .where('generation', '=', slots.generation)
        .where('claimed_until', '>', clock.expression(slots.now))
        .where('task_end', 'is', null)
        .where((eb) => noNewerFence(eb, slots)),
    ),
  );
  return rows.length > 0;
}

/** Without a lease it names no resource, of which no fence was ever seen. */
const leaseSlots = ({ lease }: Claim) => ({ leaseId: lease?.id ?? '', leaseFence: lease?.fence ?? 0 });

/** S8.3: the lease has not passed on to somebody who wrote. */
function noNewerFence(
  { not, exists, selectFrom }: ExpressionBuilder<Schema, 'operation'>,
  slots: { leaseId: string; leaseFence: number },
) {
  const newer = selectFrom('fence')
    .select('fence.resource')
    .where('fence.resource', '=', slots.leaseId)
    .where('fence.fence', '>', slots.leaseFence);
  return not(exists(newer));
}
