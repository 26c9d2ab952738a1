/**
 * What the answer of a step's activity means for the task: the reducer's larger half. Pure.
 *
 * Only an answer that proves it takes a task out of doubt; what can't be known goes to a person (S3.5).
 */
import type { AttentionAbout, EventData, RollbackReason } from './event.ts';
import { alreadyDecided, canRollBack, committedEnd, endedWith, rolledBackEnd } from './ends.ts';
import type { Failure } from './failure.ts';
import type { OperationOutcome, StoredResult, TaskEnd } from './outcome.ts';
import { SETTLE, isExecution, nextExecution, ready, stepOf } from './phase.ts';
import { handedOver } from './remote-state.ts';
import type { AttemptView, Phase, TaskState } from './state.ts';

const VERIFY_POLL_INITIAL_MS = 500;
const VERIFY_POLL_MAXIMUM_MS = { shortest: 300_000, longest: 3_600_000 };
/** A long verify deadline is polled more rarely: about this often in all, within the bounds above. */
const VERIFY_POLLS_WANTED = 200;
/** A row that was found busy or in doubt is not asked again sooner, whatever it said. */
const RECHECK_MS_MIN = 100;

export type Change = Partial<TaskState>;

export function isRunning(state: TaskState, attempt: number): boolean {
  return state.phase.kind === 'working' && state.phase.attempt === attempt;
}

