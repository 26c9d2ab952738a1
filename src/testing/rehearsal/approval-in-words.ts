import type { PlanApproval } from '../../task/plan.ts';

/** Whom policy asks, and what follows where nobody answers. */
export function approvalInWords(approval: PlanApproval | null): string {
  if (approval === null) return 'nobody';
  const { quorum, roles, onExpiry, challenge } = approval;
  const who = roles.length === 0 ? 'anybody but the requester' : roles.join(' or ');
  const how = challenge === null ? '' : ', typing back a phrase';
  return `${quorum} of ${who}${how}; when nobody decides in time: ${onExpiry}`;
}
