import type { Failure } from './failure.ts';
import type { JsonObject } from './json.ts';
import type { OperationOutcome, RollbackOutcome, CloseOutcome, StoredResult, TaskEnd } from './outcome.ts';
import type { Plan } from './plan.ts';

/** Why an attempt runs: to bring the effect about, or only to find out whether an earlier one did (never executes). */
export type AttemptPurpose = 'execute' | 'settle';

/** A person's answer to `needs_attention` (S3.5). */
export type Resolution =
  | { as: 'applied'; by: string; note?: string; result?: StoredResult }
  | { as: 'not_applied'; by: string; note?: string }
  | { as: 'abandoned'; by: string; note?: string };

/**
 * The journal's events, by type. Persisted in recorded histories and audits: names and fields are only added to.
 * Version 1 of each; an older version is upcast on reading (S3.3).
 */
export interface EventData {
  /** The task exists. `plan` is null for a task started bare, which plans in its first activity. */
  task_started: { taskId: string; ordinal: number; plan: Plan | null };
  planned: { plan: Plan; ordinal: number };
  /** Planning a bare task was refused; the task ends with this. */
  plan_refused: { end: TaskEnd };
  /** About to run: appended before the activity is scheduled. Numbers only grow (S2.3). */
  attempt_scheduled: { attempt: number; purpose: AttemptPurpose; inline: boolean; verifyFinal: boolean };
  attempt_finished: { attempt: number; outcome: OperationOutcome };
  /** The engine lost the attempt (worker dead, heartbeat or close timeout, ledger away). Spends no business retry (S5.2). */
  attempt_lost: { attempt: number; failure: Failure };
  /** The next attempt waits until `nextAt` (ms since the epoch, engine clock). */
  backoff_scheduled: { nextAt: number; delayMs: number; failure: Failure; spendsRetry: boolean };
  verify_scheduled: { nextAt: number; verifyUntil: number };
  cancel_requested: { by: string; reason?: string };
  /** The running attempt was told to stop because of a cancel (plan.cancelAttempt is `abort`). */
  attempt_abort_requested: { attempt: number };
  deadline_passed: { deadline: 'run' | 'verify' };
  rollback_scheduled: { attempt: number; reason: 'verify_failed' | 'cancelled' };
  rollback_finished: { attempt: number; outcome: RollbackOutcome };
  close_scheduled: { end: TaskEnd };
  close_finished: { outcome: CloseOutcome };
  resolve_requested: { resolution: Resolution };
  /** The ledger took the resolution over; the task goes on accordingly. `end` when that ends the task. */
  resolve_finished: { resolution: Resolution; end: TaskEnd | null };
  /** A message that changed nothing, with why (S4.3: a signal can't be answered, so it is journaled). */
  message_ignored: { message: string; code: string; detail?: JsonObject };
  task_ended: { end: TaskEnd; result: StoredResult | null; replayed: boolean };
}

export type EventType = keyof EventData;

/** One entry of the journal (S3.1). `seq` counts from 1 without gaps; `at` is milliseconds by the engine's clock. */
export type TaskEvent = { [T in EventType]: { v: 1; seq: number; type: T; at: number; data: EventData[T] } }[EventType];

/** An event before it has its place in the journal. */
export type NewEvent = { [T in EventType]: { type: T; data: EventData[T] } }[EventType];

