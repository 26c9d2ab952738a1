import { approvalOf, openApproval } from '../task/approval.ts';
import type { OpenApproval } from '../task/approval.ts';
import type { PlanApproval } from '../task/plan.ts';
import type { TaskState } from '../task/state.ts';
import type { ApprovalView } from './task-client.ts';

/** What is asked of people just now (S4.7), the first of it; null when nothing is. */
export function approvalView(state: TaskState | null): ApprovalView | null {
  const open = state === null ? null : openApproval(state);
  const rule = approvalOf(state?.plan ?? null);
  // The plan is that of the step which asks, where a procedure shows one.
  return open === null || rule === null ? null : viewOf(open, rule, state?.plan?.action ?? '');
}

/** What else a procedure asks at the same time. */
export const otherApprovalViews = (state: TaskState): ApprovalView[] =>
  (state.otherApprovals ?? []).map(({ approval, rule, action }) =>
    viewOf(approval, rule, action ?? state.action),
  );

function viewOf(open: OpenApproval, rule: PlanApproval, action: string): ApprovalView {
  const { callId, openedAt, expiresAt, fingerprint, view, roles, approvedBy } = open;
  const { quorum, requesterMayDecide, mayAnswerOverMcp, onExpiry, challenge } = rule;
  return {
    ...{ callId, action, openedAt, expiresAt, fingerprint, view, roles, approvedBy },
    ...{ quorum, requesterMayDecide, mayAnswerOverMcp, onExpiry, challenge },
  };
}
