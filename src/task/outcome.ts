import type { Failure } from './failure.ts';
import { isJsonObject } from './json.ts';
import type { Json, JsonObject } from './json.ts';
import type { RemoteRef } from './remote.ts';

/** A result as it travels: whole, by reference into the ledger's payload table, or too large to keep (interfaces.md "Sizes"). */
export type StoredResult =
  | { kind: 'inline'; value: Json }
  | { kind: 'reference'; sha256: string; bytes: number }
  | { kind: 'dropped'; sha256: string; bytes: number };

/** What `performOperation` answers. Only `src/task` turns it into events. */
export type OperationOutcome =
  /** Verified and committed. `replayed`: by an earlier task of this key, nothing was sent now. */
  | { kind: 'committed'; result: StoredResult; replayed: boolean }
  /**
   * The precondition does not hold; nothing was sent; the row says so and the task's end is recorded (S2.2). `cause`: or a
   * decision's budget is spent and no answer of it is on record (S3.7).
   */
  | { kind: 'refused'; reason: string; cause?: 'decision_budget_spent' }
  /** The claim was given back: provably nothing was applied. May be tried again. `ofExecution`: which was one's own answer. */
  | { kind: 'released'; failure: Failure; ofExecution?: true }
  /** Provably nothing was applied and never will be; spends the key; the task's end is recorded. */
  | { kind: 'failed'; failure: Failure }
  /** Applied, stored, not yet visible to verify (S2.6). Call again later to look again. */
  | { kind: 'notYet'; reason?: string }
  /** Applied but not as promised; the row is `rolling_back` and a person is alerted (S2.6, S6.5). */
  | { kind: 'mismatch'; reason: string }
  /** It can't be known now. `attention`: the row is in `attention`, a person is alerted; else try again by reconciling. */
  | { kind: 'unknown'; failure: Failure; attention: boolean }
  /**
   * Another holder of the same attempt may be at work, a sent request may still land, or a decision may not be asked for
   * again so soon (`paced`, S3.7); look again after `retryAfterMs`.
   */
  | { kind: 'busy'; retryAfterMs: number; reason: 'claimed' | 'settling' | 'paced' }
  /**
   * The row has seen a newer claim. `superseded`: a newer ordinal, so another task owns the operation. `leaseFence`: it is
   * the lease that was lost (S8.3), and this the newest fence seen; nothing was written.
   */
  | { kind: 'fenceStale'; rowAttempt: number; superseded: boolean; leaseFence?: number }
  /** The key was used with other arguments; the paths that differ, never values. */
  | { kind: 'conflict'; paths: string[] }
  /** The key is spent by an end other than a commit; `end` is what that task ended with. */
  | { kind: 'spent'; end: TaskEnd }
  /** The server has taken the request and goes on with it as a task of its own, which is on record (S8.4). */
  | { kind: 'remote'; remote: RemoteRef }
  /** Policy asks for a person first; nothing claimed. */
  | { kind: 'needsApproval'; reason: string };

/** What the rollback of an operation answers (S6.2). */
export type RollbackOutcome =
  | { kind: 'rolledBack'; remains?: string }
  | { kind: 'retry'; failure: Failure }
  | { kind: 'attention'; failure: Failure }
  | { kind: 'fenceStale'; rowAttempt: number; leaseFence?: number };

/** What `closeOperation` answers: the end is recorded, or the row is in a state that must be settled first. */
export type CloseOutcome =
  /** `end`: what is on record, where an attempt that nobody waited for had recorded an end before (refused, failed). */
  | { kind: 'closed'; end?: TaskEnd }
  /** An attempt may have reached the world: settle it, then close again. */
  | { kind: 'inFlight'; rowAttempt: number }
  /** The operation committed after all; the task ends with that. */
  | { kind: 'committed'; result: StoredResult }
  | { kind: 'superseded' };

export type TerminalStatus = 'completed' | 'failed' | 'cancelled';
/** S3.4. `cancelled` never carries `applied` or `unknown`; `unknown` is carried by an abandoned task alone. */
export type TaskEffect = 'none' | 'applied' | 'rolled_back' | 'unknown';

/** Why a task ended (persisted; add, never rename). */
export type TerminalCause =
  | 'committed'
  | 'cancelled'
  | 'cancelled_after_commit'
  | 'precondition_failed'
  /** S3.7: a decision was asked for as often as its budget allows, and each answer was lost. */
  | 'decision_budget_spent'
  | 'verify_failed'
  | 'permanent_failure'
  | 'retries_exhausted'
  | 'deadline_exceeded'
  | 'idempotency_conflict'
  | 'operation_rolled_back'
  | 'operation_in_progress'
  | 'approval_required'
  | 'approval_rejected'
  | 'approval_expired'
  | 'invalid_arguments'
  | 'abandoned'
  | 'superseded'
  | 'engine_closed'
  /** A procedure's own code threw, or a step was undone because its procedure failed. */
  | 'procedure_failed';

/** How a task ended, as recorded in the ledger row and in the task's own state. */
export interface TaskEnd {
  status: TerminalStatus;
  effect: TaskEffect;
  cause: TerminalCause;
  error: TaskError | null;
  /** A cancel was asked for and the task completed all the same (S7.4). */
  cancelRequested: boolean;
}

export interface TaskError {
  code: string;
  message: string;
  details?: JsonObject;
}

/** Statuses of S3.4; `interrupted` is an overlay, not one of them. */
export type OpenStatus =
  | 'proposed'
  | 'awaiting_approval'
  | 'running'
  | 'reconciling'
  | 'verifying'
  | 'backing_off'
  | 'rolling_back'
  | 'needs_attention';
export type TaskStatus = OpenStatus | TerminalStatus;

/** Ended: nothing follows. */
export function isTerminal(status: string | undefined): status is TerminalStatus {
  return status === 'completed' || status === 'failed' || status === 'cancelled';
}

/** S4.2: an approver changed the arguments; what was executed, or is to be, is not what the call asked for. */
export interface EditedFrom {
  /** Fingerprint of the arguments as the call had them. */
  fingerprint: string;
  /** Of those executed. */
  executed: string;
  by: string;
  callId: string;
}

/**
 * What a task says about itself, ended or not: the object `call --json` prints and workflow `action` returns.
 * `result` is null until the task completed; `effect` is null while it can't be told yet.
 */
export interface TaskOutcome {
  taskId: string;
  operationId: string;
  action: string;
  status: TaskStatus;
  effect: TaskEffect | null;
  cause: TerminalCause | null;
  /** Answered from an earlier task of this key; nothing was sent for this call. */
  replayed: boolean;
  /** False: without a key, so an unknown outcome is never sent again automatically (S1.7). */
  autoRetry: boolean;
  cancelRequested: boolean;
  result: StoredResult | null;
  error: TaskError | null;
  editedFrom?: EditedFrom;
}

/** S2.7: a late outcome by which the attempt itself says that the effect took place. */
export const isReportedApplied = (lateOutcome: Json | null): boolean =>
  isJsonObject(lateOutcome) && lateOutcome['kind'] === 'applied';
