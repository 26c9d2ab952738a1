/**
 * Approvals as data (S4): what is asked, of whom, and what a decision does to it. Pure.
 *
 * Invariants:
 * 1. An approval is bound to one `callId` and one fingerprint; nothing said about another leaks into it (S4.1).
 * 2. The first decision applied wins; every later one is answered and changes nothing (S4.3).
 * 3. The same `decisionId` gets its first answer again.
 * 4. A decision that comes too early is held and judged when its approval opens.
 */
import type { NewEvent } from './event.ts';
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
  /** With `edit`: the new arguments, validated and planned again. */
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
}

/** S4.6. */
export const WRONG_ANSWERS_MAX = 3;
export const HELD_DECISIONS_MAX = 50;
export const DECISIONS_REMEMBERED_MAX = 200;

/** The one step of a task of workflow `action`. */
const ACTION_STEP = 'action';

export function callIdOf(cycle: number): string {
  return `${ACTION_STEP}#${cycle}`;
}

/** Whether this call was ever, or will be, an approval of this task. */
export function cycleOf(callId: string): number | null {
  const match = /^action#([1-9]\d{0,5})$/.exec(callId);
  return match === null ? null : Number(match[1]);
}

export function approvalOf(plan: Plan | null): PlanApproval | null {
  return plan?.approval ?? null;
}

/** What an edit still needs before it can be judged: its arguments, planned anew by an activity. */
export type Judgement =
  { kind: 'answered'; reply: Omit<DecisionReply, 'status'>; events: NewEvent[] } | { kind: 'plan_edit' };

const refused = (code: DecisionCode, message: string): Judgement => ({
  kind: 'answered',
  reply: { accepted: false, code, message },
  events: [],
});

/** Judges a decision against the task as it is now. `events` are to be appended in order, whatever the channel. */
export function judgeDecision(state: TaskState, decision: DecisionMessage, now: number): Judgement {
  const { phase } = state;
  if (phase.kind === 'ended' || phase.kind === 'finished')
    return refused('already_ended', 'The task has ended.');
  const cycle = cycleOf(decision.callId);
  if (cycle === null) return refused('not_open', 'No approval of that id belongs to this task.');
  const open = openApproval(state);
  if (open === null || open.callId !== decision.callId) return judgeClosed(state, decision, cycle);
  return judgeOpen(state, open, decision, now);
}

/** The approval that people can decide now; null when none is open. */
export function openApproval(state: TaskState): OpenApproval | null {
  return state.phase.kind === 'awaiting_approval' ? state.phase.approval : null;
}

function judgeClosed(state: TaskState, decision: DecisionMessage, cycle: number): Judgement {
  const isOver = cycle <= state.approvalCycle && openApproval(state)?.callId !== decision.callId;
  if (isOver) return refused('already_decided', 'That approval is closed; the first decision stands.');
  if (cycle > state.approvalCycle + 1 || decision.kind === 'edit')
    return refused('not_open', 'No approval of that id is open or comes next.');
  if (state.heldDecisions.length >= HELD_DECISIONS_MAX)
    return refused('not_open', 'That approval is not open yet, and no more decisions can be held for it.');
  return {
    kind: 'answered',
    reply: { accepted: true, code: 'held' },
    events: [{ type: 'decision_held', data: { decision: decision } }],
  };
}

function judgeOpen(state: TaskState, open: OpenApproval, decision: DecisionMessage, now: number): Judgement {
  if (now >= open.expiresAt) return refused('approval_expired', 'The approval has expired.');
  const obstacle = whyNot(state, open, decision);
  if (obstacle !== null) return obstacle;
  switch (decision.kind) {
    case 'reject':
      return decided(decision, 'rejected', 'rejected');
    case 'edit':
      return { kind: 'plan_edit' };
    case 'approve':
      return judgeApproval(state, open, decision);
    default:
      return decision.kind satisfies never;
  }
}

/** Who may decide, and about what (S4.5, S4.6, M7.3). */
function whyNot(state: TaskState, open: OpenApproval, decision: DecisionMessage): Judgement | null {
  const rule = approvalOf(state.plan);
  const { by } = decision;
  const requester = state.plan?.principal;
  if (rule === null || requester === undefined) return refused('not_open', 'This call needs no approval.');
  if (by.tenant !== requester.tenant) return refused('not_open', 'No approval of that id is open.');
  if (decision.fingerprint !== undefined && decision.fingerprint !== open.fingerprint)
    return refused('fingerprint_mismatch', 'The call is not the one that was shown; look at it again.');
  if (decision.channel === 'mcp' && !rule.mayAnswerOverMcp)
    return refused('not_allowed', 'Policy lets nobody decide this over the connection that asked for it.');
  if (by.subject === requester.subject && !rule.requesterMayDecide)
    return refused('not_allowed', 'The requester may not decide its own call.');
  if (open.roles.length > 0 && !open.roles.some((role) => by.roles.includes(role)))
    return refused('not_allowed', `Only someone with role ${open.roles.join(' or ')} may decide.`);
  return null;
}

function judgeApproval(state: TaskState, open: OpenApproval, decision: DecisionMessage): Judgement {
  const rule = approvalOf(state.plan);
  const { subject } = decision.by;
  if (rule?.challenge != null && decision.challengeAnswer !== rule.challenge)
    return wrongAnswer(open, decision);
  if (open.approvedBy.includes(subject))
    return refused('already_decided', 'This approver has approved already; another one is needed.');
  if (open.approvedBy.length + 1 >= (rule?.quorum ?? 1)) return decided(decision, 'approved', 'approved');
  return {
    kind: 'answered',
    reply: { accepted: true, code: 'approval_recorded', message: 'Recorded; more approvers are needed.' },
    events: [{ type: 'approval_given', data: decisionRecord(decision) }],
  };
}

/** Three wrong answers reject the call. */
function wrongAnswer(open: OpenApproval, decision: DecisionMessage): Judgement {
  const isLast = open.wrongAnswers + 1 >= WRONG_ANSWERS_MAX;
  const record = decisionRecord(decision);
  const failed: NewEvent = { type: 'challenge_failed', data: record };
  const rejected: NewEvent = {
    type: 'approval_decided',
    data: { ...record, decision: 'rejected', reason: `The phrase was wrong ${WRONG_ANSWERS_MAX} times.` },
  };
  return {
    kind: 'answered',
    reply: {
      accepted: false,
      code: 'wrong_challenge',
      message: isLast
        ? 'The phrase was wrong for the third time; the call is rejected.'
        : 'Type the phrase exactly as the approval shows it.',
    },
    events: isLast ? [failed, rejected] : [failed],
  };
}

function decided(
  decision: DecisionMessage,
  code: 'approved' | 'rejected',
  how: 'approved' | 'rejected',
): Judgement {
  return {
    kind: 'answered',
    reply: { accepted: true, code },
    events: [{ type: 'approval_decided', data: { ...decisionRecord(decision), decision: how } }],
  };
}

/** What journal and audit keep of a decision: who, when it is appended, about what, why. Never arguments. */
export function decisionRecord({ callId, by, decisionId, reason, channel }: DecisionMessage) {
  return {
    callId,
    by: by.subject,
    roles: by.roles,
    ...(decisionId !== undefined && { decisionId }),
    ...(reason !== undefined && { reason }),
    ...(channel === 'mcp' && { channel }),
  };
}
