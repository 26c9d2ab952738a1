/**
 * The task's reducer: `reduce(state, event)` is the only way a task's state comes to be (S3.1).
 *
 * Owns: what each event means for the state. Never reads a clock, a random number or anything else outside.
 * Invariants:
 * 1. `seq` grows by one with each event; a gap is a programmer error.
 * 2. Once `ended`, nothing but `seq` and `updatedAt` changes.
 * 3. `inDoubt` is true from the moment an attempt is scheduled until an outcome says what is known.
 * 4. The attempt number never falls.
 */
import type { EventData, EventType, Step, TaskEvent } from './event.ts';
import type { Failure } from './failure.ts';
import type { OperationOutcome, StoredResult, TaskEnd } from './outcome.ts';
import type { AttemptView, Phase, TaskState } from './state.ts';
import { alreadyDecided, canRollBack, committedEnd, endedWith, rolledBackEnd } from './ends.ts';

const ATTEMPTS_KEPT = 100;
const VERIFY_POLL_INITIAL_MS = 500;
const VERIFY_POLL_MAXIMUM_MS = 300_000;

/** The state after `event`. `state` is null before the first, which must be `task_started`. */
export function reduce(state: TaskState | null, event: TaskEvent): TaskState {
  if (state === null) {
    if (event.type !== 'task_started' || event.seq !== 1)
      throw new Error('the first event of a task is task_started');
    return initialState(event.data, event.at);
  }
  if (event.seq !== state.seq + 1) throw new Error(`event ${event.seq} after ${state.seq}`);
  const next = { ...state, seq: event.seq, updatedAt: event.at };
  if (state.phase.kind === 'ended') return next;
  return { ...next, ...changes(next, event) };
}

function initialState(data: EventData['task_started'], at: number): TaskState {
  return {
    v: 1,
    taskId: data.taskId,
    action: data.action,
    operationId: data.plan?.operationId ?? null,
    ordinal: data.ordinal,
    plan: data.plan,
    seq: 1,
    startedAt: at,
    updatedAt: at,
    phase: ready(data.plan === null ? { kind: 'plan' } : EXECUTE, at),
    attempt: 0,
    retriesSpent: 0,
    rollbackRetriesSpent: 0,
    retriesExhausted: false,
    lostInARow: 0,
    inDoubt: false,
    cancelRequested: false,
    runDeadlinePassed: false,
    verifyUntil: null,
    verifyPolls: 0,
    lastFailure: null,
    nextEligibleAt: null,
    attempts: [],
    end: null,
    result: null,
    replayed: false,
  };
}

type Change = Partial<TaskState>;
type Handler<T extends EventType> = (state: TaskState, data: EventData[T], at: number) => Change;

function changes(state: TaskState, event: TaskEvent): Change {
  const handler = HANDLERS[event.type] as (state: TaskState, data: unknown, at: number) => Change;
  return handler(state, event.data, event.at);
}

const HANDLERS: { [T in EventType]: Handler<T> } = {
  task_started: () => ({}),
  plan_scheduled: (state) => ({ phase: working({ kind: 'plan' }, state.attempt) }),
  planned: (_state, data, at) => ({
    plan: data.plan,
    operationId: data.plan.operationId,
    ordinal: data.ordinal,
    phase: ready(EXECUTE, at),
    lostInARow: 0,
  }),
  plan_refused: (_state, data) => ({
    operationId: data.operationId,
    phase: { kind: 'finished', end: data.end, result: data.result, replayed: data.replayed },
  }),
  attempt_scheduled: (state, data, at) => ({
    attempt: data.attempt,
    inDoubt: true,
    nextEligibleAt: null,
    phase: working({ kind: 'attempt', purpose: data.purpose }, data.attempt),
    attempts: begun(state, {
      attempt: data.attempt,
      purpose: data.purpose,
      inline: data.inline,
      startedAt: at,
    }),
  }),
  attempt_finished: (state, data, at) =>
    isRunning(state, data.attempt)
      ? {
          ...answered(state, data.attempt, data.outcome.kind, failureOf(data.outcome), at),
          ...afterOutcome(state, data.outcome, at),
        }
      : {},
  rollback_scheduled: (state, data, at) => ({
    attempt: data.attempt,
    nextEligibleAt: null,
    phase: working({ kind: 'rollback', reason: data.reason }, data.attempt),
    attempts: begun(state, { attempt: data.attempt, purpose: 'rollback', inline: false, startedAt: at }),
  }),
  rollback_finished: afterRollback,
  close_scheduled: (state, data) => ({ phase: working({ kind: 'close', end: data.end }, state.attempt) }),
  close_finished: afterClose,
  resolve_scheduled: (state, data) => ({
    attempt: data.attempt,
    phase: working(stepOf(state), data.attempt),
  }),
  resolve_finished: afterResolve,
  step_lost: (state, data, at) => ({
    lostInARow: state.lostInARow + 1,
    lastFailure: data.failure,
    phase: { kind: 'retry_due', step: stepOf(state), failure: data.failure, spendsRetry: false },
    ...(data.attempt !== null && { attempts: finished(state, data.attempt, 'lost', data.failure, at) }),
  }),
  backoff_scheduled: (state, data) => ({
    nextEligibleAt: data.nextAt,
    lastFailure: data.failure,
    phase: { kind: 'ready', step: stepOf(state), notBefore: data.nextAt, waiting: 'backoff' },
    ...(data.spendsRetry &&
      (stepOf(state).kind === 'rollback'
        ? { rollbackRetriesSpent: state.rollbackRetriesSpent + 1 }
        : { retriesSpent: state.retriesSpent + 1 })),
  }),
  retries_exhausted: (_state, data) => ({ retriesExhausted: true, lastFailure: data.failure }),
  run_deadline_passed: () => ({ runDeadlinePassed: true }),
  cancel_requested: () => ({ cancelRequested: true }),
  attempt_abort_requested: (state) =>
    state.phase.kind === 'working' ? { phase: { ...state.phase, abortRequested: true } } : {},
  resolve_requested: (state, data, at) =>
    state.phase.kind === 'needs_attention'
      ? { phase: ready({ kind: 'resolve', resolution: data.resolution, about: state.phase.about }, at) }
      : {},
  message_ignored: () => ({}),
  task_ended: (_state, data) => ({
    phase: { kind: 'ended' },
    end: data.end,
    result: data.result,
    replayed: data.replayed,
    inDoubt: false,
    nextEligibleAt: null,
  }),
};

