/**
 * A procedure's reducer: which steps it began, what they brought, in which order they were committed, and how it stands
 * (S3.1, S6.3). Pure. What a step itself goes through is reduce.ts's, one state for each step.
 *
 * Invariants:
 * 1. An item's outcome is told to the code once, in the order of `order`; told again in that order when the code is run
 *    anew over what is recorded (S3.6).
 * 2. `committed` holds the steps that stand and can be undone, in the order of their commits; nothing leaves it but by
 *    being undone, or by a person's word.
 * 3. The first reason to stop stands. Once stopped, no step is begun.
 * 4. A use of a stepId is counted for good: `stepId#n` never names two steps (S1.2).
 */
import { stepOfCallId } from './approval.ts';
import type { DecisionMessage } from './approval.ts';
import type { ItemOutcome, ProcedureEvent, ProcedureEventData, UndoReason } from './procedure-event.ts';
import type { Json } from './json.ts';
import type { StoredResult, TaskEnd, TaskError, TerminalCause } from './outcome.ts';
import type { PastSteps } from './past-steps.ts';
import { isOver } from './phase.ts';
import type { Plan } from './plan.ts';
import type { AlertDue } from './state.ts';

/** A step, sleep or child the code asked for. */
export interface Item {
  step: string;
  kind: 'step' | 'sleep' | 'child';
  /** Action or procedure; empty for a sleep. */
  action: string;
  /** Of the arguments, so that code that asks for something else when run anew is noticed. */
  fingerprint: string;
  /** Sleeps alone. */
  until: number | null;
  outcome: ItemOutcome | null;
  /** Its place among the outcomes, from 1; null while it is under way. */
  order: number | null;
}

export type ProcedurePhase =
  | { kind: 'planning' }
  | { kind: 'running' }
  /** `result`: what the code returned; what is under way is waited for. */
  | { kind: 'returned'; result: Json }
  | { kind: 'undoing'; reason: UndoReason }
  | { kind: 'finished'; end: TaskEnd; result: StoredResult | null; replayed: boolean }
  | { kind: 'ended' };

export interface ProcedureState {
  v: 1;
  taskId: string;
  procedure: string;
  operationId: string | null;
  ordinal: number;
  plan: Plan | null;
  seq: number;
  startedAt: number;
  updatedAt: number;
  phase: ProcedurePhase;
  /** In the order the code asked for them. */
  items: Item[];
  /** How often each stepId was used. */
  uses: Record<string, number>;
  /** The same when the code last began from the top. */
  usesBefore: Record<string, number>;
  /** Outcomes so far. */
  outcomes: number;
  /** For steps that have not begun (S4.3), oldest first; absent where there were none. */
  heldDecisions?: DecisionMessage[];
  /** Of steps that were left behind; absent where none were. */
  past?: PastSteps;
  /** Oldest first. */
  committed: string[];
  /** Why the code goes no further. */
  failure: { cause: TerminalCause; error: TaskError } | null;
  cancelRequested: boolean;
  interrupted: boolean;
  /** S5.3; absent until then. `isAlerted`: the outbox has the alert. */
  slaMissed?: { at: number; isAlerted: boolean };
  restarts: number;
  end: TaskEnd | null;
  result: StoredResult | null;
  replayed: boolean;
}

/** Null before the first event, which is `procedure_started`. */
export function reduceProcedure(state: ProcedureState | null, event: ProcedureEvent): ProcedureState {
  if (state === null) {
    if (event.type !== 'procedure_started')
      throw new Error('the first event of a procedure is procedure_started');
    return initialState(event.data, event.seq, event.at);
  }
  if (event.seq <= state.seq) throw new Error(`event ${event.seq} after ${state.seq}`);
  const next = { ...state, seq: event.seq, updatedAt: event.at };
  if (state.phase.kind === 'ended') return next;
  return { ...next, ...changes(next, event) };
}

function initialState(
  { taskId, procedure, ordinal, plan }: ProcedureEventData['procedure_started'],
  seq: number,
  at: number,
): ProcedureState {
  return {
    v: 1,
    taskId,
    procedure,
    operationId: plan?.operationId ?? null,
    ordinal,
    plan,
    seq,
    startedAt: at,
    updatedAt: at,
    phase: plan === null ? { kind: 'planning' } : { kind: 'running' },
    items: [],
    uses: {},
    usesBefore: {},
    outcomes: 0,
    committed: [],
    failure: null,
    cancelRequested: false,
    interrupted: false,
    restarts: 0,
    end: null,
    result: null,
    replayed: false,
  };
}

