/**
 * A procedure's operation and those of its steps (S1.5, S6.3). A step's row names the procedure's as its parent, has its
 * task and ordinal, and gets its end with it: until then it can be undone.
 */
import { differingPaths } from '../contract/redact.ts';
import { committedEnd } from '../task/ends.ts';
import type { JsonObject } from '../task/json.ts';
import type { TaskEnd } from '../task/outcome.ts';
import { loseAttempt } from './attempt.ts';
import type { RowState, Transitions } from './ledger.ts';
import { hasSameFingerprint, insertReserved } from './reserve.ts';
import { stored } from './row.ts';
import { digestOf, ended } from './settle.ts';
import type { Held, Unit } from './unit.ts';

type Request<M extends keyof Transitions> = Parameters<Transitions[M]>[0];
type Answer<M extends keyof Transitions> = Awaited<ReturnType<Transitions[M]>>;

/** S1.5, for a step: its row before anything is claimed. The procedure's is `in_flight` from its first step on. */
export async function reserveStep(
  unit: Unit,
  request: Request<'reserveStep'>,
): Promise<Answer<'reserveStep'>> {
  const { parent: place, reservation } = request;
  const parent = await unit.lock(place.operationId);
  await unit.notes(parent.record, place.taskId, request.notes);
  const isOurs = parent.record.task_id === place.taskId && parent.record.ordinal === place.ordinal;
  if (!isOurs || parent.record.task_end !== null) return { kind: 'superseded', row: parent.row };
  if (parent.record.state === 'reserved')
    unit.save(parent, {
      by: 'reserveStep',
      to: 'in_flight',
      columns: {},
      event: 'operation.procedure_begun',
    });
  const inserted = await insertReserved(unit, {
    ...reservation,
    taskId: place.taskId,
    ordinal: place.ordinal,
    parentOperationId: place.operationId,
  });
  if (inserted !== null) return { kind: 'reserved', row: inserted.row };
  const met = await unit.lock(reservation.operationId);
  if (!hasSameFingerprint(met.row, reservation))
    return {
      kind: 'conflict',
      paths: differingPaths(met.row.arguments, reservation.arguments),
      row: met.row,
    };
  if (met.record.task_id !== place.taskId || met.record.ordinal !== place.ordinal) adopt(unit, met, place);
  return { kind: 'reserved', row: met.row };
}

/** S3.8: another run of the procedure goes on where an earlier one was killed; its attempts are older than any of ours. */
function adopt(unit: Unit, held: Held, place: { taskId: string; ordinal: number }): void {
  const { record } = held;
  unit.note(record, 'operation.left', { to: place.taskId, ordinal: place.ordinal, cause: 'engine_closed' });
  loseAttempt(unit, record, held.now);
  unit.save(held, {
    by: 'reserveStep',
    to: record.state,
    columns: {
      ordinal: place.ordinal,
      task_id: place.taskId,
      attempt: 0,
      generation: record.generation + 1,
      claimed_until: null,
    },
    event: 'operation.recovered',
    data: { previousTask: record.task_id },
  });
}

/** The end of a procedure: its own row's, and that of each step which still lacks one. */
export async function endProcedure(
  unit: Unit,
  request: Request<'endProcedure'>,
): Promise<Answer<'endProcedure'>> {
  const { operationId, taskId, ordinal, end, result, notes } = request;
  const held = await unit.lock(operationId);
  const { record } = held;
  await unit.notes(record, taskId, notes);
  if (record.task_id !== taskId || record.ordinal !== ordinal) return { kind: 'superseded', row: held.row };
  if (record.task_end !== null) return { kind: 'ended', row: held.row };
  const data: JsonObject = { end: { ...end } as unknown as JsonObject };
  unit.save(held, {
    by: 'endProcedure',
    to: stateAfter(record.state, end),
    columns: { ...ended(end), ...(result && { result: stored(result) }) },
    event: 'operation.procedure_ended',
    data: { ...data, ...(result && { result: digestOf(result) }) },
  });
  await endSteps(unit, operationId, taskId);
  return { kind: 'ended', row: held.row };
}

async function endSteps(unit: Unit, operationId: string, taskId: string): Promise<void> {
  const steps = await unit.tx.kysely
    .selectFrom('operation')
    .select('operation_id')
    .where('parent_operation_id', '=', operationId)
    .where('task_id', '=', taskId)
    .where('state', '=', 'committed')
    .where('task_end', 'is', null)
    .orderBy('operation_id')
    .execute();
  for (const { operation_id: stepId } of steps) {
    const held = await unit.lock(stepId);
    if (held.record.state !== 'committed' || held.record.task_end !== null) continue;
    const end = committedEnd({ plan: null, cancelRequested: false });
    const own: TaskEnd = held.record.effect === 'safe' ? { ...end, effect: 'none' } : end;
    unit.save(held, {
      by: 'recordEnd',
      to: 'committed',
      columns: ended(own),
      event: 'operation.ended',
      data: { end: { ...own } as unknown as JsonObject },
    });
  }
}

/** Nothing was sent, or nothing of it is left to say: the key may be called again (S1.6); else it is spent. */
function stateAfter(state: RowState, end: TaskEnd): RowState {
  switch (end.effect) {
    case 'applied':
      return 'committed';
    case 'rolled_back':
      return 'rolled_back';
    case 'unknown':
      return 'abandoned';
    case 'none':
      if (end.status === 'completed') return 'committed';
      return state === 'reserved' ? 'reserved' : 'released';
    default:
      return end.effect satisfies never;
  }
}
