/**
 * The activities that verdicts of the decider are carried out by, with their options, and the loss of one as an event.
 * Retries belong to the decider, so every activity has one attempt by the engine (architecture.md, idea 3).
 */
import {
  ActivityCancellationType,
  ApplicationFailure,
  ActivityFailure,
  CancelledFailure,
  TimeoutFailure,
  proxyActivities,
  proxyLocalActivities,
  sleep,
} from '@temporalio/workflow';
import { attemptMsInAll } from '../src/task/attempt-time.ts';
import type { ProcedureActivities, TaskActivities } from '../src/task/activity-api.ts';
import type { Failure } from '../src/task/failure.ts';
import type { NewEvent } from '../src/task/event.ts';
import type { Plan } from '../src/task/plan.ts';

/** Ledger work only: closing, resolving, planning, recording. */
const LEDGER_STEP_MS = 30_000;
const LEDGER_RETRY_INITIAL_MS = 1_000;
const LEDGER_RETRY_MAXIMUM_MS = 60_000;

/** The activities of a dispatched attempt or rollback. */
export function attemptActivities(
  plan: Plan,
  isFirst: boolean,
  leaseUntil: number | null = null,
): TaskActivities {
  return proxyActivities<TaskActivities>({
    // S8.1: by the engine's clock, no worker is at work beyond its lease; one that is then lost spends no retry.
    ...(leaseUntil !== null && { scheduleToCloseTimeout: Math.max(1, leaseUntil - Date.now()) }),
    startToCloseTimeout: attemptMsInAll(plan.deadlines, isFirst),
    heartbeatTimeout: plan.deadlines.heartbeatMs,
    retry: { maximumAttempts: 1 },
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  });
}

/** The same in the workflow task itself (S2.13). */
export function inlineActivities(plan: Plan): TaskActivities {
  return proxyLocalActivities<TaskActivities>({
    startToCloseTimeout: attemptMsInAll(plan.deadlines, true),
    retry: { maximumAttempts: 1 },
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  });
}

/**
 * A step's first attempt, whose deadlines are known only once it has planned: the handler keeps them, a dead worker is
 * noticed by its silence, and the engine's own bound is the longest that any contract may ask for.
 */
export const firstStepActivities = proxyActivities<ProcedureActivities>({
  startToCloseTimeout: '25h',
  heartbeatTimeout: 5_000,
  retry: { maximumAttempts: 1 },
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
});

/** Activities that touch the ledger alone. */
export const ledgerActivities = proxyActivities<TaskActivities>({
  startToCloseTimeout: LEDGER_STEP_MS,
  retry: { maximumAttempts: 1 },
});

export const procedureLedgerActivities = proxyActivities<ProcedureActivities>({
  startToCloseTimeout: LEDGER_STEP_MS,
  retry: { maximumAttempts: 1 },
});

/** The ledger is away: until it is tried again, ever later. */
export function pauseForLedger(failuresBefore: number): Promise<void> {
  return sleep(
    Math.min(LEDGER_RETRY_INITIAL_MS * 2 ** Math.min(failuresBefore, 10), LEDGER_RETRY_MAXIMUM_MS),
  );
}

/** The engine gave a step's activity back without an answer. */
export function stepLost(attempt: number | null, error: unknown): NewEvent {
  return { type: 'step_lost', data: { attempt, failure: lostFailure(error) } };
}

/** An attempt the engine gives back without an answer is an unknown outcome, whatever the reason (S3.8). */
export function lostFailure(error: unknown): Failure {
  const cause = error instanceof ActivityFailure ? error.cause : error;
  if (cause instanceof TimeoutFailure) {
    return {
      kind: 'unknown',
      code: 'outcome_unknown',
      message: `The worker was lost (${cause.timeoutType} timeout).`,
    };
  }
  if (cause instanceof CancelledFailure) {
    return { kind: 'unknown', code: 'outcome_unknown', message: 'The attempt was stopped.' };
  }
  if (cause instanceof ApplicationFailure) {
    return { kind: 'unknown', code: cause.type ?? 'internal_error', message: cause.message.slice(0, 2_000) };
  }
  return { kind: 'unknown', code: 'internal_error', message: 'The attempt was lost.' };
}
