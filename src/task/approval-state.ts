/**
 * What the events of an approval mean for the task (S4): the reducer's part about people. Pure.
 *
 * An approval that closed hands the task on: to the execution, to the next approval, to its end, or to a person.
 */
import { attention } from './answers.ts';
import type { Change } from './answers.ts';
import { approvalOf, cycleOf, DECISIONS_REMEMBERED_MAX } from './approval.ts';
import type { ClosedApproval, DecisionReply, OpenApproval } from './approval.ts';
import { endedWith } from './ends.ts';
import type { DecisionRecord, EventData } from './event.ts';
import { EXECUTE, PREVIEW, ready } from './phase.ts';
import type { JsonObject } from './json.ts';
import type { Plan } from './plan.ts';
import type { AlertDue, Phase, TaskState } from './state.ts';

/** An approval as it opens (S4.1): bound to this call and to the arguments as they are planned now. */
export function opened(plan: Plan, callId: string, view: JsonObject, at: number): OpenApproval {
  const { expiresInMs = 0, roles = [] } = plan.approval ?? {};
  return {
    callId,
    openedAt: at,
    expiresAt: at + expiresInMs,
    fingerprint: (plan.edited ?? plan).fingerprint.input,
    view,
    roles,
    approvedBy: [],
    wrongAnswers: 0,
    hasEscalated: false,
  };
}

export function afterApprovalOpened(state: TaskState, { approval }: EventData['approval_opened']): Change {
  const isFor = ({ callId }: { callId: string }): boolean => callId === approval.callId;
  return {
    lostInARow: 0,
    approvalCycle: cycleOf(approval.callId, state.stepId) ?? state.approvalCycle + 1,
    heldDecisions: state.heldDecisions.filter((held) => !isFor(held)),
    phase: { kind: 'awaiting_approval', approval, toJudge: state.heldDecisions.filter(isFor) },
  };
}

export function afterApprovalGiven(state: TaskState, data: DecisionRecord): Change {
  return {
    ...remembered(state, data, { accepted: true, code: 'approval_recorded' }),
    ...open(state, data.callId, (approval) => ({ approvedBy: [...approval.approvedBy, data.by] })),
  };
}

export function afterChallengeFailed(state: TaskState, data: DecisionRecord): Change {
  return {
    ...remembered(state, data, { accepted: false, code: 'wrong_challenge' }),
    ...open(state, data.callId, (approval) => ({ wrongAnswers: approval.wrongAnswers + 1 })),
  };
}

export function afterDecisionHeld(state: TaskState, { decision }: EventData['decision_held']): Change {
  return {
    ...remembered(state, decision, { accepted: true, code: 'held' }),
    heldDecisions: [...state.heldDecisions, decision],
  };
}

export function afterApprovalDecided(
  state: TaskState,
  data: EventData['approval_decided'],
  at: number,
): Change {
  const { phase } = state;
  if (phase.kind !== 'awaiting_approval' || phase.approval.callId !== data.callId) return {};
  const closed = (as: ClosedApproval['as']): Change => ({
    ...remembered(state, data, { accepted: true, code: as }),
    decided: { callId: data.callId, as },
    humanWaitMs: state.humanWaitMs + Math.max(0, at - phase.approval.openedAt),
  });
  switch (data.decision) {
    case 'approved':
      return { ...closed('approved'), phase: ready(EXECUTE, at) };
    case 'rejected': {
      const why = data.reason === undefined ? '' : `: ${data.reason}`;
      const end = endedWith(state, 'approval_rejected', `Rejected by ${data.by}${why}`);
      return { ...closed('rejected'), phase: ready({ kind: 'close', end }, at) };
    }
    case 'edited': {
      const { plan, needsApproval } = data;
      return {
        ...closed(needsApproval ? 'edited_needs_approval' : 'edited'),
        plan,
        phase: ready(needsApproval ? PREVIEW : EXECUTE, at),
      };
    }
    default:
      return data satisfies never;
  }
}

export function afterApprovalExpiring(
  state: TaskState,
  { callId }: EventData['approval_expiring'],
  at: number,
): Change {
  const { phase } = state;
  if (phase.kind !== 'awaiting_approval' || phase.approval.callId !== callId) return {};
  const { expiresAt } = phase.approval;
  const message = `Nobody has decided yet; the approval expires at ${new Date(expiresAt).toISOString()}.`;
  return {
    ...due(state, { type: 'approval_expiring', message, callId, at }),
    ...open(state, callId, () => ({ warnedOf: expiresAt })),
  };
}

/** S4.4. `deny` ends the task; `halt` asks a person; the others keep the approval open for another term. */
export function afterApprovalExpired(
  state: TaskState,
  data: EventData['approval_expired'],
  at: number,
): Change {
  const { phase } = state;
  const rule = approvalOf(state.plan);
  if (phase.kind !== 'awaiting_approval' || phase.approval.callId !== data.callId || rule === null) return {};
  const closed = { humanWaitMs: state.humanWaitMs + Math.max(0, at - phase.approval.openedAt) };
  switch (data.outcome) {
    case 'deny': {
      const end = endedWith(state, 'approval_expired', 'Nobody decided in time; nothing was done.');
      return { ...closed, phase: ready({ kind: 'close', end }, at) };
    }
    case 'halt':
      return {
        ...closed,
        ...due(state, {
          type: 'approval_expired',
          message: 'Nobody decided in time; the task waits.',
          callId: data.callId,
          at,
        }),
        phase: attention('approval', null, at),
      };
    case 'remind':
      return {
        ...due(state, {
          type: 'approval_reminder',
          message: 'An approval still waits for a decision.',
          callId: data.callId,
          at,
        }),
        ...open(state, data.callId, () => ({ expiresAt: at + rule.expiresInMs })),
      };
    case 'escalate':
      return {
        ...due(state, {
          type: 'approval_expired',
          message: `Nobody decided in time; ${rule.escalateTo.join(', ')} may decide now.`,
          callId: data.callId,
          at,
        }),
        ...open(state, data.callId, (approval) => ({
          expiresAt: at + rule.expiresInMs,
          hasEscalated: true,
          roles: approval.roles.length === 0 ? [] : [...new Set([...approval.roles, ...rule.escalateTo])],
        })),
      };
    default:
      return data.outcome satisfies never;
  }
}

/** The first answer to a decisionId, for whoever sends it again (S4.3). */
export function remembered(
  state: TaskState,
  { decisionId }: { decisionId?: string },
  answer: Omit<DecisionReply, 'status'>,
): Change {
  if (decisionId === undefined || state.answers.some((known) => known.decisionId === decisionId)) return {};
  return { answers: [...state.answers, { decisionId, ...answer }].slice(-DECISIONS_REMEMBERED_MAX) };
}

function due(state: TaskState, alert: AlertDue): Change {
  return { alertsDue: [...state.alertsDue, alert] };
}

function open(
  state: TaskState,
  callId: string,
  change: (approval: OpenApproval) => Partial<OpenApproval>,
): { phase?: Phase } {
  const { phase } = state;
  if (phase.kind !== 'awaiting_approval' || phase.approval.callId !== callId) return {};
  return { phase: { ...phase, approval: { ...phase.approval, ...change(phase.approval) } } };
}
