/**
 * What gateway, CLI and programs do with tasks. `HoldfastClient` implements it over a Temporal client and the ledger;
 * tests of the gateway may hand-drive it.
 *
 * Guarantees: `start` answers only after the start is durable (M1.2), and the same key meets the same task however
 * often, wherever and when it is called (S1.5). Reads never hang: they answer the last known state, marked stale.
 */
import type { JsonObject } from '../task/json.ts';
import type { Json } from '../task/json.ts';
import type { JournalEntry } from '../task/procedure-event.ts';
import type { TaskOutcome } from '../task/outcome.ts';
import type { DecisionCode, DecisionKind, OpenApproval } from '../task/approval.ts';
import type { RemoteView } from '../task/remote-state.ts';
import type { Principal } from '../task/plan.ts';
import type { AttemptView, StepView, TaskState } from '../task/state.ts';
import type { AuditEntry, StoredAlert } from '../ledger/ledger.ts';

export interface StartRequest {
  action: string;
  args: JsonObject;
  /** S1.2. Absent: the call is keyless (S1.7). */
  key?: string;
  principal: Principal;
  /** M1.4: meet an open keyless call with equal arguments. Default true for keyless calls. */
  attach?: boolean;
}

export type FindRequest = Pick<StartRequest, 'action' | 'principal'> & { key: string };

/** A `TaskOutcome` with its result resolved (references fetched from the ledger). */
export interface TaskAnswer extends Omit<TaskOutcome, 'result'> {
  /** S7.1: nothing begins until somebody resumes it. */
  interrupted?: boolean;
  /** What a person is asked for just now, where the task itself said so; read with the status, so that it costs no more. */
  approval?: ApprovalView | null;
  /** The others, where a procedure asks at several places at once, in the order they were asked. */
  otherApprovals?: ApprovalView[];
  /** Another server is at work for it (M8.4), with what that one asks for; where the task itself said so. */
  remote?: RemoteView;
  result: Json;
  /** Set when the result was too large to keep: its hash and size. */
  resultDropped?: { sha256: string; bytes: number };
  /** Met an open keyless call with equal arguments (M1.4). */
  attached: boolean;
  /** Not read from the engine just now: no worker answered in time (M2.2). */
  stale: boolean;
  statusMessage: string;
  createdAt: number;
  updatedAt: number;
}

export interface TaskDetail extends TaskAnswer {
  events: JournalEntry[];
  attempts: AttemptView[];
  /** A procedure's, in the order they began; empty for a task of one action, and where no worker could be asked. */
  steps: StepView[];
  /** What a person is asked for just now (S4.7); null when nobody is. */
  approval: ApprovalView | null;
  cancelAsked: boolean;
  nextEligibleAt: number | null;
  /**
   * S2.7: what an attempt reported after its claim was lost or a person was asked, as `{kind, …}`, `applied` with its
   * result as stored; of the step that needs a person, in a procedure. Null where none did.
   */
  lateOutcome: Json;
  lastFailure: TaskState['lastFailure'];
  alerts: StoredAlert[];
}

export interface MessageAnswer {
  accepted: boolean;
  code: string;
  status: string;
}

