/**
 * The people whom policy asks (S4): they say yes wherever a scenario is not about what they say. Each is somebody else
 * than the requester and than the others, holds every role that the rule names, and types back the phrase it shows.
 */
import type { ApprovalView, DecisionInput } from '../../client/task-client.ts';
import type { PlanApproval, Principal } from '../../task/plan.ts';

/** The n-th approver, from 1. */
export function approver(
  { tenant }: Pick<Principal, 'tenant'>,
  rule: PlanApproval,
  number: number,
): Principal {
  const roles = [...new Set([...rule.roles, ...rule.escalateTo])];
  return { tenant, subject: `rehearsal-approver-${number}`, roles };
}

/** What an approver says who has read it. */
export function yesTo({ callId, fingerprint, challenge }: ApprovalView): DecisionInput {
  return { kind: 'approve', callId, fingerprint, ...(challenge !== null && { challengeAnswer: challenge }) };
}
