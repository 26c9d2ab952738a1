/** The audit keeps a digest of each result it speaks of: the result a row holds is the one its chain names last. */
import type { Kysely } from 'kysely';
import { canonicalText } from '../contract/canonical.ts';
import type { JsonObject } from '../task/json.ts';
import type { StoredResult } from '../task/outcome.ts';
import type { Schema } from './schema.ts';
import { digestOf } from './settle.ts';

const ROWS_PER_READ = 200;

interface Line {
  operation_id: string;
  task_id: string;
  result: string | null;
  seq: number;
  data: string;
}

export interface ForeignResult {
  taskId: string;
  /** Of the entry that says otherwise. */
  seq: number;
  reason: string;
}

/** Of all tasks, or one. Expects chains that were found whole. */
export async function firstForeignResult(db: Kysely<Schema>, taskId?: string): Promise<ForeignResult | null> {
  for (let after = ''; ;) {
    const lines = await readResults(db, after, taskId);
    const said = new Map<string, Line>();
    for (const line of lines) if (digestIn(line) !== undefined) said.set(line.operation_id, line);
    for (const line of said.values())
      if (digestIn(line) !== digestHeld(line))
        return {
          taskId: line.task_id,
          seq: line.seq,
          reason: `operation ${line.operation_id} holds another result than this entry says`,
        };
    const last = lines.at(-1);
    if (last === undefined) return null;
    after = last.operation_id;
  }
}

/** Rows and entries in one statement, so that a row which moves on meanwhile is seen with its entry. */
function readResults(db: Kysely<Schema>, after: string, taskId?: string): Promise<Line[]> {
  return db
    .selectFrom((eb) => {
      const rows = eb
        .selectFrom('operation')
        .select(['operation_id', 'task_id', 'result'])
        .where('result', 'is not', null)
        .where('parent_operation_id', 'is', null)
        .where('operation_id', '>', after);
      const some = taskId === undefined ? rows : rows.where('task_id', '=', taskId);
      return some.orderBy('operation_id').limit(ROWS_PER_READ).as('o');
    })
    .innerJoin('audit as a', (on) =>
      on.onRef('a.task_id', '=', 'o.task_id').onRef('a.operation_id', '=', 'o.operation_id'),
    )
    .select(['o.operation_id', 'o.task_id', 'o.result', 'a.seq', 'a.data'])
    .orderBy('o.operation_id')
    .orderBy('a.seq')
    .execute();
}

function digestIn({ data }: Line): string | undefined {
  const { result } = JSON.parse(data) as JsonObject;
  return result === undefined ? undefined : canonicalText(result);
}

function digestHeld({ result }: Line): string | null {
  try {
    return canonicalText(digestOf(JSON.parse(result ?? 'null') as StoredResult));
  } catch {
    return null; // no JSON any more, or none of ours
  }
}
