/**
 * The task's decider: what to do next, given the reduced state and the engine's clock.
 *
 * Never does anything itself: the workflow appends what the verdict announces, then carries it out (S3.1).
 * Invariants:
 * 1. No verdict begins an execution after a cancel was requested, the run deadline passed, or the retries were spent.
 * 2. A task in doubt is settled before it is closed: no end claims `none` while an attempt may have reached the world.
 * 3. One step at a time: while one is working the verdict is to wait for it.
 * 4. Whatever repeats without an end in sight waits between two turns.
 * 5. While interrupted nothing begins that could change the world (S7.2); closing and finding out go on.
 * 6. Where the plan names a resource, no attempt or rollback begins without its lease, and none is left to run out
 *    while another server works (held-lease.ts).
 * 7. Where the plan asks for a person, no execution begins before one said so (S4.1).
 */
import { callIdOf, expiryOf, isExecutionAllowed, warningDueAt } from './approval.ts';
import type { DecisionMessage } from './approval.ts';
import type { AttemptPurpose, AttentionAbout, NewEvent, Resolution, RollbackReason, Step } from './event.ts';
import { endedWith, resolvedEnd } from './ends.ts';
import type { Failure } from './failure.ts';
import { leaseBefore, leaseMeanwhile, letGo } from './held-lease.ts';
import type { LeaseVerdict } from './held-lease.ts';
import type { StoredResult, TaskEnd } from './outcome.ts';
import { isExecution, isOver } from './phase.ts';
import { openRequests } from './remote-state.ts';
import type { RemotePhase } from './remote-state.ts';
import type { AlertDue, Phase, TaskState } from './state.ts';

export type Verdict =
  /** Put this into the journal, then decide again. */
  | { do: 'append'; event: NewEvent }
  | { do: 'plan' }
  /** Read what the approver is to see, then open the approval. */
  | { do: 'preview'; callId: string }
  /** A decision that came before its approval opened (S4.3). */
  | { do: 'judge_held'; decision: DecisionMessage }
  /** Commit an alert to the outbox. */
  | { do: 'alert'; alert: AlertDue }
  | { do: 'attempt'; attempt: number; purpose: AttemptPurpose; inline: boolean; verifyFinal: boolean }
  | { do: 'rollback'; attempt: number; reason: RollbackReason; final: boolean }
  | { do: 'close'; end: TaskEnd }
  | {
      do: 'resolve';
      attempt: number;
      resolution: Resolution;
      about: AttentionAbout;
      end: TaskEnd | null;
    }
  /** Wait a random time up to `capMs` but at least `floorMs` (full jitter), then the step again. */
  | { do: 'backoff'; failure: Failure; spendsRetry: boolean; floorMs: number; capMs: number }
  /** Ask for the lease on the resource, or give it back. */
  | LeaseVerdict
  /** Until the clock reads `until` (null: no timer) or the state changes. `person`: only a person can move it on. */
  | { do: 'wait'; until: number | null; person: boolean }
  /** Another server goes on with it: watch that, until the state changes or then. `person`: it asks for one. */
  | { do: 'supervise'; attempt: number; until: number | null; person: boolean }
  /** Hand the cancel on to it (S7.4). */
  | { do: 'cancel_remote'; attempt: number }
  /** An activity is running: wait for it; `abort` it first where a cancel asks and the contract allows. */
  | { do: 'await'; abort: boolean }
  | { do: 'end'; end: TaskEnd; result: StoredResult | null; replayed: boolean }
  | { do: 'nothing' };

/** How long after a lost activity the next may begin, at most (S5.2: spends no budget, so only paced). */
const LOST_BACKOFF_MAXIMUM_MS = 30_000;
const LOST_BACKOFF_INITIAL_MS = 250;
const UNBUDGETED_MS_MIN = 125;
/** What a provider may ask for at most; the run deadline bounds executions anyway. */
const RETRY_AFTER_MS_MAX = 2_592_000_000;

/** What to do next. Called again after every event and whenever a `wait` is over. */
export function decide(state: TaskState, now: number): Verdict {
  const { phase } = state;
  const [alert] = state.alertsDue;
  if (alert !== undefined && phase.kind !== 'working' && phase.kind !== 'ended')
    return { do: 'alert', alert };
  switch (phase.kind) {
    case 'ended':
      return { do: 'nothing' };
    case 'finished':
      return letGo(state) ?? { do: 'end', end: phase.end, result: phase.result, replayed: phase.replayed };
    case 'needs_attention':
      return phase.about === 'approval' && state.cancelRequested
        ? { do: 'close', end: cancelledEnd(state) }
        : (letGo(state) ?? { do: 'wait', until: null, person: true });
    case 'awaiting_approval':
      return whenAwaited(state, phase, now);
    case 'working':
      return { do: 'await', abort: mayAbort(state) && !phase.abortRequested };
    case 'verifying':
      return now < phase.nextAt
        ? { do: 'wait', until: phase.nextAt, person: false }
        : attempt(state, 'settle', now);
    case 'remote':
      return whileRemote(state, phase, now);
    case 'ready':
      return deadlineEvent(state, phase.step, now) ?? whenReady(state, phase.step, phase.notBefore, now);
    case 'retry_due':
      return deadlineEvent(state, phase.step, now) ?? whenRetryDue(state, phase, now);
    default:
      return phase satisfies never;
  }
}