function changes(state: ProcedureState, event: ProcedureEvent): Partial<ProcedureState> {
  switch (event.type) {
    case 'procedure_started':
    case 'message_ignored':
    case 'decision_ignored':
      return {};
    case 'decision_held':
      return { heldDecisions: [...(state.heldDecisions ?? []), event.data.decision] };
    case 'end_scheduled':
      return { phase: { kind: 'finished', end: event.data.end, result: null, replayed: false } };
    case 'procedure_planned': {
      const { plan, ordinal } = event.data;
      return { plan, ordinal, operationId: plan.operationId, phase: { kind: 'running' } };
    }
    case 'procedure_refused': {
      const { operationId, ...ended } = event.data;
      return { operationId, phase: { kind: 'finished', ...ended } };
    }
    case 'step_opened':
    case 'sleep_started':
    case 'child_started':
      return begun(state, event);
    case 'step_closed': {
      const { step, outcome, undo } = event.data;
      return { ...told(state, step, outcome), ...(undo && { committed: [...state.committed, step] }) };
    }
    case 'sleep_ended':
      return told(state, event.data.step, { ok: true, result: { kind: 'inline', value: null } });
    case 'child_ended':
      return told(state, event.data.step, event.data.outcome);
    case 'procedure_returned':
      return state.phase.kind === 'running' ? { phase: { kind: 'returned', result: event.data.result } } : {};
    case 'procedure_failed':
      return isStopped(state) ? {} : { failure: event.data };
    case 'procedure_restarted':
      return { items: [], outcomes: 0, usesBefore: state.uses, restarts: event.data.runs };
    case 'sla_missed':
      return { slaMissed: { at: event.at, isAlerted: false } };
    case 'alert_recorded':
      return state.slaMissed === undefined ? {} : { slaMissed: { ...state.slaMissed, isAlerted: true } };
    case 'cancel_requested':
      return isOver(state) ? {} : { cancelRequested: true };
    case 'interrupted':
      return { interrupted: true };
    case 'resumed':
      return { interrupted: false };
    case 'undo_started':
      return event.data.within === null ? { phase: { kind: 'undoing', reason: event.data.reason } } : {};
    case 'step_undone':
      return { committed: state.committed.filter((step) => step !== event.data.step) };
    case 'task_ended':
      return { phase: { kind: 'ended' }, ...event.data };
    default:
      return event satisfies never;
  }
}

/** Counts one more use of a stepId; any name counts, those of an object's own members too. */
export function usedAgain(uses: Readonly<Record<string, number>>, name: string): Record<string, number> {
  return { ...uses, [name]: usesOf(uses, name) + 1 };
}

export function usesOf(uses: Readonly<Record<string, number>>, name: string): number {
  return Object.hasOwn(uses, name) ? (uses[name] ?? 0) : 0;
}

function begun(
  state: ProcedureState,
  event: Extract<ProcedureEvent, { type: 'step_opened' | 'sleep_started' | 'child_started' }>,
): Partial<ProcedureState> {
  const { step } = event.data;
  const item: Item = {
    step,
    kind: 'step',
    action: '',
    fingerprint: '',
    until: null,
    outcome: null,
    order: null,
  };
  const name = step.replace(/#\d+$/, '');
  const uses = usedAgain(state.uses, name);
  switch (event.type) {
    case 'step_opened': {
      const { action, fingerprint } = event.data;
      return { uses, items: [...state.items, { ...item, action, fingerprint }], ...handedOver(state, step) };
    }
    case 'child_started': {
      const { procedure, fingerprint } = event.data;
      return { uses, items: [...state.items, { ...item, kind: 'child', action: procedure, fingerprint }] };
    }
    case 'sleep_started':
      return { uses, items: [...state.items, { ...item, kind: 'sleep', until: event.data.until }] };
    default:
      return event satisfies never;
  }
}

/** Decisions that a step is handed when it begins (S4.3). */
export function heldFor({ heldDecisions = [] }: ProcedureState, step: string): DecisionMessage[] {
  return heldDecisions.filter(({ callId }) => stepOfCallId(callId) === step);
}

/** What was held for a step is its own from its beginning. */
function handedOver(state: ProcedureState, step: string): Partial<ProcedureState> {
  const held = heldFor(state, step);
  if (held.length === 0) return {};
  return { heldDecisions: (state.heldDecisions ?? []).filter((decision) => !held.includes(decision)) };
}

function told(state: ProcedureState, step: string, outcome: ItemOutcome): Partial<ProcedureState> {
  const order = state.outcomes + 1;
  const items = state.items.map((item) => (item.step === step ? { ...item, outcome, order } : item));
  return { items, outcomes: order };
}

/** Whether the code goes no further (S6.3). */
export function isStopped({ phase, failure, cancelRequested }: ProcedureState): boolean {
  return cancelRequested || failure !== null || phase.kind === 'undoing' || isOver({ phase });
}

/** S5.3: when people are to be alerted that it is not over; null when they were, or nothing was promised. */
export function slaDueAtOf({ plan, startedAt, slaMissed }: ProcedureState): number | null {
  const slaMs = plan?.deadlines.slaMs;
  return slaMs === undefined || slaMissed !== undefined ? null : startedAt + slaMs;
}

/** The alert that the outbox does not have yet. */
export function slaAlertDue({ slaMissed }: ProcedureState): AlertDue | null {
  if (slaMissed === undefined || slaMissed.isAlerted) return null;
  const message = 'The procedure is not over within its business SLA; it goes on.';
  return { type: 'sla_missed', message, callId: null, at: slaMissed.at };
}