export interface TaskClient {
  start(request: StartRequest): Promise<TaskAnswer>;
  /** Throws `task_not_found` for unknown and foreign ids alike (M2.6). */
  get(taskId: string, principal: Principal): Promise<TaskAnswer>;
  /**
   * The task of a call whose answer never came, by its key. Throws `task_not_found` where nothing is reserved under the key
   * at this moment; a call may still be on its way then.
   */
  find(request: FindRequest): Promise<TaskAnswer>;
  /** `awaitsWorker`: where no worker answers for the task, up to 12 s are given for one; otherwise it is told without. */
  detail(taskId: string, principal: Principal, options?: { awaitsWorker?: boolean }): Promise<TaskDetail>;
  /** Until the task ended, needs a person, or `timeoutMs` passed; answers the state then. Aborting the signal only ends the wait. */
  wait(
    taskId: string,
    principal: Principal,
    options: { timeoutMs: number; signal?: AbortSignal; onChange?: (answer: TaskAnswer) => void },
  ): Promise<TaskAnswer>;
  cancel(taskId: string, principal: Principal, reason?: string): Promise<MessageAnswer>;
  /** M5.3: says that the caller waits for the task, or holds its handle and so does for good; answers when, by the ledger's clock. */
  attend(taskId: string, principal: Principal, how: 'waiting' | 'handed'): Promise<number>;
  /** M5.3: as `cancel`, unless somebody has attended the task after `since`; null then. */
  cancelUnattended(taskId: string, principal: Principal, since: number): Promise<MessageAnswer | null>;
  /** Throws `invalid_resolution` (`details.issues`), also where several steps wait and none is named. */
  resolve(taskId: string, principal: Principal, resolution: ResolutionInput): Promise<MessageAnswer>;
  /** S4: the first decision applied wins; `accepted` false says why this one changed nothing. */
  decide(taskId: string, principal: Principal, decision: DecisionInput): Promise<DecisionAnswer>;
  /** S7.1: pauses whatever the task is doing; a second one changes nothing. */
  interrupt(taskId: string, principal: Principal, reason?: string): Promise<MessageAnswer>;
  resume(taskId: string, principal: Principal): Promise<MessageAnswer>;
  /** M8.4: answers to what another server asks for, by the keys of `remote.requests`; others are left out. `not_open`: none was open. */
  answer(taskId: string, principal: Principal, answers: JsonObject): Promise<MessageAnswer>;
  /** Who waits for a person, longest first: the `limit` (default 200) that wait longest, of at most 10,000 that are read. */
  inbox(principal: Principal, options?: { limit?: number }): Promise<InboxEntry[]>;
  /**
   * Calls `listener` when somebody says that the task changed: read it then, and now and then without. Hints may be lost,
   * repeated or late. Answers the function that ends it; a listener must not throw and must not block.
   */
  onHint(taskId: string, listener: () => void): () => void;
  list(
    principal: Principal,
    filter?: { status?: string; action?: string; limit?: number },
  ): Promise<TaskAnswer[]>;
  audit(taskId: string, principal: Principal): Promise<AuditEntry[]>;
}

/** A resolution as a person gives it; `by` comes from the principal, `result` is checked against the contract's output. */
export type ResolutionInput = {
  note?: string;
  /** Of a procedure: the step it is about. May be left out where one alone waits for a person. */
  step?: string;
} & ({ as: 'applied'; result?: Json } | { as: 'not_applied' } | { as: 'abandoned' });

export interface DecisionInput {
  kind: DecisionKind;
  /** Default: the approval that is open just now. Give it where a person saw one and may be late. */
  callId?: string;
  /** Default: a new one. Sent again under the same id, a decision gets its first answer. */
  decisionId?: string;
  fingerprint?: string;
  /** S4.6: the phrase, typed back. */
  challengeAnswer?: string;
  /** The action that is meant; a decision that names another than the call's is refused. */
  action?: string;
  /** With `edit`; beside any other kind they are refused (`invalid_decision`), never dropped. */
  arguments?: JsonObject;
  reason?: string;
  channel?: 'direct' | 'mcp';
}

export interface DecisionAnswer {
  accepted: boolean;
  /** A code of src/task/approval.ts, or `requested` when no worker answered and the engine keeps the decision. */
  code: DecisionCode | 'requested';
  status: string;
  message?: string;
}

/** What an approver sees and decides by (S4.1, S4.7). */
export interface ApprovalView extends Pick<
  OpenApproval,
  'callId' | 'openedAt' | 'expiresAt' | 'fingerprint' | 'view' | 'roles' | 'approvedBy'
> {
  /** What is carried out: of a procedure the step's action, `holdfast_approval` where its code asks by `p.approve`. */
  action: string;
  quorum: number;
  requesterMayDecide: boolean;
  mayAnswerOverMcp: boolean;
  onExpiry: string;
  /** S4.6: the phrase to type back; null where none is asked for. */
  challenge: string | null;
}

export interface InboxEntry {
  taskId: string;
  action: string;
  status: string;
  waitingSince: number;
}
