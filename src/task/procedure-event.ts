import type { DecisionMessage } from './approval.ts';
import type { EventData, TaskEvent } from './event.ts';
import type { Json } from './json.ts';
import type { StoredResult, TaskEnd, TaskError, TerminalCause } from './outcome.ts';
import type { Plan } from './plan.ts';

/** Why a procedure goes no further and undoes what it committed (S6.3). */
export type UndoReason = 'cancelled' | 'procedure_failed';

/** What a step, a child or a wait brought the procedure's code. */
export type ItemOutcome =
  { ok: true; result: StoredResult } | { ok: false; cause: TerminalCause; error: TaskError };

/**
 * The events of a procedure's own journal, by type; those of its steps stand beside them, each with `data.step`.
 * Persisted in recorded histories: names and fields are only added to.
 */
export interface ProcedureEventData {
  procedure_started: { taskId: string; procedure: string; ordinal: number; plan: Plan | null };
  procedure_planned: { plan: Plan; ordinal: number };
  /** Planning a bare start was refused, or its key's operation is already decided; the task ends with this. */
  procedure_refused: {
    end: TaskEnd;
    operationId: string | null;
    result: StoredResult | null;
    replayed: boolean;
  };
  step_opened: { step: string; action: string; fingerprint: string };
  /** `undo`: it has an effect that is committed and can be undone. */
  step_closed: { step: string; outcome: ItemOutcome; undo: boolean };
  sleep_started: { step: string; until: number };
  sleep_ended: { step: string };
  child_started: { step: string; procedure: string; fingerprint: string };
  child_ended: { step: string; outcome: ItemOutcome };
  /** The procedure's code returned; what is still under way is waited for. */
  procedure_returned: { result: Json };
  /** The procedure's code threw, or its deadline passed. */
  procedure_failed: { cause: TerminalCause; error: TaskError };
  /** The code asked to go on from the top with another input; what was finished is forgotten, what can be undone is not. */
  procedure_restarted: { runs: number };
  /** For a step that has not begun (S4.3); handed to it when it begins. */
  decision_held: { decision: DecisionMessage };
  cancel_requested: { by: string; reason?: string };
  interrupted: { by: string; reason?: string };
  resumed: { by: string };
  /** About a step that is not there. */
  decision_ignored: EventData['decision_ignored'];
  message_ignored: { message: string; code: string };
  /** S5.3: the business SLA passed and the procedure is not over. Once. */
  sla_missed: Record<string, never>;
  /** The outbox has the alert that was due. */
  alert_recorded: { type: string };
  /** Committed steps are undone from here on, newest first. `within`: those of a child alone. */
  undo_started: { reason: UndoReason; steps: string[]; within: string | null };
  step_undone: { step: string };
  end_scheduled: { end: TaskEnd };
  task_ended: { end: TaskEnd; result: StoredResult | null; replayed: boolean };
}

export type ProcedureEventType = keyof ProcedureEventData;

/** One entry of a procedure's own journal. `seq` counts its steps' events too, so it has gaps here. */
export type ProcedureEvent = {
  [T in ProcedureEventType]: { v: 1; seq: number; type: T; at: number; data: ProcedureEventData[T] };
}[ProcedureEventType];

export type NewProcedureEvent = {
  [T in ProcedureEventType]: { type: T; data: ProcedureEventData[T] };
}[ProcedureEventType];

/** What query `events` answers for any task; a procedure's steps are told apart by `data.step`. */
export type JournalEntry = TaskEvent | ProcedureEvent;
