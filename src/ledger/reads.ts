/** Questions that change nothing. Each answer is parsed anew from what is stored (S2.9). */
import type { Kysely } from 'kysely';
import type { AuditEntry, Ledger, ListFilter, OperationRow } from './ledger.ts';
import { rowOf } from './row.ts';
import type { OperationTable, Schema } from './schema.ts';
import type { Queries } from './store.ts';

type Answer<M extends keyof Ledger> = Ledger[M] extends (...args: never[]) => Promise<infer T> ? T : never;

const LIST_DEFAULT = 100;
const LIST_MAX = 1_000;
/** Chains verified in one read, so that an export of years fits into memory. */
const CHAINS_PER_READ = 50;

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

/** A procedure's task has several operations: the first is the answer. Rollbacks are found by their own id. */
export async function findByTask(
  { read, statements }: Queries,
  taskId: string,
): Promise<OperationRow | null> {
  const [record] = await read<OperationTable>(
    statements.get('find by task', { taskId }, (db, slots) =>
      db
        .selectFrom('operation')
        .selectAll()
        .where('task_id', '=', slots.taskId)
        .where('parent_operation_id', 'is', null)
        .orderBy('created_at')
        .orderBy('operation_id')
        .limit(1),
    ),
  );
  return record ? rowOf(record) : null;
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

/** For a tenant whole chains, `limit` of them: half a chain could not be verified by whoever reads the export. */
export async function audit(
  db: Kysely<Schema>,
  filter: Parameters<Ledger['audit']>[0],
): Promise<AuditEntry[]> {
  if ('taskId' in filter) return chainsOf(db, [filter.taskId]);
  const heads = await db
    .selectFrom('audit_head')
    .select('task_id')
    .where('tenant', '=', filter.tenant)
    .orderBy('created_at', 'desc')
    .orderBy('task_id')
    .limit(bounded(filter.limit ?? LIST_MAX))
    .execute();
  return chainsOf(
    db,
    heads.map((head) => head.task_id),
  );
}

/** Entries of these tasks, task by task in the order given. */
async function chainsOf(db: Kysely<Schema>, taskIds: readonly string[]): Promise<AuditEntry[]> {
  const entries: AuditEntry[] = [];
  for (let index = 0; index < taskIds.length; index += CHAINS_PER_READ) {
    const some = taskIds.slice(index, index + CHAINS_PER_READ);
    const records = await db
      .selectFrom('audit')
      .selectAll()
      .where('task_id', 'in', some)
      .orderBy('task_id')
      .orderBy('seq')
      .execute();
    for (const taskId of some)
      entries.push(...records.filter((record) => record.task_id === taskId).map(entryOf));
  }
  return entries;
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
