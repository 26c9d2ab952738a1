import type { Failure } from './failure.ts';
import type { CloseOutcome, OperationOutcome, RollbackOutcome, StoredResult, TaskEnd } from './outcome.ts';
import type { Plan } from './plan.ts';

/** Why an attempt runs: to bring the effect about, or only to find out whether an earlier one did (never executes). */
export type AttemptPurpose = 'execute' | 'settle';

/** A person's answer to `needs_attention` (S3.5). */
export type Resolution =
  | { as: 'applied'; by: string; note?: string; result?: StoredResult }
  | { as: 'not_applied'; by: string; note?: string }
  | { as: 'abandoned'; by: string; note?: string };

/** Why a rollback runs. */
export type RollbackReason = 'verify_failed' | 'cancelled';

/** The one thing a task is about to do, or is doing. Each is one activity. */
export type Step =
  | { kind: 'plan' }
  | { kind: 'attempt'; purpose: AttemptPurpose }
  | { kind: 'rollback'; reason: RollbackReason }
  | { kind: 'close'; end: TaskEnd }
  /** `reason` is why the rollback ran that the resolution is about; null when it is about the effect. */
  | {
      kind: 'resolve';
      resolution: Resolution;
      about: 'effect' | 'rollback';
      reason: RollbackReason | null;
    };

/**
 * The journal's events, by type. Persisted in recorded histories and audits: names and fields are only added to.
 * Version 1 of each; an older version is upcast on reading (S3.3). `…_scheduled` is appended before its activity is.
 */
export interface EventData {
  /** The task exists. `plan` is null for a task started bare, which plans in its first activity. */
  task_started: { taskId: string; action: string; ordinal: number; plan: Plan | null };
  plan_scheduled: Record<string, never>;
  planned: { plan: Plan; ordinal: number };
  /** Planning a bare task was refused, or its key's operation is already decided; the task ends with this. */
  plan_refused: { end: TaskEnd; operationId: string | null; result: StoredResult | null; replayed: boolean };
  /** Attempt numbers only grow (S2.3). */
  attempt_scheduled: { attempt: number; purpose: AttemptPurpose; inline: boolean; verifyFinal: boolean };
  attempt_finished: { attempt: number; outcome: OperationOutcome };
  rollback_scheduled: { attempt: number; reason: RollbackReason; final: boolean };
  rollback_finished: { attempt: number; outcome: RollbackOutcome };
  close_scheduled: { end: TaskEnd };
  close_finished: { outcome: CloseOutcome };
  resolve_scheduled: { attempt: number };
  /** The ledger took the resolution over; the task goes on accordingly. `end` when that ends the task. */
  resolve_finished: { end: TaskEnd | null };
  /** The engine lost the running activity (worker dead, heartbeat or close timeout, ledger away). Spends no business retry (S5.2). */
  step_lost: { attempt: number | null; failure: Failure };
  /** The step waits until `nextAt` (ms since the epoch, engine clock). */
  backoff_scheduled: { nextAt: number; delayMs: number; failure: Failure; spendsRetry: boolean };
  /** The business retry budget is spent. */
  retries_exhausted: { failure: Failure };
  run_deadline_passed: Record<string, never>;
  cancel_requested: { by: string; reason?: string };
  /** The running attempt was told to stop because of a cancel (plan.cancelAttempt is `abort`). */
  attempt_abort_requested: { attempt: number };
  resolve_requested: { resolution: Resolution };
  /** A message that changed nothing, with why (S4.3: a signal can't be answered, so it is journaled). */
  message_ignored: { message: string; code: string };
  task_ended: { end: TaskEnd; result: StoredResult | null; replayed: boolean };
}

export type EventType = keyof EventData;

/** One entry of the journal (S3.1), in the newest version; stored ones pass through upcast.ts first. `seq` counts from 1 without gaps; `at` is milliseconds by the engine's clock. */
export type TaskEvent = {
  [T in EventType]: { v: 1; seq: number; type: T; at: number; data: EventData[T] };
}[EventType];

/** An event before it has its place in the journal. */
export type NewEvent = { [T in EventType]: { type: T; data: EventData[T] } }[EventType];
