/** How a task's hold on its operation ends: closed, resolved by a person, recovered from outside, its end recorded. */
import { taskIdOf } from '../contract/ids.ts';
import type { Claim } from '../task/claim.ts';
import type { Json, JsonObject } from '../task/json.ts';
import { isReportedApplied } from '../task/outcome.ts';
import type { StoredResult, TaskEnd } from '../task/outcome.ts';
import { endAttempt, loseAttempt } from './attempt.ts';
import { isSuperseded } from './claim.ts';
import type { Alert, OperationRow, RowState, Transitions } from './ledger.ts';
import { stored } from './row.ts';
import type { OperationTable } from './schema.ts';
import { digestOf, ended } from './settle.ts';
import type { Held, Unit } from './unit.ts';

type Request<M extends keyof Transitions> = Parameters<Transitions[M]>[0];
type Answer<M extends keyof Transitions> = Awaited<ReturnType<Transitions[M]>>;

const endData = (end: TaskEnd | null): JsonObject =>
  end ? { end: { ...end } as unknown as JsonObject } : {};

/** The fence beyond every attempt scheduled so far: one that wakes later is older than the row's. */
const beyond = (record: OperationTable, attempt: number): Partial<OperationTable> => ({
  attempt: Math.max(record.attempt, attempt + 1),
  generation: record.generation + 1,
  claimed_until: null,
  attempt_deadline: null,
});

export async function closeTask(unit: Unit, request: Request<'closeTask'>): Promise<Answer<'closeTask'>> {
  const held = await unit.lock(request.operationId);
  const { record } = held;
  await unit.notes(record, request.taskId, request.notes);
  if (isSuperseded(record, request)) return { kind: 'superseded', row: held.row };
  switch (record.state) {
    case 'in_flight':
    case 'applied':
    case 'rolling_back':
    case 'attention':
      return { kind: 'inFlight', row: held.row };
    case 'committed':
      return { kind: 'committed', row: held.row };
    case 'refused':
    case 'failed':
    case 'rolled_back':
    case 'abandoned':
      return { kind: 'closed', row: held.row };
    case 'reserved':
    case 'released':
      if (record.task_end === null) {
        close(unit, held, 'closeTask', request.attempt, request.end);
        if (request.alert) unit.alert(request.alert);
      }
      return { kind: 'closed', row: held.row };
    default:
      return record.state satisfies never;
  }
}

function close(unit: Unit, held: Held, by: string, attempt: number, end: TaskEnd): void {
  const { record } = held;
  loseAttempt(unit, record, held.now);
  unit.save(held, {
    by,
    to: record.state,
    columns: { ...beyond(record, attempt), ...ended(end) },
    event: 'operation.closed',
    data: endData(end),
  });
}

export async function resolve(unit: Unit, request: Request<'resolve'>): Promise<Answer<'resolve'>> {
  const held = await unit.lock(request.operationId);
  const { record } = held;
  const rollback = await lockRollback(unit, record);
  await unit.notes(record, request.taskId, request.notes);
  if (record.state !== 'attention' || isSuperseded(record, request)) {
    return { kind: 'notInAttention', row: held.row };
  }
  const { resolution, end } = request;
  const isAboutEffect = record.attention_about === 'effect';
  if (resolution.as === 'not_applied' && isAboutEffect && hasReportedApplied(record.late_outcome))
    return { kind: 'contradicted', row: held.row };
  const result = resolution.as === 'applied' ? resolution.result : undefined;
  const said: JsonObject = { as: resolution.as, person: resolution.by, note: resolution.note ?? null };
  const about = record.attention_about;
  unit.save(held, {
    by: 'resolve',
    to: stateAfter(resolution.as, about),
    columns: {
      ...beyond(record, request.attempt),
      attention_about: null,
      ...(result && { result: stored(result) }),
      ...ended(end),
    },
    event: 'operation.resolved',
    data: { ...said, about, ...(result && { result: digestOf(result) }), ...endData(end) },
  });
  if (rollback?.record.state === 'attention') {
    unit.save(rollback, {
      by: 'resolve',
      to: rollbackStateAfter(resolution.as),
      columns: { attention_about: null, claimed_until: null, attempt_deadline: null },
      event: 'operation.rollback_resolved',
      data: said,
    });
  }
  return { kind: 'written', row: held.row };
}

