/**
 * S9: alerts wait here, committed with the state they announce, until a relay has delivered them. A relay claims some
 * for a while; whoever holds the newest token may mark them. A relay that dies leaves its lease to expire.
 */
import { randomUUID } from 'node:crypto';
import type { Kysely, Selectable } from 'kysely';
import { cut } from '../contract/text.ts';
import type { JsonObject } from '../task/json.ts';
import type { Alert, Ledger, OutboxMessage } from './ledger.ts';
import type { Schema } from './schema.ts';
import type { Store, Tx } from './store.ts';

const CLAIM_MAX = 1_000;
const ERROR_LENGTH_MAX = 500;
const ALERTS_DEFAULT = 100;

type OutboxRecord = Selectable<Schema['outbox']>;

/**
 * Fewest attempts first, then oldest: messages that no sink takes never hold up the others. Two relays never get the
 * same message within one lease.
 */
export async function claimOutbox(
  tx: Tx,
  kind: Store['kind'],
  limit: number,
  leaseMs: number,
): Promise<OutboxMessage[]> {
  const now = await tx.now();
  let free = tx.kysely
    .selectFrom('outbox')
    .selectAll()
    .where('sent_at', 'is', null)
    .where((eb) => eb.or([eb('lease_until', 'is', null), eb('lease_until', '<=', now)]))
    .orderBy('attempts')
    .orderBy('id')
    .limit(Math.min(Math.max(Math.trunc(limit), 1), CLAIM_MAX));
  if (kind === 'postgres') free = free.forUpdate().skipLocked();
  const records = await free.execute();
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

/** True also when it was marked under this very token before. */
export async function markSent(tx: Tx, id: number, token: string): Promise<boolean> {
  const now = await tx.now();
  const marked = await tx.kysely
    .updateTable('outbox')
    .set((eb) => ({ sent_at: eb.fn.coalesce('sent_at', eb.val(now)), lease_until: null }))
    .where('id', '=', id)
    .where('token', '=', token)
    .returning('id')
    .execute();
  return marked.length > 0;
}

/** The message is free again at once; the relay paces itself by `attempts`. */
export async function giveBack(tx: Tx, id: number, token: string, error: string): Promise<boolean> {
  const given = await tx.kysely
    .updateTable('outbox')
    .set({ lease_until: null, token: null, last_error: cut(error, ERROR_LENGTH_MAX) })
    .where('id', '=', id)
    .where('token', '=', token)
    .where('sent_at', 'is', null)
    .returning('id')
    .execute();
  return given.length > 0;
}

export async function alerts(
  db: Kysely<Schema>,
  filter: Parameters<Ledger['alerts']>[0],
): Promise<Awaited<ReturnType<Ledger['alerts']>>> {
  let query = db.selectFrom('outbox').selectAll().where('tenant', '=', filter.tenant);
  if (filter.taskId !== undefined) query = query.where('task_id', '=', filter.taskId);
  const limit = Math.min(Math.max(Math.trunc(filter.limit ?? ALERTS_DEFAULT), 1), CLAIM_MAX);
  const records = await query.orderBy('id', 'desc').limit(limit).execute();
  return records.map((record) => ({
    ...alertOf(record),
    id: record.id,
    createdAt: record.created_at,
    sentAt: record.sent_at,
  }));
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