/** The random part of a backoff verdict: full jitter between its floor and its cap. `random` is in [0, 1). */
export function backoffDelayMs(verdict: { floorMs: number; capMs: number }, random: number): number {
  return Math.max(verdict.floorMs, Math.floor(random * verdict.capMs));
}

/** S7.4. An attempt that only finds out is never aborted: its answer is what the cancel waits for. */
function mayAbort(state: TaskState): boolean {
  const { phase, plan, cancelRequested } = state;
  return (
    cancelRequested && plan?.cancelAttempt === 'abort' && phase.kind === 'working' && isExecution(phase.step)
  );
}

function attempt(state: TaskState, purpose: AttemptPurpose, now: number): Verdict {
  if (purpose === 'execute' && !isExecutionAllowed(state))
    throw new Error('an execution that nobody approved');
  const lease = leaseBefore(state, now);
  if (lease !== null) return purpose === 'execute' ? withinRun(state, lease) : lease;
  // Only the very first decision of a task is taken in its first workflow task (S2.13).
  const inline = purpose === 'execute' && state.seq === 1 && state.plan?.inline === true;
  const verifyFinal = purpose === 'settle' && isLastLook(state, now);
  return { do: 'attempt', attempt: state.attempt + 1, purpose, inline, verifyFinal };
}

/** A wait before an execution ends with the run deadline at the latest. */
function withinRun<V extends Verdict>(state: TaskState, verdict: V): V {
  const deadline = runDeadline(state);
  if (verdict.do !== 'wait' || verdict.until === null || deadline === null) return verdict;
  return { ...verdict, until: Math.min(verdict.until, deadline) };
}

/** The verify deadline has passed (S2.6); before anything is known to be applied, finding out is bounded like retries (S5.3). */
function isLastLook(state: TaskState, now: number): boolean {
  if (state.verifyUntil !== null) return now >= state.verifyUntil;
  return state.settlesSpent > 0 && state.settlesSpent >= (state.plan?.retry.maximumRetries ?? 0);
}

function runDeadline(state: TaskState): number | null {
  return state.plan === null ? null : state.startedAt + state.humanWaitMs + state.plan.deadlines.runMs;
}

function deadlineEvent(state: TaskState, step: Step, now: number): Verdict | null {
  const deadline = runDeadline(state);
  if (!isExecution(step) || state.runDeadlinePassed || deadline === null || now < deadline) return null;
  return { do: 'append', event: { type: 'run_deadline_passed', data: {} } };
}

function cancelledEnd(state: TaskState): TaskEnd {
  return endedWith(state, 'cancelled', 'Cancelled before anything was applied.');
}

/**
 * Why no further execution may begin, or no person be asked about one, as the end it leads to once nothing is in doubt;
 * null when one may, or when the step is another. No deadline runs against the asking (S5.3).
 */
function stopEnd(state: TaskState, step: Step): TaskEnd | null {
  if (!isExecution(step) && step.kind !== 'preview') return null;
  if (state.cancelRequested) return cancelledEnd(state);
  if (!isExecution(step)) return null;
  if (state.runDeadlinePassed)
    return endedWith(state, 'deadline_exceeded', 'The run deadline passed before the effect was applied.');
  if (state.retriesExhausted) {
    const why = lastTried(state)?.message ?? 'no attempt succeeded';
    return endedWith(state, 'retries_exhausted', `Every retry failed; nothing was applied. The last: ${why}`);
  }
  return null;
}

/** Why the last execution failed; what finding out said after it ("nothing was applied") is no reason. */
function lastTried({ attempts, lastFailure }: TaskState): Failure | null {
  const tried = attempts.findLast(({ purpose, failure }) => purpose === 'execute' && failure !== null);
  return tried?.failure ?? lastFailure;
}

function stop(state: TaskState, end: TaskEnd, now: number): Verdict {
  return state.inDoubt ? attempt(state, 'settle', now) : { do: 'close', end };
}

/** S4.4: a decision, a cancel or the expiry, whichever the journal has first. */
function whenAwaited(
  state: TaskState,
  { approval, toJudge }: Extract<Phase, { kind: 'awaiting_approval' }>,
  now: number,
): Verdict {
  if (state.cancelRequested) return { do: 'close', end: cancelledEnd(state) };
  const [decision] = toJudge;
  if (decision !== undefined) return { do: 'judge_held', decision };
  const { callId, expiresAt } = approval;
  if (now >= expiresAt)
    return {
      do: 'append',
      event: { type: 'approval_expired', data: { callId, outcome: expiryOf(state, approval) } },
    };
  const warnAt = warningDueAt(state, approval);
  if (warnAt !== null && now >= warnAt)
    return { do: 'append', event: { type: 'approval_expiring', data: { callId } } };
  return letGo(state) ?? { do: 'wait', until: warnAt ?? expiresAt, person: true };
}