function stateAfter(
  as: Request<'resolve'>['resolution']['as'],
  about: OperationRow['attentionAbout'],
): RowState {
  if (as === 'not_applied') return about === 'rollback' ? 'rolled_back' : 'released';
  return as;
}

/** The effect is gone: the rollback is done. It stands: the rollback may be tried again. Nobody knows: nor here. */
function rollbackStateAfter(as: Request<'resolve'>['resolution']['as']): RowState {
  switch (as) {
    case 'not_applied':
      return 'committed';
    case 'applied':
      return 'released';
    case 'abandoned':
      return 'abandoned';
    default:
      return as satisfies never;
  }
}

/** The rollback of a parent that is locked already. */
async function lockRollback(unit: Unit, parent: OperationTable): Promise<Held | null> {
  if (parent.attention_about !== 'rollback') return null;
  const child = await unit.tx.kysely
    .selectFrom('operation')
    .select('operation_id')
    .where('parent_operation_id', '=', parent.operation_id)
    .executeTakeFirst();
  return child ? unit.tryLock(child.operation_id) : null;
}

export async function recover(unit: Unit, operationId: string, taskId: string): Promise<Answer<'recover'>> {
  const held = await unit.lock(operationId);
  const { record } = held;
  if (record.task_end !== null) return { kind: 'ended', row: held.row };
  if (record.task_id !== taskId) return { kind: 'recovery', row: held.row };
  switch (record.state) {
    case 'in_flight':
    case 'applied':
    case 'rolling_back':
    case 'attention':
      nextTask(unit, held);
      return { kind: 'recovery', row: held.row };
    case 'reserved':
    case 'released':
    case 'committed':
    case 'rolled_back':
    case 'abandoned':
    case 'refused':
    case 'failed':
      close(unit, held, 'recover', record.attempt, endFromOutside(record.state));
      return { kind: 'ended', row: held.row };
    default:
      return record.state satisfies never;
  }
}

/** S3.8: what is in doubt goes to a new task, which starts by reconciling; both chains say where it went. */
function nextTask(unit: Unit, held: Held): void {
  const { record } = held;
  const ordinal = record.ordinal + 1;
  const taskId = taskIdOf(record.operation_id, ordinal);
  unit.note(record, 'operation.left', { to: taskId, ordinal, cause: 'engine_closed' });
  loseAttempt(unit, record, held.now);
  unit.save(held, {
    by: 'recover',
    to: record.state,
    columns: { ordinal, task_id: taskId, attempt: 0, generation: record.generation + 1, claimed_until: null },
    event: 'operation.recovered',
    data: { previousTask: record.task_id },
  });
}

/** The state tells how the task ended, where the engine can't. */
function endFromOutside(state: RowState): TaskEnd {
  const common = { error: null, cancelRequested: false };
  switch (state) {
    case 'committed':
      return { ...common, status: 'completed', effect: 'applied', cause: 'committed' };
    case 'rolled_back':
      return { ...common, status: 'failed', effect: 'rolled_back', cause: 'engine_closed' };
    case 'abandoned':
      return { ...common, status: 'failed', effect: 'unknown', cause: 'abandoned' };
    default:
      return { ...common, status: 'failed', effect: 'none', cause: 'engine_closed' };
  }
}

/** States in which a task may have settled its operation without recording its end. */
const SETTLED: readonly RowState[] = ['committed', 'rolled_back', 'abandoned'];

