import type { ClosedApproval, DecisionMessage, DecisionReply, OpenApproval } from './approval.ts';
import type { AttemptPurpose, AttentionAbout, RollbackReason, Step } from './event.ts';
import type { Failure } from './failure.ts';
import type { TaskLease } from './held-lease.ts';
import type { JsonObject } from './json.ts';
import type { StoredResult, TaskEffect, TaskEnd, TaskError, TaskStatus } from './outcome.ts';
import type { Plan, PlanApproval } from './plan.ts';
import type { RemoteRef, RemoteSeen } from './remote.ts';

/**
 * Where a task stands. Each variant carries just what the next decision needs; all plain JSON, as it lives in
 * workflow state and in query answers.
 */
export type Phase =
  /** The step may begin at `notBefore`. */
  | { kind: 'ready'; step: Step; notBefore: number; waiting: 'no' | 'backoff' | 'busy' }
  /** The step's activity is scheduled; nothing else begins until it answers. `inDoubtBefore`: an earlier attempt may have reached the world. */
  | { kind: 'working'; step: Step; attempt: number; abortRequested: boolean; inDoubtBefore: boolean }
  /** The step failed and may be tried again; when, or whether at all, is not decided yet. */
  | { kind: 'retry_due'; step: Step; failure: Failure; spendsRetry: boolean }
  /** S4: `toJudge` came early and is judged now, oldest first. */
  | { kind: 'awaiting_approval'; approval: OpenApproval; toJudge: DecisionMessage[] }
  /** Applied, not yet visible to verify: look again at `nextAt` (S2.6). */
  | { kind: 'verifying'; nextAt: number }
  /** Another server goes on with it as a task of its own (S8.4). `answers`: given and not seen to be taken yet. */
  | {
      kind: 'remote';
      remote: RemoteRef;
      attempt: number;
      seen: RemoteSeen | null;
      failures: number;
      lastError: string | null;
      answers: JsonObject;
      /** The remote's keys. */
      answered: string[];
      cancelPassed: boolean;
    }
  /** Holdfast can't know; a person must say (S3.5). `reason`: why the rollback ran, null when it is about the effect. */
  | {
      kind: 'needs_attention';
      about: AttentionAbout;
      reason: RollbackReason | null;
      since: number;
    }
  /** Nothing is left to do but to say so. */
  | { kind: 'finished'; end: TaskEnd; result: StoredResult | null; replayed: boolean }
  | { kind: 'ended' };

/** One attempt as a person reads it in `task show`. */
export interface AttemptView {
  attempt: number;
  purpose: AttemptPurpose | 'rollback';
  inline: boolean;
  startedAt: number;
  finishedAt: number | null;
  /** The outcome's kind, or `lost`. */
  outcome: string | null;
  failure: Failure | null;
}

/** An alert about something the ledger does not change. */
export interface AlertDue {
  type: 'approval_expired' | 'approval_reminder' | 'approval_expiring' | 'sla_missed';
  message: string;
  /** Null where it is about the task as a whole. */
  callId: string | null;
  /** When it became due: with the rest, what tells a repeat of this alert from the next of its kind. */
  at: number;
}

/** The reduced state of one task: `reduce(state, event)` over its journal, and nothing else, makes it (S3.1). */
export interface TaskState {
  v: 2;
  taskId: string;
  action: string;
  /** Set for a step of a procedure, whose `taskId` is the procedure's: `stepId`, or `stepId#n` for its n-th use (S1.2). */
  stepId?: string;
  /** Null until a bare task has planned. */
  operationId: string | null;
  ordinal: number;
  plan: Plan | null;
  /** The last event's number. */
  seq: number;
  startedAt: number;
  updatedAt: number;
  phase: Phase;
  /** Highest attempt number ever scheduled or heard of; the next is one more (S2.3). */
  attempt: number;
  /** Business retries spent (S5.2). */
  retriesSpent: number;
  rollbackRetriesSpent: number;
  retriesExhausted: boolean;
  /** Activities in a row that told nothing (lost by the infrastructure, or fenced off); paces the next, spends no budget. */
  lostInARow: number;
  /** Attempts to find out in a row that could not; bounded like retries, then a person is asked. */
  settlesSpent: number;
  /** An attempt may have reached the world and its outcome is not known: settle before any end. */
  inDoubt: boolean;
  cancelRequested: boolean;
  /** S7.1: the overlay; the phase underneath is kept. */
  interrupted: boolean;
  /** How many approvals were ever opened; the newest has callId `action#cycle`. */
  approvalCycle: number;
  /** The newest decision that closed an approval; only one that allows it lets an execution begin. */
  decided: ClosedApproval | null;
  /** Time that people took who have answered, to approvals and in `needs_attention`; in none of the tool's deadlines (S5.3). */
  humanWaitMs: number;
  /** For the approval that opens next (S4.3). */
  heldDecisions: DecisionMessage[];
  /** First answers by decisionId, the newest 200 (S4.3). */
  answers: (Omit<DecisionReply, 'status'> & { decisionId: string })[];
  /** Ids of the resolutions that were taken, the newest 20; absent before the first. */
  resolutionIds?: string[];
  /** To be committed to the outbox before anything else (S6.5). */
  alertsDue: AlertDue[];
  /** A person said that an effect stands that was to be undone: a cancel undoes it no more. */
  rollbackDeclined: boolean;
  runDeadlinePassed: boolean;
  slaMissed?: true;
  /** First `notYet` plus verifyMs; null before it. */
  verifyUntil: number | null;
  verifyPolls: number;
  lastFailure: Failure | null;
  /** When the next try may begin; null when nothing waits. */
  nextEligibleAt: number | null;
  /** The newest 100. */
  attempts: AttemptView[];
  end: TaskEnd | null;
  result: StoredResult | null;
  replayed: boolean;
  /** S8: absent until one was asked for. */
  lease?: TaskLease;
  /** A procedure's, in the order they began; absent in a task of one action. */
  steps?: StepView[];
  /** A procedure's approvals that are open beside the one shown; absent where there are none. Workers of 1.0 name no action. */
  otherApprovals?: { approval: OpenApproval; rule: PlanApproval; action?: string }[];
}

/** A step of a procedure as a person reads it in `task show`. */
export interface StepView {
  step: string;
  action: string;
  status: TaskStatus;
  effect: TaskEffect | null;
  operationId: string | null;
  attempts: number;
  error: TaskError | null;
}