/** The attempt's entry, closed. */
export function finished(
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

export function afterAttempt(state: TaskState, data: EventData['attempt_finished'], at: number): Change {
  if (!isRunning(state, data.attempt)) return {};
  const failure = 'failure' in data.outcome ? data.outcome.failure : null;
  return {
    ...answered(state, data.attempt, data.outcome.kind, failure, at),
    ...afterOutcome(state, data.outcome, at),
  };
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

function finish(end: TaskEnd, result: StoredResult | null = null, replayed = false): Change {
  return { inDoubt: false, phase: { kind: 'finished', end, result, replayed } };
}

export function attention(about: AttentionAbout, reason: RollbackReason | null, since: number): Phase {
  return { kind: 'needs_attention', about, reason, since };
}

function afterOutcome(state: TaskState, outcome: OperationOutcome, at: number): Change {
  switch (outcome.kind) {
    case 'committed':
      return afterCommit(state, outcome.result, outcome.replayed, at);
    case 'refused':
      return finish(endedWith(state, outcome.cause ?? 'precondition_failed', outcome.reason));
    case 'failed':
      return finish(failedEnd(state, outcome.failure));
    case 'released':
      return released(state, outcome.failure, outcome.ofExecution);
    case 'unknown':
      return outcome.attention
        ? { phase: attention('effect', null, at) }
        : stillUnknown(state, outcome.failure);
    case 'notYet':
      return stillInvisible(state, at);
    case 'mismatch':
      return { phase: ready({ kind: 'rollback', reason: 'verify_failed' }, at) };
    case 'busy':
      return busy(state, at + Math.max(outcome.retryAfterMs, RECHECK_MS_MIN));
    case 'fenceStale':
      return outcome.superseded ? superseded(state, at) : fencedOff(state, outcome);
    case 'conflict':
      return notOurs(state, conflictEnd(state, outcome.paths), at);
    case 'spent':
      return finish(alreadyDecided(outcome.end), null, true);
    case 'remote':
      return handedOver(state.attempt, outcome.remote);
    case 'needsApproval':
      return {
        inDoubt: false,
        phase: ready({ kind: 'close', end: approvalEnd(state, outcome.reason) }, at),
      };
    default:
      return outcome satisfies never;
  }
}

function failedEnd(state: TaskState, failure: Failure): TaskEnd {
  const cause = failure.code === 'verify_failed' ? 'verify_failed' : 'permanent_failure';
  return endedWith(state, cause, failure.message, failure);
}

function conflictEnd(state: TaskState, paths: string[]): TaskEnd {
  const message = `The key was used with other arguments; they differ at ${paths.join(', ')}.`;
  return endedWith(state, 'idempotency_conflict', message, {
    code: 'idempotency_conflict',
    details: { paths },
  });
}

function approvalEnd(state: TaskState, reason: string): TaskEnd {
  return state.cancelRequested
    ? endedWith(state, 'cancelled', 'Cancelled before anything was applied.')
    : endedWith(state, 'approval_required', reason);
}

/**
 * Nothing of any attempt was applied: what comes next is a fresh execution. Finding that out was no business retry, unless
 * an execution that had gone on elsewhere says so itself.
 */
function released(state: TaskState, failure: Failure, ofExecution = false): Change {
  return {
    inDoubt: false,
    settlesSpent: 0,
    verifyUntil: null,
    verifyPolls: 0,
    phase: {
      kind: 'retry_due',
      step: nextExecution(state),
      failure,
      spendsRetry: ofExecution || isExecution(stepOf(state)),
    },
  };
}

function stillUnknown(state: TaskState, failure: Failure): Change {
  const step = stepOf(state);
  const spendsRetry = isExecution(step);
  return {
    ...(!spendsRetry && { settlesSpent: state.settlesSpent + 1 }),
    phase: { kind: 'retry_due', step, failure, spendsRetry },
  };
}

function busy(state: TaskState, notBefore: number): Change {
  return {
    nextEligibleAt: notBefore,
    phase: { kind: 'ready', step: stepOf(state), notBefore, waiting: 'busy' },
  };
}

/** A newer claim was seen: go on above it (S2.3), paced, so that two who raise each other's fence don't spin. */
function fencedOff(
  state: TaskState,
  { rowAttempt, leaseFence }: { rowAttempt: number; leaseFence?: number },
): Change {
  const message =
    leaseFence === undefined
      ? 'The ledger has seen a newer claim; the task goes on above it.'
      : 'The lease on the resource had passed on; the task asks for it anew and finds out first.';
  const failure: Failure = { kind: 'unknown', code: 'fence_stale', message };
  return {
    attempt: Math.max(state.attempt, rowAttempt),
    lostInARow: state.lostInARow + 1,
    lastFailure: failure,
    phase: { kind: 'retry_due', step: stepOf(state), failure, spendsRetry: false },
  };
}

function superseded(state: TaskState, at: number): Change {
  return notOurs(state, endedWith(state, 'superseded', 'Another run of this operation took over.'), at);
}

/** The row is not, or no longer, this task's. With nothing sent that ends it; with something in doubt a person must look. */
function notOurs(state: TaskState, end: TaskEnd, at: number): Change {
  const wasInDoubt = state.phase.kind === 'working' && state.phase.inDoubtBefore;
  return wasInDoubt ? { phase: attention('effect', null, at) } : finish(end);
}

function afterCommit(state: TaskState, result: StoredResult, replayed: boolean, at: number): Change {
  // A step is undone by its procedure, in its turn (S6.3).
  const isUndone =
    state.stepId === undefined &&
    state.cancelRequested &&
    !replayed &&
    !state.rollbackDeclined &&
    canRollBack(state.plan);
  if (isUndone) return { inDoubt: false, phase: ready({ kind: 'rollback', reason: 'cancelled' }, at) };
  return finish(committedEnd(state), result, replayed);
}

/** S2.6: look again, ever more rarely, and once more when the verify deadline has passed. */
function stillInvisible(state: TaskState, at: number): Change {
  const verifyMs = state.plan?.deadlines.verifyMs ?? 0;
  const verifyUntil = state.verifyUntil ?? at + verifyMs;
  const pollAt =
    at + Math.min(VERIFY_POLL_INITIAL_MS * 2 ** Math.min(state.verifyPolls, 20), slowestPollMs(verifyMs));
  const nextAt = verifyUntil > at ? Math.min(pollAt, verifyUntil) : pollAt;
  return {
    verifyUntil,
    verifyPolls: state.verifyPolls + 1,
    settlesSpent: 0,
    nextEligibleAt: nextAt,
    phase: { kind: 'verifying', nextAt },
  };
}

function slowestPollMs(verifyMs: number): number {
  const { shortest, longest } = VERIFY_POLL_MAXIMUM_MS;
  return Math.min(Math.max(Math.ceil(verifyMs / VERIFY_POLLS_WANTED), shortest), longest);
}

export function afterRollback(state: TaskState, data: EventData['rollback_finished'], at: number): Change {
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
      return { ...change, phase: attention('rollback', step.reason, at) };
    case 'fenceStale':
      return { ...change, ...fencedOff(state, outcome) };
    default:
      return outcome satisfies never;
  }
}

export function afterClose(state: TaskState, data: EventData['close_finished'], at: number): Change {
  const step = stepOf(state);
  if (step.kind !== 'close') return {};
  const { outcome } = data;
  switch (outcome.kind) {
    case 'closed':
      return { lostInARow: 0, ...finish(outcome.end ?? step.end) };
    case 'inFlight':
      return {
        lostInARow: 0,
        inDoubt: true,
        attempt: Math.max(state.attempt, outcome.rowAttempt),
        phase: ready(SETTLE, at + RECHECK_MS_MIN),
      };
    case 'committed':
      return { lostInARow: 0, ...afterCommit(state, outcome.result, false, at) };
    case 'superseded':
      return superseded(state, at);
    default:
      return outcome satisfies never;
  }
}

export function afterResolve(state: TaskState, data: EventData['resolve_finished'], at: number): Change {
  const step = stepOf(state);
  if (step.kind !== 'resolve') return {};
  if (data.end !== null) return { lostInARow: 0, ...finish(data.end) };
  const isApplied = step.resolution.as === 'applied';
  return {
    lostInARow: 0,
    settlesSpent: 0,
    inDoubt: isApplied,
    retriesExhausted: false,
    verifyUntil: null,
    verifyPolls: 0,
    rollbackDeclined: state.rollbackDeclined || (isApplied && step.about === 'rollback'),
    phase: ready(isApplied ? SETTLE : nextExecution(state), at),
  };
}
