/**
 * S9: alerts wait here, committed with the state they announce, until a relay has delivered them. A relay claims some
 * for a while; whoever holds the newest token may say what became of them. A relay that dies leaves its lease to expire.
 *
 * 1. A message is `waiting`, then `sent` or `dead`; only a person's `redeliver` leads back.
 * 2. Two relays never get the same message within one lease; a token that was taken over changes nothing.
 * 3. Each claim counts as an attempt, so a message that kills whoever delivers it runs out of them too.
 */
import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import type { Kysely, Selectable } from 'kysely';
import { cut } from '../contract/text.ts';
import type { JsonObject } from '../task/json.ts';
import type { Alert, AlertState, Ledger, OutboxMessage, StoredAlert } from './ledger.ts';
import type { Schema } from './schema.ts';
import type { Store, Tx } from './store.ts';
import type { Unit } from './unit.ts';

const CLAIM_MAX = 1_000;
const ERROR_LENGTH_MAX = 500;
const ALERTS_DEFAULT = 100;

type OutboxRecord = Selectable<Schema['outbox']>;

/** Those never tried first, then by when they became due: messages that no sink takes never hold up the others. */
export async function claimOutbox(
  tx: Tx,
  kind: Store['kind'],
  limit: number,
  leaseMs: number,
): Promise<OutboxMessage[]> {
  const now = await tx.now();
  let due = waiting(tx.kysely)
    .selectAll()
    .where('due_at', '<=', now)
    .where((eb) => eb.or([eb('lease_until', 'is', null), eb('lease_until', '<=', now)]))
    .orderBy('due_at')
    .orderBy('id')
    .limit(Math.min(Math.max(Math.trunc(limit), 1), CLAIM_MAX));
  if (kind === 'postgres') due = due.forUpdate().skipLocked();
  const records = await due.execute();
  if (records.length === 0) return [];
  const token = randomUUID();
  await tx.kysely
    .updateTable('outbox')
    .set((eb) => ({ token, lease_until: now + leaseMs, attempts: eb('attempts', '+', 1) }))
    .where(
      'id',
      'in',
      records.map(({ id }) => id),
    )
    .execute();
  return records.map((record) => ({
    id: record.id,
    alert: alertOf(record),
    createdAt: record.created_at,
    attempts: record.attempts + 1,
    token,
  }));
}

const waiting = (db: Kysely<Schema>) =>
  db.selectFrom('outbox').where('sent_at', 'is', null).where('dead_at', 'is', null);

/** What the holder of the newest token says; false where that is another by now. */
const held = ({ kysely }: Tx, id: number, token: string) =>
  kysely.updateTable('outbox').where('id', '=', id).where('token', '=', token).returning('id');

/** True also when it was marked under this very token before. */
export async function markSent(tx: Tx, id: number, token: string): Promise<boolean> {
  const now = await tx.now();
  const marked = await held(tx, id, token)
    .set((eb) => ({ sent_at: eb.fn.coalesce('sent_at', eb.val(now)), lease_until: null }))
    .execute();
  return marked.length > 0;
}

export async function giveBack(
  tx: Tx,
  id: number,
  token: string,
  error: string | null,
  delayMs: number,
): Promise<boolean> {
  const dueAt = (await tx.now()) + Math.max(0, Math.trunc(delayMs));
  const given = await held(tx, id, token)
    .set({ lease_until: null, token: null, due_at: dueAt })
    .$if(error !== null, (update) => update.set({ last_error: cut(error ?? '', ERROR_LENGTH_MAX) }))
    .$if(error === null, (update) => update.set((eb) => ({ attempts: eb('attempts', '-', 1) })))
    .where('sent_at', 'is', null)
    .execute();
  return given.length > 0;
}

/** True also when it was buried under this very token before. */
export async function bury(tx: Tx, id: number, token: string, error: string): Promise<boolean> {
  const now = await tx.now();
  const buried = await held(tx, id, token)
    .set((eb) => ({
      dead_at: eb.fn.coalesce('dead_at', eb.val(now)),
      lease_until: null,
      last_error: cut(error, ERROR_LENGTH_MAX),
    }))
    .where('sent_at', 'is', null)
    .execute();
  return buried.length > 0;
}

export async function dueMs(db: Kysely<Schema>, now: number): Promise<number | null> {
  const { at } = await waiting(db)
    .select(({ fn }) =>
      fn
        .min(sql<number>`case when lease_until > due_at then lease_until else due_at end`)
        .$castTo<number | null>()
        .as('at'),
    )
    .executeTakeFirstOrThrow();
  return at === null ? null : Math.max(0, Number(at) - now);
}

/** A relay that is delivering it just now loses its claim: the worst is that the alert comes twice. */
export async function redeliver(
  unit: Unit,
  { tenant, id, by }: Parameters<Ledger['redeliver']>[0],
): Promise<number[]> {
  const { tx } = unit;
  let chosen = tx.kysely.selectFrom('outbox').select(['id', 'task_id', 'operation_id', 'tenant']);
  chosen = chosen.where('tenant', '=', tenant).orderBy('id').limit(CLAIM_MAX);
  chosen = id === undefined ? chosen.where('dead_at', 'is not', null) : chosen.where('id', '=', id);
  const records = await chosen.execute();
  if (records.length === 0) return [];
  const ids = records.map((record) => record.id);
  const at = await tx.now();
  for (const record of records)
    await unit.notes(record, record.task_id, [
      { type: 'alert_redelivered', at, data: { alert: record.id, by } },
    ]);
  await tx.kysely
    .updateTable('outbox')
    .set({ sent_at: null, dead_at: null, lease_until: null, token: null, due_at: 0, attempts: 0 })
    .where('id', 'in', ids)
    .execute();
  return ids;
}

export async function alerts(
  db: Kysely<Schema>,
  { tenant, taskId, state, limit = ALERTS_DEFAULT }: Parameters<Ledger['alerts']>[0],
): Promise<StoredAlert[]> {
  let query = db.selectFrom('outbox').selectAll().where('tenant', '=', tenant);
  if (taskId !== undefined) query = query.where('task_id', '=', taskId);
  if (state === 'sent') query = query.where('sent_at', 'is not', null);
  if (state === 'dead') query = query.where('dead_at', 'is not', null);
  if (state === 'waiting') query = query.where('sent_at', 'is', null).where('dead_at', 'is', null);
  const records = await query
    .orderBy('id', 'desc')
    .limit(Math.min(Math.max(Math.trunc(limit), 1), CLAIM_MAX))
    .execute();
  return records.map((record) => ({
    ...alertOf(record),
    id: record.id,
    state: stateOf(record),
    createdAt: record.created_at,
    sentAt: record.sent_at,
    deadAt: record.dead_at,
    attempts: record.attempts,
    lastError: record.last_error,
  }));
}

function stateOf({ sent_at, dead_at }: OutboxRecord): AlertState {
  if (sent_at !== null) return 'sent';
  return dead_at === null ? 'waiting' : 'dead';
}

const alertOf = (record: OutboxRecord): Alert => ({
  type: record.type as Alert['type'],
  taskId: record.task_id,
  operationId: record.operation_id,
  tenant: record.tenant,
  action: record.action,
  message: record.message,
  data: JSON.parse(record.data) as JsonObject,
});
