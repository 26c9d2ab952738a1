/**
 * What a person's decision does to a task as it is now (S4.3, S4.5, S4.6). Pure.
 *
 * Invariants:
 * 1. A decision is about one `callId`, and about one fingerprint where it names it; nothing said about another counts (S4.1).
 * 2. The first decision applied wins; every later one is answered and changes nothing.
 * 3. The same `decisionId` gets its first answer again.
 * 4. A decision that comes too early is held and judged when its approval opens; one for arguments that nobody can know
 *    yet is held only with their fingerprint.
 * 5. Nothing is decided once the task was cancelled, has ended or is about to.
 */
import {
  approvalOf,
  cycleOf,
  expiryOf,
  HELD_CHARS_MAX,
  HELD_DECISIONS_MAX,
  openApproval,
  WRONG_ANSWERS_MAX,
} from './approval.ts';
import type { DecisionCode, DecisionMessage, DecisionReply, OpenApproval } from './approval.ts';
import type { DecisionRecord, NewEvent } from './event.ts';
import type { JsonObject } from './json.ts';
import type { TaskEnd } from './outcome.ts';
import type { Plan } from './plan.ts';
import type { TaskState } from './state.ts';

/** A reply, and the events to be appended in order, whatever the channel. */
export interface Answered {
  reply: Omit<DecisionReply, 'status'>;
  events: NewEvent[];
}

/** `plan_edit`: its arguments must be planned by an activity first, and the decision judged again after that. */
export type Judgement = ({ kind: 'answered' } & Answered) | { kind: 'plan_edit' };

/** The first answer to a `decisionId`, for whoever sends it again; null for a new one. */
export function firstAnswer(
  { answers }: TaskState,
  { decisionId }: Pick<DecisionMessage, 'decisionId'>,
): Answered['reply'] | null {
  const known = answers.find((answer) => answer.decisionId === decisionId);
  if (known === undefined) return null;
  const { decisionId: _id, ...reply } = known;
  return reply;
}

export function judgeDecision(state: TaskState, decision: DecisionMessage, now: number): Judgement {
  const { plan } = state;
  const cycle = cycleOf(decision.callId, state.stepId);
  if (cycle === null || (plan !== null && decision.by.tenant !== plan.principal.tenant))
    return refused('not_open', 'No approval of that id belongs to this task.');
  const open = openApproval(state);
  if (open?.callId !== decision.callId)
    return cycle <= state.approvalCycle
      ? { kind: 'answered', reply: closedReply(closedCode(state, decision.callId)), events: [] }
      : judgeEarly(state, decision, cycle);
  if (state.cancelRequested) return refused('already_ended', 'The task is being cancelled.');
  return judgeOpen(state, open, decision, now);
}

/** What is appended after a decision was answered: one that changed nothing is journaled as ignored (S4.3). */
export function eventsAfter(decision: DecisionMessage, { reply, events }: Answered): NewEvent[] {
  return events.length > 0 ? events : [ignored(decision, reply.code)];
}

/** A decision that changed nothing, for journal and audit. */
export function ignored(decision: DecisionMessage, code: DecisionCode) {
  return { type: 'decision_ignored', data: { ...recordOf(decision), kind: decision.kind, code } } as const;
}

/** S4.2: an edit whose arguments were planned, and which nobody forestalled. `shown`: what audit and people see of them. */
export function edited(
  decision: DecisionMessage,
  planned: { plan: Plan; needsApproval: boolean; shown: JsonObject },
): Answered {
  const { plan, needsApproval, shown } = planned;
  return {
    reply: { accepted: true, code: needsApproval ? 'edited_needs_approval' : 'edited' },
    events: [
      {
        type: 'approval_decided',
        data: { ...recordOf(decision), decision: 'edited', plan, needsApproval, shown },
      },
    ],
  };
}

/** An edit that can't be taken. */
export function editRefused(message: string): Answered {
  return { reply: { accepted: false, code: 'invalid_edit', message }, events: [] };
}

function refused(code: DecisionCode, message: string): Judgement {
  return { kind: 'answered', reply: { accepted: false, code, message }, events: [] };
}

/** The end the task has, or is being closed with. */
function endAhead({ phase, end }: TaskState): TaskEnd | null {
  if (phase.kind === 'finished') return phase.end;
  return 'step' in phase && phase.step.kind === 'close' ? phase.step.end : end;
}

const CLOSED = {
  already_decided: 'That approval is closed; the first decision stands.',
  approval_expired: 'The approval has expired.',
  already_ended: 'The task has ended.',
} as const;

export type ClosedCode = keyof typeof CLOSED;

/** Why nobody can decide an approval that was open once. */
export function closedCode(state: TaskState, callId: string): ClosedCode {
  if (cycleOf(callId, state.stepId) !== state.approvalCycle || state.decided?.callId === callId)
    return 'already_decided';
  const end = endAhead(state);
  return end === null || end.cause === 'approval_expired' ? 'approval_expired' : 'already_ended';
}

export function closedReply(code: ClosedCode): Answered['reply'] {
  return { accepted: false, code, message: CLOSED[code] };
}

