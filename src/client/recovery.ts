/**
 * What becomes of a task whose workflow the engine closed or lost (S3.8). Never guesses the effect: the ledger's row
 * says what was sent, and what is in doubt goes on under the next ordinal, which reconciles before anything else.
 */
import { taskIdOf } from '../contract/ids.ts';
import type { OperationRow } from '../ledger/ledger.ts';
import { committedEnd } from '../task/ends.ts';
import type { TaskEnd } from '../task/outcome.ts';
import type { ClientDeps } from './client-deps.ts';
import type { EngineRecord, PlannedStart } from './engine.ts';
import { endOfOutcome } from './task-facts.ts';

type Start = Omit<PlannedStart, 'ordinal'>;

export type Settled =
  /** The row has an end now. */
  | { kind: 'ended'; row: OperationRow }
  /** A workflow is running for it, under this id. */
  | { kind: 'running'; taskId: string }
  /** In doubt, and nobody has the arguments to go on with: the next call with the same key and arguments brings them. */
  | { kind: 'stranded'; row: OperationRow };

/**
 * For an open row whose workflow is not running. `own` is what the present call would start it with, for rows whose
 * history is gone; null when there is no call.
 */
export async function settle(
  deps: ClientDeps,
  row: OperationRow,
  record: Exclude<EngineRecord, { state: 'running' }>,
  own: Start | null,
): Promise<Settled> {
  if (record.kind === 'absent') return settleAbsent(deps, row, own);
  const end = record.state === 'completed' && isDecided(row) ? await returnedEnd(deps, row.taskId) : null;
  return end === null ? recover(deps, row, own) : recordEnd(deps, row, end);
}

/** The states in which only the end itself is missing. */
export function isDecided({ state }: OperationRow): boolean {
  return state === 'committed' || state === 'rolled_back' || state === 'abandoned';
}

/** Never started, deleted, or past the engine's retention. */
async function settleAbsent(deps: ClientDeps, row: OperationRow, own: Start | null): Promise<Settled> {
  // S7.4: committed, and kept open only for a rollback that no task is left to ask for.
  if (row.state === 'committed') return recordEnd(deps, row, keptEnd(row));
  return startAgain(deps, row, (await startedBefore(deps, row)) ?? (await ownStart(deps, row, own)));
}

function keptEnd(row: OperationRow): TaskEnd {
  const end = committedEnd({ plan: null, cancelRequested: false });
  return row.effect === 'safe' ? { ...end, effect: 'none' } : end;
}

async function recover(deps: ClientDeps, row: OperationRow, own: Start | null): Promise<Settled> {
  const start =
    (await deps.engine.startedWith(row.taskId, row.edited)) ??
    (await startedBefore(deps, row)) ??
    (await ownStart(deps, row, own));
  const recovered = await deps.ledger.recover(row.operationId, row.taskId);
  if (recovered.kind === 'ended') return { kind: 'ended', row: recovered.row };
  return startAgain(deps, recovered.row, start);
}

async function startAgain(deps: ClientDeps, row: OperationRow, start: Start | null): Promise<Settled> {
  if (start === null) return { kind: 'stranded', row };
  const { plan, input } = start;
  await deps.engine.start(row.taskId, { v: 1, plan, input, ordinal: row.ordinal });
  return { kind: 'running', taskId: row.taskId };
}

/** The start of the ordinal before: a client may have died between `recover` and the start of its successor. */
async function startedBefore(deps: ClientDeps, row: OperationRow): Promise<PlannedStart | null> {
  if (row.ordinal < 2) return null;
  return deps.engine.startedWith(taskIdOf(row.operationId, row.ordinal - 1), row.edited);
}

/**
 * What the present call brings, where the history does not say what the task was started with. S4.2: never in place of
 * what an approver edited. S1.2: a procedure goes on under the keys of the run that began its steps.
 */
async function ownStart(deps: ClientDeps, row: OperationRow, own: Start | null): Promise<Start | null> {
  if (own === null || row.edited !== null) return null;
  const { procedure } = own.plan;
  if (!procedure) return own;
  return { ...own, plan: { ...own.plan, procedure: { ...procedure, origin: await originOf(deps, row) } } };
}

/** The audit of each task tells whether it went on from the one before. */
async function originOf(deps: ClientDeps, { operationId, taskId }: OperationRow): Promise<string> {
  for (let origin = taskId; ;) {
    const entries = await deps.ledger.audit({ taskId: origin });
    const recovered = entries.find(
      (entry) => entry.operationId === operationId && entry.type === 'operation.recovered',
    );
    const before = recovered?.data['previousTask'];
    if (typeof before !== 'string') return origin;
    origin = before;
  }
}

async function returnedEnd(deps: ClientDeps, taskId: string): Promise<TaskEnd | null> {
  const result = await deps.engine.result(taskId, deps.now() + 1_500);
  return result.kind === 'ended' ? endOfOutcome(result.outcome) : null;
}

async function recordEnd(deps: ClientDeps, row: OperationRow, end: TaskEnd): Promise<Settled> {
  await deps.ledger.recordEnd(row.taskId, end);
  const written = await deps.ledger.find(row.operationId);
  return { kind: 'ended', row: written ?? { ...row, end } };
}
