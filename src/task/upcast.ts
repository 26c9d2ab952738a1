/**
 * Journal entries and carried states of older versions, brought to the newest on reading (S3.3). Pure.
 *
 * What is stored is never rewritten: one journal may hold entries of several versions, each read by its own `v`.
 * `stepsUp[n]` takes version n to n + 1; a new version adds one line there and nothing elsewhere. A version from the
 * future (an older worker after a rollout was taken back) is refused, so that the engine waits for a worker that knows
 * it. docs/architecture.md says when a version is needed and how one is added.
 */
import type { TaskEvent } from './event.ts';
import type { JournalEntry } from './procedure-event.ts';
import type { ProcedureState } from './procedure-state.ts';
import type { TaskState } from './state.ts';

/** A journal entry or state as some version wrote it. */
export interface Stored {
  v: number;
}

/** The versions there have been of one thing. */
export interface Lineage {
  what: string;
  newest: number;
  stepsUp: Record<number, (stored: Stored) => Stored>;
}

/** Fields that a later release only added are read as absent; nothing had to be stepped up yet. */
const EVENT: Lineage = { what: 'task event', newest: 1, stepsUp: {} };

const STATE: Lineage = {
  what: 'task state',
  newest: 2,
  stepsUp: {
    // 0.1 knew neither approvals nor interrupts.
    1: (state) => ({
      ...state,
      v: 2,
      interrupted: false,
      approvalCycle: 0,
      decided: null,
      humanWaitMs: 0,
      heldDecisions: [],
      answers: [],
      alertsDue: [],
    }),
  },
};

const PROCEDURE: Lineage = { what: 'procedure state', newest: 1, stepsUp: {} };

/** Its own entries and those of its steps, which are kept to be shown. */
const ENTRY: Lineage = { what: 'procedure entry', newest: 1, stepsUp: {} };

/** The event as the newest version writes it. */
export function upcastEvent(stored: Stored): TaskEvent {
  return upcast(stored, EVENT) as TaskEvent;
}

/** The reduced state as the newest version keeps it. */
export function upcastState(stored: Stored): TaskState {
  return upcast(stored, STATE) as TaskState;
}

export function upcastProcedure(stored: Stored): ProcedureState {
  return upcast(stored, PROCEDURE) as ProcedureState;
}

export function upcastEntry(stored: Stored): JournalEntry {
  return upcast(stored, ENTRY) as JournalEntry;
}

/** Step by step, and the one stored stays as it is. */
export function upcast(stored: Stored, { what, newest, stepsUp }: Lineage): Stored {
  let current = stored;
  while (current.v < newest) {
    const stepUp = stepsUp[current.v];
    if (stepUp === undefined) throw new Error(`no way up for a ${what} of version ${current.v}`);
    current = stepUp(current);
  }
  if (current.v !== newest) throw new Error(`a ${what} of version ${current.v} is newer than this worker`);
  return current;
}
