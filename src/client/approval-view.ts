import { approvalOf, openApproval } from '../task/approval.ts';
import type { TaskState } from '../task/state.ts';
import type { ApprovalView } from './task-client.ts';

/** What is asked of people just now (S4.7); null when nothing is. */
export function approvalView(state: TaskState | null): ApprovalView | null {
  const open = state === null ? null : openApproval(state);
  const rule = approvalOf(state?.plan ?? null);
  if (open === null || rule === null) return null;
  const { callId, openedAt, expiresAt, fingerprint, view, roles, approvedBy } = open;
  const { quorum, requesterMayDecide, mayAnswerOverMcp, onExpiry, challenge } = rule;
  return {
    ...{ callId, openedAt, expiresAt, fingerprint, view, roles, approvedBy },
    ...{ quorum, requesterMayDecide, mayAnswerOverMcp, onExpiry, challenge },
  };
}