const EXECUTE: Step = { kind: 'attempt', purpose: 'execute' };
const SETTLE: Step = { kind: 'attempt', purpose: 'settle' };

function ready(step: Step, notBefore: number): Phase {
  return { kind: 'ready', step, notBefore, waiting: 'no' };
}

function working(step: Step, attempt: number): Phase {
  return { kind: 'working', step, attempt, abortRequested: false };
}

/** The step a phase is about; asking when there is none is a programmer error. */
function stepOf(state: TaskState): Step {
  if ('step' in state.phase) return state.phase.step;
  throw new Error(`no step in phase ${state.phase.kind}`);
}

function isRunning(state: TaskState, attempt: number): boolean {
  return state.phase.kind === 'working' && state.phase.attempt === attempt;
}

function begun(
  state: TaskState,
  view: Pick<AttemptView, 'attempt' | 'purpose' | 'inline' | 'startedAt'>,
): AttemptView[] {
  return [...state.attempts, { ...view, finishedAt: null, outcome: null, failure: null }].slice(
    -ATTEMPTS_KEPT,
  );
}

function finished(
  state: TaskState,
  attempt: number,
  outcome: string,
  failure: Failure | null,
  at: number,
): AttemptView[] {
  return state.attempts.map((view) =>
    view.attempt === attempt ? { ...view, finishedAt: at, outcome, failure } : view,
  );
}

function answered(
  state: TaskState,
  attempt: number,
  outcome: string,
  failure: Failure | null,
  at: number,
): Change {
  return {
    lostInARow: 0,
    attempts: finished(state, attempt, outcome, failure, at),
    ...(failure !== null && { lastFailure: failure }),
  };
}

function failureOf(outcome: OperationOutcome): Failure | null {
  return 'failure' in outcome ? outcome.failure : null;
}

function finish(end: TaskEnd, result: StoredResult | null = null, replayed = false): Change {
  return { inDoubt: false, phase: { kind: 'finished', end, result, replayed } };
}

