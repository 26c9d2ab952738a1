/** An approver's new arguments, validated and planned for the same operation and requester (S4.2). */
import { asksForMore } from '../src/contract/approval-policy.ts';
import { decisionBudget } from '../src/contract/decision-budget.ts';
import { HoldfastError } from '../src/contract/error.ts';
import type { Action } from '../src/contract/implement-action.ts';
import { planOperation } from '../src/contract/plan-operation.ts';
import { shownArguments } from '../src/contract/shown-arguments.ts';
import type { PlanEditRequest, PlanEditResult } from '../src/task/activity-api.ts';
import { APPROVAL_ACTION, approvalOf } from '../src/task/approval.ts';

export function planEdit(
  action: Action,
  request: PlanEditRequest,
  hashKey: Uint8Array | undefined,
): PlanEditResult {
  const { plan, callId, by } = request;
  if (plan.action === APPROVAL_ACTION)
    return { kind: 'refused', message: 'A person is asked to agree, or not; there is nothing to edit.' };
  try {
    const planned = planOperation(action, {
      args: request.arguments,
      principal: plan.principal,
      key: plan.key,
      hashKey,
    });
    const { fingerprint, approval } = planned.plan;
    return {
      kind: 'planned',
      input: planned.input,
      needsApproval: asksForMore(approvalOf(plan), approval ?? null),
      shown: shownArguments(planned.input, planned.plan.sensitive.input),
      // The row keeps the request's fingerprint for conflicts; the executed one goes beside it.
      plan: {
        ...planned.plan,
        keyed: plan.keyed,
        autoRetry: plan.autoRetry,
        inline: false,
        recorded: plan.recorded,
        ...(plan.stepOf != null && { stepOf: plan.stepOf }),
        ...(plan.decision != null && { decision: decisionBudget(action.contract, planned.input) }),
        fingerprint: plan.fingerprint,
        edited: { by: by.subject, callId, fingerprint },
      },
    };
  } catch (error) {
    if (error instanceof HoldfastError) return { kind: 'refused', message: error.message };
    throw error;
  }
}