export async function recordEnd(unit: Unit, taskId: string, end: TaskEnd): Promise<void> {
  const operations = await unit.tx.kysely
    .selectFrom('operation')
    .select('operation_id')
    .where('task_id', '=', taskId)
    .where('parent_operation_id', 'is', null)
    .orderBy('operation_id')
    .execute();
  for (const { operation_id: operationId } of operations) {
    const held = await unit.lock(operationId);
    const { record } = held;
    if (record.task_id !== taskId || record.task_end !== null || !SETTLED.includes(record.state)) continue;
    unit.save(held, {
      by: 'recordEnd',
      to: record.state,
      columns: ended(end),
      event: 'operation.ended',
      data: endData(end),
    });
  }
}

/**
 * The outcome of an attempt whose claim was taken over: kept, and told if another execution can have had an effect too,
 * or if a person was asked meanwhile. An unsafe effect that a person has just denied is not sent again: it is asked anew.
 */
export async function recordLate(unit: Unit, claim: Claim, outcome: Json, alert: Alert): Promise<void> {
  const held = await unit.lock(claim.operationId);
  const attempts = await unit.tx.kysely
    .selectFrom('attempt')
    .select(['generation', 'executing', 'outcome'])
    .where('operation_id', '=', claim.operationId)
    .execute();
  const own = attempts.find(({ generation }) => generation === claim.generation);
  if (own?.outcome === 'late' || (!own && held.record.late_outcome === stored(outcome))) return;
  const { state } = held.record;
  const isNotSent = state === 'released' || state === 'reserved'; // the latter under a newer ordinal
  const isDenied = isNotSent && held.record.effect === 'unsafe' && isReportedApplied(outcome);
  const isAskedAnew = isDenied && state === 'released' && held.record.task_end === null;
  unit.save(held, {
    by: 'recordLate',
    to: isAskedAnew ? 'attention' : state,
    columns: { late_outcome: stored(outcome), ...(isAskedAnew && { attention_about: 'effect' as const }) },
    event: 'operation.late_outcome',
    data: {
      late: { ordinal: claim.ordinal, attempt: claim.attempt, generation: claim.generation },
      outcome: shownLate(outcome),
    },
  });
  if (own) endAttempt(unit, claim, 'late', held.now);
  const others = attempts.filter(({ generation }) => generation !== claim.generation);
  if (others.some(mayHaveApplied)) unit.alert(alert);
  else if (isDenied || state === 'attention')
    unit.alert({ ...alert, type: 'needs_attention', message: AFTER_ALL[kindOf(outcome)] ?? AFTER_ALL.other });
}

const AFTER_ALL: Record<string, string> & { other: string } = {
  applied: 'The attempt in doubt has reported after all: the effect took place.',
  other: 'The attempt in doubt has reported after all: read its outcome before this is resolved.',
};

const kindOf = (outcome: Json): string =>
  typeof outcome === 'object' && outcome !== null && 'kind' in outcome ? String(outcome.kind) : 'other';

/** What a handler said of its own effect outweighs what a person was told of it. */
const hasReportedApplied = (lateOutcome: string | null): boolean =>
  lateOutcome !== null && isReportedApplied(JSON.parse(lateOutcome) as Json);

/** For the audit: no value, as of every result. */
function shownLate(outcome: Json): JsonObject {
  const { result, failure } = outcome as { result?: StoredResult; failure?: Json };
  const kind = kindOf(outcome);
  return {
    kind,
    ...(kind === 'applied' && result && { result: digestOf(result) }),
    ...(failure !== undefined && { failure }),
  };
}

/** An execution that did not prove that nothing was applied. */
const mayHaveApplied = ({ executing, outcome }: { executing: number; outcome: string | null }): boolean =>
  executing === 1 && outcome !== 'released' && outcome !== 'refused' && outcome !== 'failed';

/** S10.3. A task that has no operation yet (refused while planning) has a chain all the same. */
export async function appendAudit(unit: Unit, request: Request<'appendAudit'>): Promise<void> {
  const held = await unit.tryLock(request.operationId);
  const about = held?.record ?? { operation_id: request.operationId, tenant: request.tenant };
  await unit.notes(about, request.taskId, request.notes);
  if (request.alert) await unit.alertOnce(request.alert);
}
