import type { Json, JsonObject } from './json.ts';
import type { AttemptPurpose, AttentionAbout, Resolution, RollbackReason } from './event.ts';
import type { HeldLease } from './claim.ts';
import type { CloseOutcome, OperationOutcome, RollbackOutcome, StoredResult, TaskEnd } from './outcome.ts';
import type { Plan, PlanLease, Principal } from './plan.ts';
import type { RemoteCallAnswer } from './remote.ts';
import type { AlertDue } from './state.ts';

/** One look at an operation, and its execution where `purpose` allows. */
export interface AttemptRequest {
  plan: Plan;
  /** The validated input, whole (sensitive fields included; histories are encrypted, interfaces.md "Secrets in history"). */
  input: Json;
  taskId: string;
  ordinal: number;
  attempt: number;
  purpose: AttemptPurpose;
  inline: boolean;
  /** The last look: an effect still invisible (the verify deadline has passed) or still unknown goes to `attention` (S2.6, S5.3). */
  verifyFinal: boolean;
  /** Where the plan names a resource. */
  lease?: HeldLease;
  /** Journal entries that ride in this attempt's ledger transactions (S10.3). */
  journal: AuditNote[];
}

export interface RollbackRequest {
  plan: Plan;
  input: Json;
  taskId: string;
  ordinal: number;
  attempt: number;
  reason: RollbackReason;
  /** No retry follows: a failure puts the row into `attention` and alerts (S6.2). */
  final: boolean;
  /** Where the plan names a resource. */
  lease?: HeldLease;
  journal: AuditNote[];
}

export interface CloseRequest {
  plan: Plan;
  taskId: string;
  ordinal: number;
  /** Every attempt this task ever scheduled is at most this; the fence is raised beyond it. */
  attempt: number;
  end: TaskEnd;
  journal: AuditNote[];
}

export interface ResolveRequest {
  plan: Plan;
  taskId: string;
  ordinal: number;
  attempt: number;
  about: AttentionAbout;
  resolution: Resolution;
  /** What this resolution ends the task with once the ledger took it; null when the task goes on. */
  end: TaskEnd | null;
  journal: AuditNote[];
}

/** A task started by a bare Temporal client (interfaces.md "Workflow action"). */
export interface BareStart {
  v: 1;
  action: string;
  input: JsonObject;
  key?: string;
  principal: Principal;
}

export type PlanTaskResult =
  | { kind: 'planned'; plan: Plan; input: Json; ordinal: number }
  /** Refused before anything was reserved or because the key's row belongs to another task; ends the task. */
  | {
      kind: 'refused';
      end: TaskEnd;
      operationId: string | null;
      result: StoredResult | null;
      replayed: boolean;
    };

export interface PreviewRequest {
  plan: Plan;
  input: Json;
  taskId: string;
  journal: AuditNote[];
}

export interface PlanEditRequest {
  plan: Plan;
  taskId: string;
  callId: string;
  arguments: JsonObject;
  by: Principal;
}

export type PlanEditResult =
  /** `needsApproval`: policy for the new arguments asks for more than this approver's word (S4.2). `shown`: the arguments, redacted. */
  | { kind: 'planned'; plan: Plan; input: Json; needsApproval: boolean; shown: JsonObject }
  | { kind: 'refused'; message: string };

/** What an approver is to see; `overtaken`: the row shows that the operation was sent before, by an earlier run of it. */
export type PreviewResult = { kind: 'view'; view: JsonObject } | { kind: 'overtaken'; rowAttempt: number };

/** A transition without a ledger change, as the audit keeps it (S10.3). */
export interface AuditNote {
  type: string;
  at: number;
  data: JsonObject;
}

/** Asks for the lease on a resource (S8.2); the grant comes as a signal to the owner's workflow. */
export interface AcquireLeaseRequest {
  tenant: string;
  lease: PlanLease;
  taskId: string;
  /** Of a procedure. */
  step?: string;
  request: number;
  /** The next fence is higher than the newest that the ledger has seen; false: it may be away. */
  recorded: boolean;
  above: number;
}

