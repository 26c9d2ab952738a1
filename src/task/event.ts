import type { Failure } from './failure.ts';
import type { JsonObject } from './json.ts';
import type { CloseOutcome, OperationOutcome, RollbackOutcome, StoredResult, TaskEnd } from './outcome.ts';
import type { Plan } from './plan.ts';
import type { RemoteReport } from './remote.ts';
import type { DecisionCode, DecisionMessage, OpenApproval } from './approval.ts';

/** Why an attempt runs: to bring the effect about, or only to find out whether an earlier one did (never executes). */
export type AttemptPurpose = 'execute' | 'settle';

/** What comes with a resolution on its way to the task. */
export interface ResolutionMessage {
  /** Names this resolution: delivered twice it counts once. At most 255 characters. */
  id?: string;
  /** The step of a procedure that it is about. May be left out where one alone waits for a person. */
  step?: string;
}

/** A person's answer to `needs_attention` (S3.5). */
export type Resolution =
  | { as: 'applied'; by: string; note?: string; result?: StoredResult }
  | { as: 'not_applied'; by: string; note?: string }
  | { as: 'abandoned'; by: string; note?: string };

/** Why a rollback runs. */
export type RollbackReason = 'verify_failed' | 'cancelled' | 'procedure_failed';

/** What a person is asked about: what became of the effect, of its undoing, or an approval nobody gave. */
export type AttentionAbout = 'effect' | 'rollback' | 'approval';

/** The one thing a task is about to do, or is doing. Each is one activity. */
export type Step =
  | { kind: 'plan' }
  /** Reading what an approver is to see (S4.7). */
  | { kind: 'preview' }
  | { kind: 'attempt'; purpose: AttemptPurpose }
  | { kind: 'rollback'; reason: RollbackReason }
  | { kind: 'close'; end: TaskEnd }
  /** `reason` is why the rollback ran that the resolution is about; null when it is about the effect. */
  | {
      kind: 'resolve';
      resolution: Resolution;
      about: AttentionAbout;
      reason: RollbackReason | null;
    };

export interface DecisionRecord {
  callId: string;
  by: string;
  roles: string[];
  decisionId?: string;
  reason?: string;
  channel?: 'mcp';
}

/**
 * The journal's events, by type. Persisted in recorded histories and audits: names and fields are only added to.
 * Version 1 of each; an older version is upcast on reading (S3.3). `…_scheduled` is appended before its activity is.
 */
export interface EventData {
  /** `plan` is null for a task started bare, which plans in its first activity, and for a step of a procedure (`stepId`), which plans within its first attempt. */
  task_started: { taskId: string; action: string; ordinal: number; plan: Plan | null; stepId?: string };
  plan_scheduled: Record<string, never>;
  planned: { plan: Plan; ordinal: number };
  /** Planning a bare task was refused, or its key's operation is already decided; the task ends with this. */
  plan_refused: { end: TaskEnd; operationId: string | null; result: StoredResult | null; replayed: boolean };
  /** What a step's attempt planned. `asks`: policy asks for a person first; nothing was claimed. */
  /** `leases`: its plan names a resource, so it goes on once it holds that; `inDoubt`: something was sent before, under other terms. */
  step_planned: { plan: Plan; ordinal: number; asks: boolean; leases?: { inDoubt: boolean } };
  /** S8. `holding`: renews the grant of this fence. */
  lease_requested: { request: number; id: string; resource: string; leaseMs: number; holding?: number };
  /** It could not be asked for; `isGone`: the lease to be renewed has ended. */
  lease_ask_failed: { request: number; isGone: boolean };
  lease_granted: { request: number; fence: number; until: number };
  /** Given back, or where `fence` is null asked for no longer. */
  lease_released: { id: string; request: number; fence: number | null };
  /** A committed step is to be undone by its procedure (S6.3). */
  undo_requested: { reason: RollbackReason };
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
  /** `waitedMs`: how long the person was waited for; absent in journals of runs that did not count it. */
  resolve_requested: { resolution: Resolution; waitedMs?: number; id?: string };
  preview_scheduled: { callId: string };
  /** The row shows that the operation was sent before, by an earlier run of it: that is settled first (S2.4). */
  preview_overtaken: { rowAttempt: number };
  approval_opened: { approval: OpenApproval };
  /** One of several that are needed. */
  approval_given: DecisionRecord;
  challenge_failed: DecisionRecord;
  /** The decision that counts. `plan` with an edit: the new one; `needsApproval`: policy asks for more about it. */
  approval_decided:
    | (DecisionRecord & { decision: 'approved' | 'rejected' })
    /** `shown`: the new arguments as people and the audit see them, redacted, shortened where they are long. */
    | (DecisionRecord & { decision: 'edited'; plan: Plan; needsApproval: boolean; shown: JsonObject });
  approval_expired: { callId: string; outcome: 'deny' | 'halt' | 'remind' | 'escalate' };
  /** Nobody has decided, and soon nobody can. */
  approval_expiring: { callId: string };
  /** For an approval that is not open yet; judged when it opens. */
  decision_held: { decision: DecisionMessage };
  held_decision_taken: { callId: string };
  /** A decision that changed nothing, with why (S4.3). */
  decision_ignored: DecisionRecord & { kind: string; code: DecisionCode };
  /** S5.3: the business SLA passed and the task is not over. Once. */
  sla_missed: Record<string, never>;
  /** The outbox has the alert that was due. */
  alert_recorded: { type: string };
  /** What workflow `remoteTask` saw of the task that another server keeps (S8.4). */
  remote_told: { attempt: number; report: RemoteReport };
  /** The cancel was handed to it; how the remote task ends is read. */
  remote_cancel_passed: { attempt: number };
  /** A person's answers, by the remote's keys, on their way to it. */
  remote_answered: { attempt: number; by: string; answers: JsonObject };
  /** Nobody watches the remote task any more: the operation is looked at again. */
  remote_lost: { attempt: number };
  interrupted: { by: string; reason?: string };
  resumed: { by: string };
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
