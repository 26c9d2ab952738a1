/** The attempt table: one line for each granted claim, so that a person can read who tried what and how it went. */
import type { Claim } from '../task/claim.ts';
import type { OperationTable } from './schema.ts';
import type { Held, Unit } from './unit.ts';

/** The claim that `held` was just granted (its record already carries it). */
export function beginAttempt(unit: Unit, held: Held, taskId: string, executing: boolean): void {
  insertAttempt(unit, held.record, { taskId, now: held.now, executing, outcome: null });
}

/** An attempt that ended with its claim: refused before anything was claimed. */
export function refusedAttempt(unit: Unit, held: Held, taskId: string): void {
  insertAttempt(unit, held.record, { taskId, now: held.now, executing: false, outcome: 'refused' });
}

function insertAttempt(
  unit: Unit,
  record: OperationTable,
  {
    taskId,
    now,
    executing,
    outcome,
  }: { taskId: string; now: number; executing: boolean; outcome: string | null },
): void {
  const { operation_id: operationId, generation, ordinal, attempt } = record;
  const finished = outcome === null ? null : now;
  const values = {
    operationId,
    generation,
    ordinal,
    attempt,
    taskId,
    now,
    executing: Number(executing),
    outcome,
    finished,
  };
  unit.tx.send(
    unit.tx.statements.get('insert attempt', values, (db, slots) =>
      db.insertInto('attempt').values({
        operation_id: slots.operationId,
        generation: slots.generation,
        ordinal: slots.ordinal,
        attempt: slots.attempt,
        task_id: slots.taskId,
        claimed_at: slots.now,
        executing: slots.executing,
        outcome: slots.outcome,
        finished_at: slots.finished,
      }),
    ),
  );
}

/** The claim that `before` carried was taken over before it said how it went. */
export function loseAttempt(unit: Unit, before: OperationTable, now: number): void {
  if (before.claimed_until === null) return;
  const values = {
    operationId: before.operation_id,
    generation: before.generation,
    now,
    outcome: 'taken_over',
  };
  unit.tx.send(
    unit.tx.statements.get('lose attempt', values, (db, slots) =>
      db
        .updateTable('attempt')
        .set({ outcome: slots.outcome, finished_at: slots.now })
        .where('operation_id', '=', slots.operationId)
        .where('generation', '=', slots.generation)
        .where('outcome', 'is', null),
    ),
  );
}

/** Records the intent to execute under a claim that was taken without one. */
export function intendAttempt(unit: Unit, claim: Pick<Claim, 'operationId' | 'generation'>): void {
  const { operationId, generation } = claim;
  unit.tx.send(
    unit.tx.statements.get('intend attempt', { operationId, generation }, (db, slots) =>
      db
        .updateTable('attempt')
        .set({ executing: 1 })
        .where('operation_id', '=', slots.operationId)
        .where('generation', '=', slots.generation),
    ),
    1,
  );
}

export function endAttempt(
  unit: Unit,
  claim: Pick<Claim, 'operationId' | 'generation'>,
  outcome: string,
  now: number,
): void {
  const values = { operationId: claim.operationId, generation: claim.generation, outcome, now };
  unit.tx.send(
    unit.tx.statements.get('end attempt', values, (db, slots) =>
      db
        .updateTable('attempt')
        .set({ outcome: slots.outcome, finished_at: slots.now })
        .where('operation_id', '=', slots.operationId)
        .where('generation', '=', slots.generation),
    ),
    1,
  );
}
