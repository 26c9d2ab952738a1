/**
 * Approvals as data (S4): what is asked, of whom, and what a person may say to it. Pure; judging is judge-decision.ts's,
 * what follows from it approval-state.ts's.
 */
import type { JsonObject } from './json.ts';
import type { Plan, PlanApproval, Principal } from './plan.ts';
import type { TaskState } from './state.ts';

export type DecisionKind = 'approve' | 'edit' | 'reject';

/** A person's decision, as signals `approve`, `edit`, `reject` and update `decide` carry it. */
export interface DecisionMessage {
  kind: DecisionKind;
  /** `stepId#cycle` of the approval it is about. */
  callId: string;
  by: Principal;
  /** Names this decision: sent again under the same id it gets its first answer. At most 255 characters. */
  decisionId?: string;
  /** The fingerprint of what the approver saw; when given it must be the open call's. */
  fingerprint?: string;
  /** S4.6: the phrase, typed back. */
  challengeAnswer?: string;
  /** The action that is meant; a decision that names another than the call's is refused. At most 255 characters. */
  action?: string;
  /** With `edit` alone: the new arguments, validated and planned again. */
  arguments?: JsonObject;
  /** Kept in journal and audit. At most 1,000 characters. */
  reason?: string;
  /** `mcp`: over the connection that asked for the action (M7.3). Default `direct`. */
  channel?: 'direct' | 'mcp';
}

export type DecisionCode =
  | 'approved'
  /** Counted; more approvers are needed (S4.5). */
  | 'approval_recorded'
  | 'edited'
  /** Policy for the new arguments asks for more: a new approval opened under the next callId (S4.2). */
  | 'edited_needs_approval'
  | 'rejected'
  /** For a call of this task that is not open yet: kept, and judged when it opens. */
  | 'held'
  | 'already_decided'
  | 'approval_expired'
  | 'not_open'
  | 'not_allowed'
  | 'wrong_challenge'
  | 'fingerprint_mismatch'
  | 'invalid_edit'
  | 'invalid_decision'
  | 'already_ended';

export interface DecisionReply {
  accepted: boolean;
  code: DecisionCode;
  status: string;
  /** For people: what was refused and why; no stored value. */
  message?: string;
}

/** An approval that is open. */
export interface OpenApproval {
  callId: string;
  openedAt: number;
  expiresAt: number;
  /** Input fingerprint of the call (S4.1). */
  fingerprint: string;
  /** S4.7: redacted arguments, the precondition as read, the rollback plan. */
  view: JsonObject;
  /** Roles that may decide now; an escalation adds some. Empty: anybody of the tenant. */
  roles: string[];
  approvedBy: string[];
  wrongAnswers: number;
  hasEscalated: boolean;
  /** The expiry that people were alerted of beforehand. */
  warnedOf?: number;
}

/** The newest decision that closed an approval. */
export interface ClosedApproval {
  callId: string;
  as: 'approved' | 'rejected' | 'edited' | 'edited_needs_approval';
}

/** S4.6. */
export const WRONG_ANSWERS_MAX = 3;
export const HELD_DECISIONS_MAX = 50;
/** All of them together, as JSON: they cross continue-as-new beside an input of up to 1 MiB. */
export const HELD_CHARS_MAX = 64 * 1024;
export const DECISIONS_REMEMBERED_MAX = 200;

/** The action that a person's gate in a procedure is (`p.approve`): it does nothing, and its policy comes with the call. */
export const APPROVAL_ACTION = 'holdfast_approval';

/** The one step of a task of workflow `action`. */
const ACTION_STEP = 'action';

export function callIdOf(cycle: number, stepId: string = ACTION_STEP): string {
  return `${stepId}#${cycle}`;
}

/** The step that a callId names: all before its cycle, since a stepId may itself be `stepId#n`. */
export function stepOfCallId(callId: string): string {
  return callId.replace(/#\d+$/, '');
}

/** The number of the approval that a callId names; null when it can name none of this task or step. */
export function cycleOf(callId: string, stepId: string = ACTION_STEP): number | null {
  const prefix = `${stepId}#`;
  if (!callId.startsWith(prefix)) return null;
  const match = /^[1-9]\d{0,5}$/.exec(callId.slice(prefix.length));
  return match === null ? null : Number(match[0]);
}

export function approvalOf(plan: Plan | null): PlanApproval | null {
  return plan?.approval ?? null;
}

/** The approval that people can decide now; null when none is open. */
export function openApproval(state: TaskState): OpenApproval | null {
  return state.phase.kind === 'awaiting_approval' ? state.phase.approval : null;
}

/** Whether the plan as it is may be executed: nobody has to be asked, or somebody said so (S4.1). */
export function isExecutionAllowed({ plan, decided }: TaskState): boolean {
  return approvalOf(plan) === null || decided?.as === 'approved' || decided?.as === 'edited';
}

/** When people are to be alerted that it expires; null when they were, or nobody is to be. */
export function warningDueAt(
  state: TaskState,
  { expiresAt, warnedOf }: Pick<OpenApproval, 'expiresAt' | 'warnedOf'>,
): number | null {
  const beforeMs = approvalOf(state.plan)?.warnBeforeMs ?? 0;
  return beforeMs === 0 || warnedOf === expiresAt ? null : expiresAt - beforeMs;
}

/** What an approval's expiry leads to (S4.4); after one escalation nobody else is left to ask. */
export function expiryOf(
  state: TaskState,
  { hasEscalated }: Pick<OpenApproval, 'hasEscalated'>,
): PlanApproval['onExpiry'] {
  return hasEscalated ? 'deny' : (approvalOf(state.plan)?.onExpiry ?? 'deny');
}
