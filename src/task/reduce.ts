/**
 * The task's reducer: `reduce(state, event)` is the only way a task's state comes to be (S3.1).
 *
 * Owns: what each event means for the state. Never reads a clock, a random number or anything else outside.
 * Invariants:
 * 1. `seq` grows by one with each event; a gap is a programmer error.
 * 2. Once `ended`, nothing but `seq` and `updatedAt` changes; once `finished`, the end is decided and only said, except
 *    that a procedure may undo a step of its own that is committed.
 * 3. `inDoubt` is true from the moment an attempt is scheduled until an outcome says what is known.
 * 4. The attempt number never falls, and grows with each step that may claim; one step at a time.
 */
import { afterAttempt, afterClose, afterResolve, afterRollback, finished } from './answers.ts';
import type { Change } from './answers.ts';
import { endedWith } from './ends.ts';
import type { EventData, EventType, Resolution, Step, TaskEvent } from './event.ts';
import {
  afterLeaseAskFailed,
  afterLeaseGranted,
  afterLeaseReleased,
  afterLeaseRequested,
  leaseAfter,
} from './held-lease.ts';
import {
  afterApprovalDecided,
  afterApprovalExpired,
  afterApprovalExpiring,
  afterApprovalOpened,
  afterChallengeFailed,
  afterApprovalGiven,
  afterDecisionHeld,
  remembered,
} from './approval-state.ts';
import { EXECUTE, PREVIEW, SETTLE, firstStep, isOver, ready, stepOf, working } from './phase.ts';
import {
  afterRemoteAnswered,
  afterRemoteCancelPassed,
  afterRemoteLost,
  afterRemoteTold,
} from './remote-state.ts';
import type { AttemptView, Phase, TaskState } from './state.ts';

const ATTEMPTS_KEPT = 100;
const RESOLUTIONS_REMEMBERED = 20;

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
  return { ...next, ...leaseAfter(next, event), ...changes(next, event) };
}

