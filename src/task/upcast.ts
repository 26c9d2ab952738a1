/**
 * Journal entries and carried states of older versions, brought to the newest on reading (S3.3). Pure.
 *
 * What is stored is never rewritten. `STEPS_UP[n]` takes version n to n + 1; a new version adds one line here and
 * nothing elsewhere. A version from the future (an older worker after a rollout was taken back) is refused, so that the
 * engine waits for a worker that knows it.
 */
import type { TaskEvent } from './event.ts';
import type { TaskState } from './state.ts';

/** A journal entry or state as some version wrote it. */
export interface Stored {
  v: number;
}

type StepsUp = Record<number, (stored: Stored) => Stored>;

const NEWEST_EVENT = 1;
const NEWEST_STATE = 2;

const EVENT_STEPS_UP: StepsUp = {};
const STATE_STEPS_UP: StepsUp = {
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
};

/** The event as the newest version writes it. */
export function upcastEvent(stored: Stored): TaskEvent {
  return upcast(stored, EVENT_STEPS_UP, NEWEST_EVENT, 'event') as TaskEvent;
}

/** The reduced state as the newest version keeps it. */
export function upcastState(stored: Stored): TaskState {
  return upcast(stored, STATE_STEPS_UP, NEWEST_STATE, 'state') as TaskState;
}

function upcast(stored: Stored, stepsUp: StepsUp, newest: number, what: string): Stored {
  let current = stored;
  while (current.v < newest) {
    const stepUp = stepsUp[current.v];
    if (stepUp === undefined) throw new Error(`no way up for a task ${what} of version ${current.v}`);
    current = stepUp(current);
  }
  if (current.v !== newest)
    throw new Error(`a task ${what} of version ${current.v} is newer than this worker`);
  return current;
}