function afterOutcome(state: TaskState, outcome: OperationOutcome, at: number): Change {
  switch (outcome.kind) {
    case 'committed':
      return afterCommit(state, outcome.result, outcome.replayed, at);
    case 'refused':
      return finish(endedWith(state, 'precondition_failed', outcome.reason));
    case 'failed':
      return finish(permanentEnd(state, outcome.failure));
    case 'released':
      return {
        inDoubt: false,
        phase: { kind: 'retry_due', step: EXECUTE, failure: outcome.failure, spendsRetry: spends(state) },
      };
    case 'unknown':
      return outcome.attention
        ? { phase: { kind: 'needs_attention', about: 'effect' } }
        : {
            phase: {
              kind: 'retry_due',
              step: stepOf(state),
              failure: outcome.failure,
              spendsRetry: spends(state),
            },
          };
    case 'notYet':
      return stillInvisible(state, at);
    case 'mismatch':
      return { phase: ready({ kind: 'rollback', reason: 'verify_failed' }, at) };
    case 'busy':
      return {
        nextEligibleAt: at + outcome.retryAfterMs,
        phase: { kind: 'ready', step: stepOf(state), notBefore: at + outcome.retryAfterMs, waiting: 'busy' },
      };
    case 'fenceStale':
      return outcome.superseded
        ? finish(endedWith(state, 'superseded', 'Another run of this operation took over.'))
        : { attempt: Math.max(state.attempt, outcome.rowAttempt), phase: ready(stepOf(state), at) };
    case 'conflict':
      return finish(
        endedWith(
          state,
          'idempotency_conflict',
          `The key was used with other arguments; they differ at ${outcome.paths.join(', ')}.`,
        ),
      );
    case 'spent':
      return finish(alreadyDecided(outcome.end), null, true);
    case 'needsApproval':
      return {
        inDoubt: false,
        phase: ready({ kind: 'close', end: endedWith(state, 'approval_required', outcome.reason) }, at),
      };
    default:
      return outcome satisfies never;
  }
}

function permanentEnd(state: TaskState, failure: Failure): TaskEnd {
  const cause = failure.code === 'verify_failed' ? 'verify_failed' : 'permanent_failure';
  return endedWith(state, cause, failure.message, failure);
}

/** Finding out (settle) is no business retry; only bringing about is. */
function spends(state: TaskState): boolean {
  const step = stepOf(state);
  return step.kind === 'attempt' && step.purpose === 'execute';
}

function afterCommit(state: TaskState, result: StoredResult, replayed: boolean, at: number): Change {
  if (state.cancelRequested && !replayed && canRollBack(state.plan)) {
    return { inDoubt: false, phase: ready({ kind: 'rollback', reason: 'cancelled' }, at) };
  }
  return finish(committedEnd(state), result, replayed);
}

function stillInvisible(state: TaskState, at: number): Change {
  const verifyUntil = state.verifyUntil ?? at + (state.plan?.deadlines.verifyMs ?? 0);
  const delayMs = Math.min(
    VERIFY_POLL_INITIAL_MS * 2 ** Math.min(state.verifyPolls, 20),
    VERIFY_POLL_MAXIMUM_MS,
  );
  const nextAt = Math.min(at + delayMs, Math.max(verifyUntil, at));
  return {
    verifyUntil,
    verifyPolls: state.verifyPolls + 1,
    nextEligibleAt: nextAt,
    phase: { kind: 'verifying', nextAt },
  };
}

function afterRollback(state: TaskState, data: EventData['rollback_finished'], at: number): Change {
  const step = stepOf(state);
  if (!isRunning(state, data.attempt) || step.kind !== 'rollback') return {};
  const { outcome } = data;
  const failure = 'failure' in outcome ? outcome.failure : null;
  const change = answered(state, data.attempt, outcome.kind, failure, at);
  switch (outcome.kind) {
    case 'rolledBack':
      return { ...change, ...finish(rolledBackEnd(state, step.reason, outcome.remains)) };
    case 'retry':
      return { ...change, phase: { kind: 'retry_due', step, failure: outcome.failure, spendsRetry: true } };
    case 'attention':
      return { ...change, phase: { kind: 'needs_attention', about: 'rollback' } };
    case 'fenceStale':
      return { ...change, attempt: Math.max(state.attempt, outcome.rowAttempt), phase: ready(step, at) };
    default:
      return outcome satisfies never;
  }
}

function afterClose(state: TaskState, data: EventData['close_finished'], at: number): Change {
  const step = stepOf(state);
  if (step.kind !== 'close') return {};
  const { outcome } = data;
  switch (outcome.kind) {
    case 'closed':
      return { lostInARow: 0, ...finish(step.end) };
    case 'inFlight':
      return {
        lostInARow: 0,
        inDoubt: true,
        attempt: Math.max(state.attempt, outcome.rowAttempt),
        phase: ready(SETTLE, at),
      };
    case 'committed':
      return { lostInARow: 0, ...afterCommit(state, outcome.result, false, at) };
    case 'superseded':
      return finish(endedWith(state, 'superseded', 'Another run of this operation took over.'));
    default:
      return outcome satisfies never;
  }
}

function afterResolve(state: TaskState, data: EventData['resolve_finished'], at: number): Change {
  const step = stepOf(state);
  if (step.kind !== 'resolve') return {};
  if (data.end !== null) return { lostInARow: 0, ...finish(data.end) };
  const isApplied = step.resolution.as === 'applied';
  return {
    lostInARow: 0,
    inDoubt: isApplied,
    retriesExhausted: false,
    verifyUntil: null,
    verifyPolls: 0,
    phase: ready(isApplied ? SETTLE : EXECUTE, at),
  };
}
