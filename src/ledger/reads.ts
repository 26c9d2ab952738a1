/** Questions that change nothing. Each answer is parsed anew from what is stored (S2.9). */
import type { Kysely } from 'kysely';
import type { AuditEntry, Ledger, ListFilter, OperationRow } from './ledger.ts';
import { rowOf } from './row.ts';
import type { OperationTable, Schema } from './schema.ts';
import type { Queries } from './store.ts';

type Answer<M extends keyof Ledger> = Ledger[M] extends (...args: never[]) => Promise<infer T> ? T : never;

const LIST_DEFAULT = 100;
const LIST_MAX = 1_000;
const AUDIT_DEFAULT = 10_000;
const CHAINS_PER_READ = 200;

/** 1 to 1000, whatever was asked for. */
const bounded = (limit: number | undefined): number =>
  Math.min(Math.max(Math.trunc(limit ?? LIST_DEFAULT), 1), LIST_MAX);

export async function find({ read, statements }: Queries, operationId: string): Promise<OperationRow | null> {
  const [record] = await read<OperationTable>(
    statements.get('find operation', { operationId }, (db, slots) =>
      db.selectFrom('operation').selectAll().where('operation_id', '=', slots.operationId),
    ),
  );
  return record ? rowOf(record) : null;
}

/**
 * A procedure's task has several operations: the first is the answer. Rollbacks are found by their own id. Chosen here,
 * since sorting would cost SQLite ten times as much as finding.
 */
export async function findByTask(
  { read, statements }: Queries,
  taskId: string,
): Promise<OperationRow | null> {
  const records = await read<OperationTable>(
    statements.get('find by task', { taskId }, (db, slots) =>
      db
        .selectFrom('operation')
        .selectAll()
        .where('task_id', '=', slots.taskId)
        .where('parent_operation_id', 'is', null),
    ),
  );
  const [first, ...others] = records;
  return first ? rowOf(others.reduce(earlier, first)) : null;
}

function earlier(a: OperationTable, b: OperationTable): OperationTable {
  if (a.created_at !== b.created_at) return a.created_at < b.created_at ? a : b;
  return a.operation_id < b.operation_id ? a : b;
}

export async function list(db: Kysely<Schema>, filter: ListFilter): Promise<OperationRow[]> {
  let query = db
    .selectFrom('operation')
    .selectAll()
    .where('tenant', '=', filter.tenant)
    .where('parent_operation_id', 'is', null);
  if (filter.open !== undefined) query = query.where('task_end', filter.open ? 'is' : 'is not', null);
  if (filter.state !== undefined) query = query.where('state', '=', filter.state);
  if (filter.action !== undefined) query = query.where('action', '=', filter.action);
  if (filter.before !== undefined) query = query.where('created_at', '<', filter.before);
  const records = await query
    .orderBy('created_at', 'desc')
    .orderBy('operation_id')
    .limit(bounded(filter.limit))
    .execute();
  return records.map(rowOf);
}

export async function findEdited(
  db: Kysely<Schema>,
  { tenant, subject, action, fingerprint, withinMs }: Parameters<Ledger['findEdited']>[0],
  now: number,
): Promise<OperationRow | null> {
  const record = await db
    .selectFrom('operation')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('subject', '=', subject)
    .where('action', '=', action)
    .where('fingerprint_input', '=', fingerprint)
    .where('edited', 'is not', null)
    .where('state', '=', 'committed')
    .where('task_end', 'is not', null)
    .where('updated_at', '>=', now - withinMs)
    .orderBy('updated_at', 'desc')
    .limit(1)
    .executeTakeFirst();
  return record ? rowOf(record) : null;
}

export async function attempts(db: Kysely<Schema>, operationId: string): Promise<Answer<'attempts'>> {
  const records = await db
    .selectFrom('attempt')
    .selectAll()
    .where('operation_id', '=', operationId)
    .orderBy('generation')
    .execute();
  return records.map(({ ordinal, attempt, generation, claimed_at, executing, outcome, finished_at }) => ({
    ordinal,
    attempt,
    generation,
    claimedAt: claimed_at,
    executing: executing === 1,
    outcome,
    finishedAt: finished_at,
  }));
}

/**
 * For a tenant whole chains, newest task first, until `limit` entries are reached or passed: half a chain could not be
 * verified by whoever reads the export.
 */
export async function audit(
  read: Read,
  queries: Queries,
  filter: Parameters<Ledger['audit']>[0],
): Promise<AuditEntry[]> {
  if ('taskId' in filter) return chainOf(queries, filter.taskId);
  const entries: AuditEntry[] = [];
  const limit = Math.max(filter.limit ?? AUDIT_DEFAULT, 1);
  for await (const chain of auditChains(read, queries, filter.tenant)) {
    for (const entry of chain) entries.push(entry);
    if (entries.length >= limit) break;
  }
  return entries;
}

type Read = <T>(work: (db: Kysely<Schema>) => Promise<T>) => Promise<T>;

/** Each task's chain by itself, newest task first: what is read is never more than one of them. */
export async function* auditChains(
  read: Read,
  queries: Queries,
  tenant: string,
): AsyncGenerator<AuditEntry[], void, void> {
  for (let last: ChainPlace | null = null; ;) {
    const after: ChainPlace | null = last;
    const heads: ChainPlace[] = await read((db) => chainsAfter(db, tenant, after));
    for (const head of heads) yield chainOf(queries, head.task_id);
    last = heads.at(-1) ?? null;
    if (heads.length < CHAINS_PER_READ) return;
  }
}

interface ChainPlace {
  task_id: string;
  created_at: number;
}

async function chainsAfter(
  db: Kysely<Schema>,
  tenant: string,
  last: ChainPlace | null,
): Promise<ChainPlace[]> {
  let heads = db.selectFrom('audit_head').select(['task_id', 'created_at']).where('tenant', '=', tenant);
  if (last) {
    heads = heads.where((eb) =>
      eb.or([
        eb('created_at', '<', last.created_at),
        eb.and([eb('created_at', '=', last.created_at), eb('task_id', '>', last.task_id)]),
      ]),
    );
  }
  return heads.orderBy('created_at', 'desc').orderBy('task_id').limit(CHAINS_PER_READ).execute();
}

async function chainOf({ read, statements }: Queries, taskId: string): Promise<AuditEntry[]> {
  const records = await read<Schema['audit']>(
    statements.get('chain of task', { taskId }, (db, slots) =>
      db.selectFrom('audit').selectAll().where('task_id', '=', slots.taskId).orderBy('seq'),
    ),
  );
  return records.map(entryOf);
}

export const entryOf = (record: Schema['audit']): AuditEntry => ({
  taskId: record.task_id,
  seq: record.seq,
  operationId: record.operation_id,
  tenant: record.tenant,
  type: record.type,
  at: record.at,
  data: JSON.parse(record.data) as AuditEntry['data'],
  hash: record.hash,
});
