/** The tenant's tasks, newest first, as the ledger has them: no engine, no worker (audit and status survive both). */
import type { Ledger, OperationRow } from '../ledger/ledger.ts';
import { factsOfRow } from './task-facts.ts';
import type { TaskFacts } from './task-facts.ts';
import { isTerminal } from '../task/outcome.ts';

export interface TaskFilter {
  /** A status of S3.4, or `open`. */
  status?: string;
  action?: string;
  /** 1 to 1000, default 100. */
  limit?: number;
}

const LIMIT_DEFAULT = 100;
const LIMIT_MAX = 1_000;
const PAGE = 200;
/** A rare status is looked for in this many pages at most. */
const PAGES_MAX = 25;

export async function listTasks(
  ledger: Pick<Ledger, 'list'>,
  tenant: string,
  filter: TaskFilter = {},
): Promise<TaskFacts[]> {
  const limit = Math.min(Math.max(1, filter.limit ?? LIMIT_DEFAULT), LIMIT_MAX);
  const found: TaskFacts[] = [];
  const seen = new Set<string>();
  let before: number | undefined;
  for (let page = 1; page <= PAGES_MAX && found.length < limit; page += 1) {
    const rows = await ledger.list({
      tenant,
      ...(filter.status !== undefined && { open: !isTerminal(filter.status) }),
      ...(filter.action !== undefined && { action: filter.action }),
      limit: filter.status === undefined ? limit : PAGE,
      ...(before !== undefined && { before }),
    });
    const unseen = rows.filter(({ operationId }) => !seen.has(operationId));
    for (const { operationId } of unseen) seen.add(operationId);
    found.push(...unseen.map((row) => factsOfRow(row, { stale: false })).filter(hasStatus(filter.status)));
    if (filter.status === undefined || rows.length < PAGE || unseen.length === 0) break;
    // The millisecond of the last row again: others of the same one may not have fitted into the page.
    before = (rows.at(-1)?.createdAt ?? 0) + 1;
  }
  return found.slice(0, limit);
}

const hasStatus =
  (status: string | undefined) =>
  (facts: TaskFacts): boolean =>
    status === undefined || status === 'open' || facts.status === status;

/** For a task nobody can ask: its attempts as the ledger granted them. */
export async function attemptsOfRow(ledger: Pick<Ledger, 'attempts'>, row: OperationRow) {
  const attempts = await ledger.attempts(row.operationId);
  return attempts
    .filter(({ ordinal }) => ordinal === row.ordinal)
    .map(({ attempt, executing, claimedAt, finishedAt, outcome }) => ({
      attempt,
      purpose: executing ? ('execute' as const) : ('settle' as const),
      inline: false,
      startedAt: claimedAt,
      finishedAt,
      outcome,
      failure: null,
    }));
}