export function initialState(data: EventData['task_started'], at: number): TaskState {
  return {
    v: 2,
    taskId: data.taskId,
    action: data.action,
    ...(data.stepId !== undefined && { stepId: data.stepId }),
    operationId: data.plan?.operationId ?? null,
    ordinal: data.ordinal,
    plan: data.plan,
    seq: 1,
    startedAt: at,
    updatedAt: at,
    phase: ready(beginning(data), at),
    attempt: 0,
    retriesSpent: 0,
    rollbackRetriesSpent: 0,
    retriesExhausted: false,
    lostInARow: 0,
    settlesSpent: 0,
    inDoubt: false,
    cancelRequested: false,
    interrupted: false,
    approvalCycle: 0,
    decided: null,
    humanWaitMs: 0,
    heldDecisions: [],
    answers: [],
    alertsDue: [],
    rollbackDeclined: false,
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

function beginning({ plan, stepId }: EventData['task_started']): Step {
  if (plan !== null) return firstStep(plan);
  return stepId === undefined ? { kind: 'plan' } : EXECUTE;
}

type Handler<T extends EventType> = (state: TaskState, data: EventData[T], at: number) => Change;

function changes(state: TaskState, event: TaskEvent): Change {
  const handler = HANDLERS[event.type] as (state: TaskState, data: unknown, at: number) => Change;
  return handler(state, event.data, event.at);
}

const HANDLERS: { [T in EventType]: Handler<T> } = {
  task_started: () => ({}),
  plan_scheduled: (state) => ({ phase: working(state, { kind: 'plan' }, state.attempt) }),
  planned: (_state, data, at) => ({
    plan: data.plan,
    operationId: data.plan.operationId,
    ordinal: data.ordinal,
    phase: ready(firstStep(data.plan), at),
    lostInARow: 0,
  }),
  plan_refused: (_state, data) => ({
    operationId: data.operationId,
    phase: { kind: 'finished', end: data.end, result: data.result, replayed: data.replayed },
  }),
  step_planned: (state, data, at) => ({
    plan: data.plan,
    operationId: data.plan.operationId,
    ordinal: data.ordinal,
    lostInARow: 0,
    ...(data.asks && {
      inDoubt: false,
      phase: ready(PREVIEW, at),
      attempts: finished(state, state.attempt, 'needsApproval', null, at),
    }),
    ...(data.leases && {
      inDoubt: data.leases.inDoubt,
      phase: ready(stepOf(state), at),
      attempts: finished(state, state.attempt, 'needsLease', null, at),
    }),
  }),
  lease_requested: afterLeaseRequested,
  lease_ask_failed: afterLeaseAskFailed,
  lease_granted: afterLeaseGranted,
  lease_released: afterLeaseReleased,
  undo_requested: (state, data, at) =>
    state.phase.kind === 'finished' && state.phase.end.effect === 'applied'
      ? { rollbackRetriesSpent: 0, phase: ready({ kind: 'rollback', reason: data.reason }, at) }
      : {},
  attempt_scheduled: (state, data, at) => ({
    attempt: grown(state, data.attempt),
    inDoubt: true,
    nextEligibleAt: null,
    phase: working(state, { kind: 'attempt', purpose: data.purpose }, data.attempt),
    attempts: begun(state, {
      attempt: data.attempt,
      purpose: data.purpose,
      inline: data.inline,
      startedAt: at,
    }),
  }),
  attempt_finished: afterAttempt,
  rollback_scheduled: (state, data, at) => ({
    attempt: grown(state, data.attempt),
    nextEligibleAt: null,
    phase: working(state, { kind: 'rollback', reason: data.reason }, data.attempt),
    attempts: begun(state, { attempt: data.attempt, purpose: 'rollback', inline: false, startedAt: at }),
  }),
  rollback_finished: afterRollback,
  close_scheduled: (state, data) => ({
    nextEligibleAt: null,
    phase: working(state, { kind: 'close', end: data.end }, state.attempt),
  }),
  close_finished: afterClose,
  resolve_scheduled: (state, data) => ({
    attempt: grown(state, data.attempt),
    nextEligibleAt: null,
    phase: working(state, stepOf(state), data.attempt),
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
  cancel_requested: (state) => (state.phase.kind === 'finished' ? {} : { cancelRequested: true }),
  attempt_abort_requested: (state) =>
    state.phase.kind === 'working' ? { phase: { ...state.phase, abortRequested: true } } : {},
  preview_scheduled: (state) => ({ nextEligibleAt: null, phase: working(state, PREVIEW, state.attempt) }),
  preview_overtaken: (state, data, at) => ({
    lostInARow: 0,
    inDoubt: true,
    attempt: Math.max(state.attempt, data.rowAttempt),
    phase: ready(SETTLE, at),
  }),
  approval_opened: afterApprovalOpened,
  approval_given: afterApprovalGiven,
  challenge_failed: afterChallengeFailed,
  approval_decided: afterApprovalDecided,
  approval_expired: afterApprovalExpired,
  approval_expiring: afterApprovalExpiring,
  decision_held: afterDecisionHeld,
  held_decision_taken: (state) =>
    state.phase.kind === 'awaiting_approval'
      ? { phase: { ...state.phase, toJudge: state.phase.toJudge.slice(1) } }
      : {},
  decision_ignored: (state, data) => remembered(state, data, { accepted: false, code: data.code }),
  alert_recorded: afterAlertRecorded,
  sla_missed: afterSlaMissed,
  remote_told: afterRemoteTold,
  remote_cancel_passed: afterRemoteCancelPassed,
  remote_answered: afterRemoteAnswered,
  remote_lost: afterRemoteLost,
  interrupted: () => ({ interrupted: true }),
  resumed: () => ({ interrupted: false }),
  resolve_requested: afterResolveRequested,
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

function afterResolveRequested(state: TaskState, data: EventData['resolve_requested'], at: number): Change {
  const { phase } = state;
  if (phase.kind !== 'needs_attention') return {};
  const { resolution, id, waitedMs = 0 } = data;
  const ids = [...(state.resolutionIds ?? []), ...(id === undefined ? [] : [id])];
  return {
    humanWaitMs: state.humanWaitMs + waitedMs,
    ...(id !== undefined && { resolutionIds: ids.slice(-RESOLUTIONS_REMEMBERED) }),
    ...resolved(state, phase, resolution, at),
  };
}

/** An approval nobody gave leaves nothing to write into the row: asked for anew, or given up with nothing sent. */
function resolved(
  state: TaskState,
  { about, reason, since }: Extract<Phase, { kind: 'needs_attention' }>,
  resolution: Resolution,
  at: number,
): Change {
  if (about !== 'approval') return { phase: ready({ kind: 'resolve', resolution, about, reason }, at) };
  // Counted by every release.
  const humanWaitMs = state.humanWaitMs + Math.max(0, at - since);
  if (resolution.as === 'not_applied') return { humanWaitMs, phase: ready(PREVIEW, at) };
  const end = endedWith(state, 'approval_expired', `Given up by ${resolution.by}; nothing was done.`);
  return { phase: ready({ kind: 'close', end }, at) };
}

/** The oldest of its kind; none where it was recorded before, by another step. */
function afterAlertRecorded({ alertsDue }: TaskState, { type }: EventData['alert_recorded']): Change {
  const recorded = alertsDue.findIndex((alert) => alert.type === type);
  return { alertsDue: alertsDue.filter((_alert, index) => index !== recorded) };
}

function afterSlaMissed(state: TaskState, _data: EventData['sla_missed'], at: number): Change {
  if (isOver(state) || state.slaMissed) return {};
  const message = 'The task is not over within its business SLA; it goes on.';
  const alert = { type: 'sla_missed' as const, message, callId: null, at };
  return { slaMissed: true, alertsDue: [...state.alertsDue, alert] };
}

function grown(state: TaskState, attempt: number): number {
  if (attempt <= state.attempt) throw new Error(`attempt ${attempt} after ${state.attempt}`);
  return attempt;
}

function begun(
  state: TaskState,
  view: Pick<AttemptView, 'attempt' | 'purpose' | 'inline' | 'startedAt'>,
): AttemptView[] {
  return [...state.attempts, { ...view, finishedAt: null, outcome: null, failure: null }].slice(
    -ATTEMPTS_KEPT,
  );
}