/** The request is under way: no deadline ends it, and how a cancel ends is read from the remote task (S7.4). */
function whileRemote(state: TaskState, phase: RemotePhase, now: number): Verdict {
  const { attempt } = phase;
  if (state.cancelRequested && !phase.cancelPassed) return { do: 'cancel_remote', attempt };
  const lease = leaseMeanwhile(state, now);
  if (lease !== null && typeof lease === 'object') return lease;
  return { do: 'supervise', attempt, until: lease, person: openRequests(state).length > 0 };
}

/** S5.3: when people are to be alerted that the task is not over; null when they were, or nothing was promised. */
export function slaDueAt(state: TaskState): number | null {
  const { plan, slaMissed } = state;
  if (plan?.deadlines.slaMs === undefined || !plan.recorded || slaMissed || isOver(state)) return null;
  return state.startedAt + plan.deadlines.slaMs;
}

/** S7.2: what may not begin under the overlay. What is under way finishes; finding out and closing go on. */
function isHeldBack(state: TaskState, step: Step): boolean {
  return state.interrupted && (isExecution(step) || step.kind === 'rollback');
}

function whenReady(state: TaskState, step: Step, notBefore: number, now: number): Verdict {
  const end = stopEnd(state, step);
  if (end !== null) return stop(state, end, now);
  if (isHeldBack(state, step)) {
    return (
      letGo(state) ?? { do: 'wait', until: isExecution(step) ? runDeadline(state) : null, person: false }
    );
  }
  if (now < notBefore) {
    const wait: Verdict = { do: 'wait', until: notBefore, person: false };
    return isExecution(step) ? withinRun(state, wait) : wait;
  }
  switch (step.kind) {
    case 'plan':
      return { do: 'plan' };
    case 'preview':
      return { do: 'preview', callId: callIdOf(state.approvalCycle + 1, state.stepId) };
    case 'attempt':
      return attempt(state, step.purpose, now);
    case 'rollback':
      return leaseBefore(state, now) ?? rollback(state, step.reason);
    case 'close':
      return { do: 'close', end: step.end };
    case 'resolve':
      return resolve(state, step);
    default:
      return step satisfies never;
  }
}

function resolve(state: TaskState, step: Extract<Step, { kind: 'resolve' }>): Verdict {
  const { resolution, about, reason } = step;
  const end = resolvedEnd(state, resolution, reason);
  return { do: 'resolve', attempt: state.attempt + 1, resolution, about, end };
}

function rollback(state: TaskState, reason: RollbackReason): Verdict {
  return { do: 'rollback', attempt: state.attempt + 1, reason, final: isLastRollback(state) };
}

function isLastRollback(state: TaskState): boolean {
  return state.rollbackRetriesSpent >= (state.plan?.retry.maximumRetries ?? 0);
}

function whenRetryDue(state: TaskState, due: Extract<Phase, { kind: 'retry_due' }>, now: number): Verdict {
  const { step, failure, spendsRetry } = due;
  const end = stopEnd(state, step);
  if (end !== null) return stop(state, end, now);
  if (isExecution(step)) {
    if (spendsRetry && state.retriesSpent >= (state.plan?.retry.maximumRetries ?? 0)) {
      return { do: 'append', event: { type: 'retries_exhausted', data: { failure } } };
    }
  }
  return { do: 'backoff', failure, spendsRetry, ...pace(state, due) };
}

/** Between what bounds the next try waits. What spends no budget waits at least a moment, so that it can't spin. */
function pace(
  state: TaskState,
  { step, failure, spendsRetry }: Extract<Phase, { kind: 'retry_due' }>,
): { floorMs: number; capMs: number } {
  const retryAfterMs = providersWish(failure);
  if (retryAfterMs !== null) return { floorMs: retryAfterMs, capMs: retryAfterMs };
  const floorMs = spendsRetry ? 0 : UNBUDGETED_MS_MIN;
  if (state.lostInARow > 0 || state.plan === null) {
    const capMs = doubled(LOST_BACKOFF_INITIAL_MS, state.lostInARow, LOST_BACKOFF_MAXIMUM_MS);
    return { floorMs, capMs };
  }
  const { initialIntervalMs, maximumIntervalMs } = state.plan.retry;
  return { floorMs, capMs: doubled(initialIntervalMs, spent(state, step), maximumIntervalMs) };
}

function providersWish({ retryAfterMs }: Failure): number | null {
  if (typeof retryAfterMs !== 'number' || !(retryAfterMs >= 0)) return null;
  return Math.min(Math.ceil(retryAfterMs), RETRY_AFTER_MS_MAX);
}

function spent(state: TaskState, step: Step): number {
  if (step.kind === 'rollback') return state.rollbackRetriesSpent;
  return isExecution(step) ? state.retriesSpent : Math.max(0, state.settlesSpent - 1);
}

function doubled(initialMs: number, times: number, maximumMs: number): number {
  return Math.min(initialMs * 2 ** Math.min(times, 30), maximumMs);
}
