/**
 * S1.5, S1.6: the row before the workflow. Exactly one of any number of callers is answered `fresh`, since the insert
 * and the lock on the row decide, not a look before.
 */
import assert from 'node:assert/strict';
import { differingPaths } from '../contract/redact.ts';
import { taskIdOf } from '../contract/ids.ts';
import { isReportedApplied } from '../task/outcome.ts';
import type { Json, JsonObject } from '../task/json.ts';
import type { OperationRow, Reservation, Reserved, RowState } from './ledger.ts';
import { stored } from './row.ts';
import type { OperationTable } from './schema.ts';
import { Held } from './unit.ts';
import type { Unit } from './unit.ts';
import { forgetBefore } from './upstream-memory.ts';

/** With its end recorded, a row in one of these has nothing to keep: the key may be used again (S1.6). */
const NOTHING_SENT: readonly RowState[] = ['reserved', 'released', 'refused'];

/** Each further round means that an equal call ended between two statements. */
const ROUNDS_MAX = 20;

export async function reserve(unit: Unit, request: Reservation): Promise<Reserved> {
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const inserted = await insert(unit, request);
    if (inserted) return begin(unit, inserted, request);
    const met = await unit.tryLock(request.operationId);
    if (met) return answerFor(unit, met, request);
    const equal = await lockAttachable(unit, request);
    if (equal) return { kind: 'open', row: equal.row, attached: true };
    // The equal call that kept us from inserting has ended meanwhile.
  }
  return assert.fail(`operation ${request.operationId} can be neither inserted nor found`);
}

function begin(unit: Unit, held: Held, request: Reservation): Reserved {
  unit.inserted(held, 'reserve', 'operation.reserved', asked(request));
  return { kind: 'fresh', taskId: held.record.task_id, ordinal: held.record.ordinal };
}

function answerFor(unit: Unit, held: Held, request: Reservation): Reserved | Promise<Reserved> {
  const { row } = held;
  if (!hasSameFingerprint(row, request))
    return { kind: 'conflict', paths: differingPaths(row.arguments, request.arguments), row };
  if (row.end === null) return { kind: 'open', row, attached: false };
  if (!NOTHING_SENT.includes(row.state) || tookPlace(row)) return { kind: 'ended', row };
  return nextOrdinal(unit, held, request);
}

/** S2.7: ended as not applied, and its own attempt has reported since that it was: nobody would dedupe another. */
const tookPlace = ({ effect, lateOutcome }: OperationRow): boolean =>
  effect === 'unsafe' && isReportedApplied(lateOutcome);

/** S1.4: equality of either is a match. */
export function hasSameFingerprint(
  { fingerprint }: Pick<OperationRow, 'fingerprint'>,
  request: Pick<Reservation, 'fingerprint'>,
): boolean {
  const known = [fingerprint.sent, fingerprint.input];
  return known.includes(request.fingerprint.sent) || known.includes(request.fingerprint.input);
}

/**
 * The fence goes on: the generation is kept, and the ordinal is newer than any that an old attempt can name. What was read
 * before an effect that was never sent is no state to come back to.
 */
async function nextOrdinal(unit: Unit, held: Held, request: Reservation): Promise<Reserved> {
  const ordinal = held.record.ordinal + 1;
  const taskId = request.taskId ?? taskIdOf(request.operationId, ordinal);
  unit.save(held, {
    by: 'reserve',
    to: 'reserved',
    columns: {
      ordinal,
      task_id: taskId,
      subject: request.principal.subject,
      contract_version: request.contractVersion,
      effect: request.effect,
      attempt: 0,
      claimed_until: null,
      attempt_deadline: null,
      failure: null,
      late_outcome: null,
      task_end: null,
      edited: null,
    },
    event: 'operation.reserved',
    data: asked(request),
  });
  await forgetBefore(unit.tx, request.operationId);
  return { kind: 'fresh', taskId, ordinal };
}

/** Who asked for what (S10.4); the arguments stand, redacted, in the row. */
function asked({ principal, action, key, keyed, fingerprint, effect }: Reservation): JsonObject {
  const { subject, roles } = principal;
  return { subject, roles: [...roles], action, key, keyed, effect, fingerprint: { ...fingerprint } };
}

/** The row of a procedure's step; null when it is there already. */
export async function insertReserved(unit: Unit, request: NewRow): Promise<Held | null> {
  const held = await insert(unit, request);
  if (held !== null) unit.inserted(held, 'reserve', 'operation.reserved', asked(request));
  return held;
}

/** Null when the operation's row, or an equal open call to attach to, is there. */
async function insert(unit: Unit, request: NewRow): Promise<Held | null> {
  const { tx } = unit;
  const record = recordOf(request, tx.clock.value());
  const [row] = await tx.query<{ now: number }>(
    tx.statements.get('insert operation', record, (db, slots) =>
      db
        .insertInto('operation')
        .values({
          ...slots,
          created_at: tx.clock.expression(slots.created_at),
          updated_at: tx.clock.expression(slots.updated_at),
        })
        .onConflict((conflict) => conflict.doNothing())
        .returning('created_at as now'),
    ),
  );
  return row
    ? new Held({ record: { ...record, created_at: row.now, updated_at: row.now }, now: row.now })
    : null;
}

/** A step's row has its procedure's ordinal and names it. */
type NewRow = Reservation & { ordinal?: number; parentOperationId?: string };

function recordOf(request: NewRow, now: number): OperationTable {
  return {
    operation_id: request.operationId,
    tenant: request.principal.tenant,
    subject: request.principal.subject,
    action: request.action,
    key: request.key,
    keyed: Number(request.keyed),
    contract_version: request.contractVersion,
    effect: request.effect,
    state: 'reserved',
    ordinal: request.ordinal ?? 1,
    task_id: request.taskId ?? taskIdOf(request.operationId, 1),
    attempt: 0,
    generation: 0,
    claimed_until: null,
    attempt_deadline: null,
    executions: 0,
    fingerprint_sent: request.fingerprint.sent,
    fingerprint_input: request.fingerprint.input,
    arguments: argumentText(request.arguments),
    result: null,
    failure: null,
    attention_about: null,
    task_end: null,
    late_outcome: null,
    parent_operation_id: request.parentOperationId ?? null,
    attachable: Number(!request.keyed && request.attach),
    edited: null,
    created_at: now,
    updated_at: now,
  };
}

const argumentText = (value: Json): string => stored(value) ?? 'null';

/** M1.4: the open keyless call of this principal with equal arguments. */
async function lockAttachable(unit: Unit, request: Reservation): Promise<Held | null> {
  if (request.keyed || !request.attach) return null;
  const found = await unit.tx.kysely
    .selectFrom('operation')
    .select('operation_id')
    .where('tenant', '=', request.principal.tenant)
    .where('subject', '=', request.principal.subject)
    .where('action', '=', request.action)
    .where('fingerprint_input', '=', request.fingerprint.input)
    .where('attachable', '=', 1)
    .executeTakeFirst();
  const held = found && (await unit.tryLock(found.operation_id));
  return held && held.record.attachable === 1 ? held : null;
}