/**
 * The activities of workflow `action`, by their persisted names.
 *
 * Each may run more than once (its worker dies after the ledger took it): a repeat answers as the first would have.
 * Each answers only once every note of `journal` is in the audit, whatever the outcome (S10.3).
 */
export interface TaskActivities {
  attemptOperation(request: AttemptRequest): Promise<OperationOutcome>;
  rollbackOperation(request: RollbackRequest): Promise<RollbackOutcome>;
  closeOperation(request: CloseRequest): Promise<CloseOutcome>;
  /**
   * Writes a person's resolution into the ledger and answers `request.end`. Where the row is not in `attention` (an
   * earlier run of this activity took it over) it changes nothing and answers the row's recorded end, else null.
   */
  resolveOperation(request: ResolveRequest): Promise<{ end: TaskEnd | null }>;
  /** Flushes transitions without a ledger change before a task ends or waits for a person (S10.3). */
  recordNotes(request: { plan: Plan; taskId: string; journal: AuditNote[]; alert?: AlertDue }): Promise<void>;
  /** Reads what an approver is to see (S4.7): redacted arguments, the precondition now, the rollback plan. Changes nothing. */
  previewOperation(request: PreviewRequest): Promise<PreviewResult>;
  /** Validates and plans an approver's arguments (S4.2) for the same operation and requester. */
  planEdit(request: PlanEditRequest): Promise<PlanEditResult>;
  /** Begins the lease's workflow where there is none. The same request again changes nothing. */
  acquireLease(request: AcquireLeaseRequest): Promise<void>;
  planTask(request: { start: BareStart; taskId: string }): Promise<PlanTaskResult>;
}

/**
 * The activities of workflow `remoteTask`, by their persisted names: one supervised control call each (S8.4). Each may be
 * lost and repeated; the ledger's claim keeps two from being made at once.
 */
export interface RemoteActivities {
  pollRemoteTask(request: { operationId: string; keepResult: boolean }): Promise<RemoteCallAnswer>;
  cancelRemoteTask(request: { operationId: string }): Promise<RemoteCallAnswer>;
  answerRemoteTask(request: { operationId: string; responses: JsonObject }): Promise<RemoteCallAnswer>;
}

/** One step of a procedure, as its code asked for it; planned where it is performed (architecture.md, idea 1). */
export interface StepStart {
  action: string;
  /** As sent; checked against the contract. */
  args: JsonObject;
  /** `taskId/stepId` (S1.2). */
  key: string;
  principal: Principal;
  /** The procedure's operation. */
  parent: string;
  /** S3.7: asked for by `p.decide`, within the budget of its contract. */
  decision?: true;
}

/** Plans, reserves and performs a step in one go. */
export interface StepRequest {
  start: StepStart;
  taskId: string;
  /** The procedure's; its steps have the same. */
  ordinal: number;
  attempt: number;
  purpose: AttemptPurpose;
  journal: AuditNote[];
}

export type StepAnswer =
  /** `input`: validated. */
  | { kind: 'performed'; plan: Plan; input: Json; ordinal: number; outcome: OperationOutcome }
  /** Its plan names a resource that is not held yet; reserved, nothing claimed. */
  | { kind: 'leases'; plan: Plan; input: Json; ordinal: number; inDoubt: boolean }
  /** Policy asks for a person; reserved, nothing claimed. */
  | { kind: 'asks'; plan: Plan; input: Json; ordinal: number }
  /** Refused before anything was reserved. */
  | { kind: 'refused'; end: TaskEnd };

export interface ProcedureEndRequest {
  plan: Plan;
  taskId: string;
  ordinal: number;
  end: TaskEnd;
  /** What the code returned, when it did. */
  result: Json;
  journal: AuditNote[];
}

/** The activities that workflow `procedure` has besides, by their persisted names. They repeat as the others do. */
export interface ProcedureActivities {
  performStep(request: StepRequest): Promise<StepAnswer>;
  /** Records the end of the procedure's operation and of its steps. `superseded`: another run of it took over. */
  endProcedure(
    request: ProcedureEndRequest,
  ): Promise<{ kind: 'ended'; end: TaskEnd; result: StoredResult | null } | { kind: 'superseded' }>;
}
