/**
 * The tenant's tasks, newest first, as the ledger has them: no worker is asked, and no engine (audit and status survive
 * both) except for those in need of a person, of whom the rows know only those whose own effect is in doubt.
 */
import type { Ledger, OperationRow, RowState } from '../ledger/ledger.ts';
import { isTerminal } from '../task/outcome.ts';
import type { TaskState } from '../task/state.ts';
import type { ClientDeps } from './client-deps.ts';
import { WAITING_READ_MAX } from './engine.ts';
import type { WaitingTask } from './engine.ts';
import { factsOfRow, openFacts } from './task-facts.ts';
import type { TaskFacts } from './task-facts.ts';

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
/** A rare status that no state of a row stands for is looked for in this many pages at most. */
const PAGES_MAX = 25;
/** The statuses that the ledger can look for itself (`openStatusOf`). */
const STATE_OF: Partial<Record<string, RowState>> = {
  proposed: 'reserved',
  verifying: 'applied',
  backing_off: 'released',
  needs_attention: 'attention',
};

/** Throws `engine_unavailable`, for `needs_attention` alone: half of that list would pass for all of it. */
export async function listTasks(
  { ledger, engine }: Pick<ClientDeps, 'ledger' | 'engine'>,
  tenant: string,
  filter: TaskFilter = {},
): Promise<TaskFacts[]> {
  const limit = Math.min(Math.max(1, filter.limit ?? LIMIT_DEFAULT), LIMIT_MAX);
  const found = await listRows(ledger, tenant, filter, limit);
  if (filter.status !== 'needs_attention') return found;
  const known = new Set(found.map(({ taskId }) => taskId));
  const waiting = (await engine.waiting(tenant, WAITING_READ_MAX)).filter(
    ({ taskId, action, status }) =>
      status === 'needs_attention' &&
      !known.has(taskId) &&
      (filter.action === undefined || filter.action === action),
  );
  const others = await Promise.all(
    waiting.slice(-limit).map((task) => attentionOf(ledger, tenant, task)), // those that began to wait last
  );
  return [...found, ...others.filter((facts) => facts !== null)]
    .sort((one, other) => other.createdAt - one.createdAt)
    .slice(0, limit);
}

/** A halted approval, or a procedure for one of its steps: the row itself is as it was. Null: it ended meanwhile. */
async function attentionOf(
  ledger: Pick<Ledger, 'findByTask'>,
  tenant: string,
  { taskId, action, waitingSince }: WaitingTask,
): Promise<TaskFacts | null> {
  const row = await ledger.findByTask(taskId);
  if (row === null)
    return {
      ...openFacts({ taskId, tenant, action, createdAt: waitingSince }),
      status: 'needs_attention',
    };
  if (row.end !== null) return null;
  const attentionAbout = row.state === 'reserved' ? 'approval' : row.attentionAbout;
  return { ...factsOfRow(row, { stale: false }), status: 'needs_attention', attentionAbout };
}

async function listRows(
  ledger: Pick<Ledger, 'list'>,
  tenant: string,
  filter: TaskFilter,
  limit: number,
): Promise<TaskFacts[]> {
  const state = STATE_OF[filter.status ?? ''];
  const found: TaskFacts[] = [];
  const seen = new Set<string>();
  let before: number | undefined;
  for (let page = 1; page <= PAGES_MAX && found.length < limit; page += 1) {
    const rows = await ledger.list({
      tenant,
      ...(filter.status !== undefined && { open: !isTerminal(filter.status) }),
      ...(filter.action !== undefined && { action: filter.action }),
      ...(state !== undefined && { state }),
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

/** Of a procedure the row of the step that needs a person: of the one named, else of the first. */
export async function rowInDoubt(
  ledger: Pick<Ledger, 'find'>,
  state: TaskState | null,
  row: OperationRow | null,
  named?: string,
): Promise<OperationRow | null> {
  const step = state?.steps?.find(
    ({ step, status }) => status === 'needs_attention' && (named === undefined || step === named),
  );
  return step?.operationId == null ? row : ledger.find(step.operationId);
}