function judgeEarly(state: TaskState, decision: DecisionMessage, cycle: number): Judgement {
  if (state.cancelRequested || endAhead(state) !== null)
    return refused('already_ended', 'The task has ended or is about to.');
  if (cycle > state.approvalCycle + 1 || decision.kind === 'edit' || !mayOpenAnother(state))
    return refused('not_open', 'No approval of that id is open or comes next.');
  if (cycle > 1 && decision.kind === 'approve' && decision.fingerprint === undefined)
    return refused(
      'not_open',
      'That approval is not open yet; in advance it needs the fingerprint of its call.',
    );
  if (!hasRoom([...state.heldDecisions, decision]))
    return refused('not_open', 'That approval is not open yet, and no more decisions can be held for it.');
  return {
    kind: 'answered',
    reply: { accepted: true, code: 'held' },
    events: [{ type: 'decision_held', data: { decision } }],
  };
}

/** Whether so many may be held: they cross continue-as-new. */
export function hasRoom(held: readonly DecisionMessage[]): boolean {
  return held.length <= HELD_DECISIONS_MAX && JSON.stringify(held).length <= HELD_CHARS_MAX;
}

/** Whether an approval under the next callId is still to be expected. */
function mayOpenAnother({ plan, phase }: TaskState): boolean {
  if (plan === null) return true;
  if (approvalOf(plan) === null) return false;
  if ('step' in phase) return phase.step.kind === 'preview';
  return (
    phase.kind === 'awaiting_approval' || (phase.kind === 'needs_attention' && phase.about === 'approval')
  );
}

function judgeOpen(state: TaskState, open: OpenApproval, decision: DecisionMessage, now: number): Judgement {
  const ends = ['deny', 'halt'].includes(expiryOf(state, open));
  if (ends && now >= open.expiresAt) return refused('approval_expired', 'The approval has expired.');
  const obstacle = whyNot(state, open, decision);
  if (obstacle !== null) return obstacle;
  switch (decision.kind) {
    case 'reject':
      return decided(decision, 'rejected');
    case 'edit':
      return decision.arguments === undefined
        ? { kind: 'answered', ...editRefused('An edit needs `arguments`.') }
        : { kind: 'plan_edit' };
    case 'approve':
      return judgeApproval(state, open, decision);
    default:
      return decision.kind satisfies never;
  }
}

/** Who may decide, and about what (S4.5, S4.6, M7.3). */
function whyNot(state: TaskState, open: OpenApproval, decision: DecisionMessage): Judgement | null {
  const rule = approvalOf(state.plan);
  const { by, action } = decision;
  const requester = state.plan?.principal;
  if (rule === null || requester === undefined) return refused('not_open', 'This call needs no approval.');
  if (decision.fingerprint !== undefined && decision.fingerprint !== open.fingerprint)
    return refused('fingerprint_mismatch', 'The call is not the one that was shown; look at it again.');
  if (action !== undefined && action !== state.action)
    return refused(
      decision.kind === 'edit' ? 'invalid_edit' : 'invalid_decision',
      `This call is one of ${state.action}; a decision makes it no other.`,
    );
  if (decision.channel === 'mcp' && !rule.mayAnswerOverMcp)
    return refused('not_allowed', 'Policy lets nobody decide this over the connection that asked for it.');
  if (by.subject === requester.subject && !rule.requesterMayDecide)
    return refused('not_allowed', 'The requester may not decide its own call.');
  if (open.roles.length > 0 && !open.roles.some((role) => by.roles.includes(role)))
    return refused('not_allowed', `Only someone with role ${open.roles.join(' or ')} may decide.`);
  return null;
}

function judgeApproval(state: TaskState, open: OpenApproval, decision: DecisionMessage): Judgement {
  const { challenge = null, quorum = 1 } = approvalOf(state.plan) ?? {};
  if (open.approvedBy.includes(decision.by.subject))
    return refused('already_decided', 'This approver has approved already; another one is needed.');
  if (challenge !== null && decision.challengeAnswer === undefined)
    return refused('wrong_challenge', 'This call can not be undone: type back the phrase that it shows.');
  if (challenge !== null && decision.challengeAnswer?.trim() !== challenge.trim())
    return wrongAnswer(open, decision);
  if (open.approvedBy.length + 1 >= quorum) return decided(decision, 'approved');
  return {
    kind: 'answered',
    reply: { accepted: true, code: 'approval_recorded', message: 'Recorded; more approvers are needed.' },
    events: [{ type: 'approval_given', data: recordOf(decision) }],
  };
}

/** Three wrong answers reject the call. */
function wrongAnswer(open: OpenApproval, decision: DecisionMessage): Judgement {
  const isLast = open.wrongAnswers + 1 >= WRONG_ANSWERS_MAX;
  const record = recordOf(decision);
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

function decided(decision: DecisionMessage, how: 'approved' | 'rejected'): Judgement {
  return {
    kind: 'answered',
    reply: { accepted: true, code: how },
    events: [{ type: 'approval_decided', data: { ...recordOf(decision), decision: how } }],
  };
}

/** What journal and audit keep of a decision: who, about what, why. Never arguments or a phrase. */
export function recordOf({ callId, by, decisionId, reason, channel }: DecisionMessage): DecisionRecord {
  return {
    callId,
    by: by.subject,
    roles: by.roles,
    ...(decisionId !== undefined && { decisionId }),
    ...(reason !== undefined && { reason }),
    ...(channel === 'mcp' && { channel }),
  };
}
