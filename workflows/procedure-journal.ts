/**
 * A procedure's journal: its own events and those of its steps in one order, the state reduced from its own, and what
 * the audit does not have yet. Plain JSON throughout, so that it crosses continue-as-new.
 *
 * Invariants:
 * 1. `seq` counts all of them; the newest 200 are kept, older ones are in the audit.
 * 2. A step's notes are its own journal's (journal.ts); here are those about the procedure.
 */
import { proxySinks, workflowInfo } from '@temporalio/workflow';
import type { AuditNote } from '../src/task/activity-api.ts';
import type { TaskEvent } from '../src/task/event.ts';
import type { JsonObject } from '../src/task/json.ts';
import type { JournalEntry, NewProcedureEvent, ProcedureEvent } from '../src/task/procedure-event.ts';
import { PROCEDURE_NOTED, noteOf } from '../src/task/notes.ts';
import { reduceProcedure } from '../src/task/procedure-state.ts';
import type { ProcedureState } from '../src/task/procedure-state.ts';
import { upcastEntry, upcastProcedure } from '../src/task/upcast.ts';
import { CARRIED_BYTES_MAX, EVENTS_KEPT, countWithin } from './journal.ts';
import type { HintSinks } from './journal.ts';

export interface ProcedureJournalSnapshot {
  state: ProcedureState;
  events: JournalEntry[];
  pending: AuditNote[];
}

type Started = Extract<NewProcedureEvent, { type: 'procedure_started' }>;

export class ProcedureJournal {
  state: ProcedureState;
  readonly events: JournalEntry[];
  #pending: AuditNote[] = [];
  readonly #hints = proxySinks<HintSinks>().holdfastHints;
  readonly #status: () => string;
  #seq: number;

  /** `status`: what is told to those who wait for a change. */
  constructor(start: ProcedureJournalSnapshot | Started, status: () => string) {
    this.#status = status;
    if ('state' in start) {
      this.state = upcastProcedure(start.state);
      this.events = start.events.map(upcastEntry);
      this.#pending = start.pending;
      this.#seq = start.events.at(-1)?.seq ?? start.state.seq;
      return;
    }
    const first: ProcedureEvent = { v: 1, seq: 1, at: workflowInfo().startTime.getTime(), ...start };
    this.state = reduceProcedure(null, first);
    this.events = [first];
    this.#seq = 1;
  }

  append(event: NewProcedureEvent): void {
    const whole = { v: 1, seq: this.#seq + 1, at: Date.now(), ...event } as ProcedureEvent;
    this.state = reduceProcedure(this.state, whole);
    if (whole.type === 'decision_held') {
      const note = noteOf(whole);
      if (note !== null) this.#pending.push(note);
    } else if (PROCEDURE_NOTED.includes(whole.type)) {
      const data: JsonObject = { ...(whole.data as unknown as JsonObject), seq: whole.seq };
      this.#pending.push({ type: whole.type, at: whole.at, data });
    }
    this.#keep(whole);
  }

  /** A step's event takes its place among the others. */
  heard(step: string, event: TaskEvent): void {
    this.#keep({ ...event, seq: this.#seq + 1, data: { ...event.data, step } } as unknown as TaskEvent);
  }

  get pendingCount(): number {
    return this.#pending.length;
  }

  /** The oldest of them, as many as one activity may be given. */
  unaudited(): AuditNote[] {
    return this.#pending.slice(0, countWithin(this.#pending, CARRIED_BYTES_MAX));
  }

  audited(notes: readonly AuditNote[]): void {
    const carried = new Set(notes.map(({ data }) => data['seq']));
    this.#pending = this.#pending.filter(({ data }) => !carried.has(data['seq']));
  }

  snapshot(): ProcedureJournalSnapshot {
    const newestFirst = this.events.toReversed();
    const events = newestFirst.slice(0, countWithin(newestFirst, CARRIED_BYTES_MAX / 2)).toReversed();
    return { state: this.state, events, pending: this.unaudited() };
  }

  #keep(event: JournalEntry): void {
    this.#seq = event.seq;
    this.events.push(event);
    if (this.events.length > EVENTS_KEPT) this.events.shift();
    this.#hints.changed(this.state.taskId, event.seq, this.#status());
  }
}
