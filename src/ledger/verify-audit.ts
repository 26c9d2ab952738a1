/** S10.1: every chain against its head, then every row's result against what its chain says of it. */
import type { ExpressionBuilder, Kysely } from 'kysely';
import { firstBreak } from './audit-chain.ts';
import type { AuditEntry, Ledger } from './ledger.ts';
import { entryOf } from './reads.ts';
import type { Schema } from './schema.ts';
import type { ChainHead } from './store.ts';
import { firstForeignResult } from './verify-results.ts';

type Verdict = Awaited<ReturnType<Ledger['verifyAudit']>>;

/** So many chains in one read that memory stays small and round trips few. */
const CHAINS_PER_READ = 200;

type Line = { chain: string; head_seq: number; head_hash: string } & {
  [C in keyof Schema['audit']]: Schema['audit'][C] | null;
};

export async function verifyAudit(db: Kysely<Schema>, filter?: { taskId: string }): Promise<Verdict> {
  const lost = await chainWithoutHead(db, filter?.taskId);
  if (lost !== null) return { ok: false, taskId: lost, seq: 1, reason: 'the chain has no head' };
  let tasks = 0;
  let entries = 0;
  for (let after = ''; ;) {
    const chains = byChain(await readChains(db, after, filter?.taskId));
    for (const lines of chains) {
      const taskId = lines[0]?.chain ?? '';
      const broken = chainBreak(lines);
      if (broken) return { ok: false, taskId, ...broken };
      tasks += 1;
      entries += lines.filter((line) => line.seq !== null).length;
      after = taskId;
    }
    if (filter || chains.length < CHAINS_PER_READ) break;
  }
  const foreign = await firstForeignResult(db, filter?.taskId);
  return foreign === null ? { ok: true, tasks, entries } : { ok: false, ...foreign };
}

/** Heads and entries in one statement, so that a chain which grows meanwhile is seen whole. */
function readChains(db: Kysely<Schema>, after: string, taskId?: string): Promise<Line[]> {
  return db
    .selectFrom((eb) => {
      const heads = eb.selectFrom('audit_head').select(['task_id', 'seq', 'hash']);
      const some =
        taskId === undefined ? heads.where('task_id', '>', after) : heads.where('task_id', '=', taskId);
      return some.orderBy('task_id').limit(CHAINS_PER_READ).as('h');
    })
    .leftJoin('audit as a', 'a.task_id', 'h.task_id')
    .select(['h.task_id as chain', 'h.seq as head_seq', 'h.hash as head_hash'])
    .selectAll('a')
    .orderBy('h.task_id')
    .orderBy('a.seq')
    .execute();
}

/** Lines of one chain follow one another. */
function byChain(lines: readonly Line[]): Line[][] {
  const chains: Line[][] = [];
  for (const line of lines) {
    const last = chains.at(-1);
    if (last?.[0]?.chain === line.chain) last.push(line);
    else chains.push([line]);
  }
  return chains;
}

/** The first task that an operation or an entry names and no head does. */
async function chainWithoutHead(db: Kysely<Schema>, taskId?: string): Promise<string | null> {
  const headOf = (eb: ExpressionBuilder<Schema, 'operation' | 'audit'>) =>
    eb.selectFrom('audit_head as h').select('h.seq');
  let operations = db
    .selectFrom('operation')
    .select('task_id')
    .where((eb) => eb.not(eb.exists(headOf(eb).whereRef('h.task_id', '=', 'operation.task_id'))));
  let entries = db
    .selectFrom('audit')
    .select('task_id')
    .where((eb) => eb.not(eb.exists(headOf(eb).whereRef('h.task_id', '=', 'audit.task_id'))));
  if (taskId !== undefined) {
    operations = operations.where('task_id', '=', taskId);
    entries = entries.where('task_id', '=', taskId);
  }
  const found = (await operations.limit(1).executeTakeFirst()) ?? (await entries.limit(1).executeTakeFirst());
  return found?.task_id ?? null;
}

function chainBreak(lines: readonly Line[]): { seq: number; reason: string } | null {
  const [first] = lines;
  if (!first) return null;
  const head: ChainHead = { seq: first.head_seq, hash: first.head_hash };
  const entries: AuditEntry[] = [];
  for (const line of lines) {
    if (line.seq === null) continue;
    try {
      entries.push(entryOf(line as Schema['audit']));
    } catch {
      return { seq: line.seq, reason: 'the entry is no JSON any more' };
    }
  }
  return firstBreak(entries, head);
}
