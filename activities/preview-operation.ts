/** What an approver is to see (S4.7): what will happen, not only what was asked. Reads; changes nothing. */
import { redact } from '../src/contract/redact.ts';
import { askPrecondition } from '../src/operation/asking.ts';
import { Attempt } from '../src/operation/attempt.ts';
import type { AttemptRuntime, OperationDeps } from '../src/operation/deps.ts';
import type { PreviewRequest } from '../src/task/activity-api.ts';
import type { JsonObject } from '../src/task/json.ts';

/** The attempt it stands for: none yet. */
const NO_ATTEMPT = { ordinal: 0, attempt: 0, purpose: 'settle', inline: false, verifyFinal: false } as const;

export async function previewOperation(
  deps: OperationDeps,
  request: PreviewRequest,
  runtime: AttemptRuntime,
): Promise<{ view: JsonObject }> {
  const { plan, input, taskId, journal } = request;
  if (journal.length > 0) {
    const { operationId, principal } = plan;
    await deps.ledger.appendAudit({ taskId, operationId, tenant: principal.tenant, notes: journal });
  }
  const attempt = new Attempt(deps, { ...NO_ATTEMPT, plan, input, taskId, journal: [] }, runtime);
  const found = plan.transactional
    ? await deps.ledger.transaction((_transitions, tx) => askPrecondition(attempt, [runtime.signal], tx))
    : await askPrecondition(attempt, [runtime.signal]);
  return {
    view: {
      arguments: redact(input, plan.sensitive.input),
      requester: plan.principal.subject,
      effect: plan.effect,
      precondition: {
        readAt: await deps.ledger.now(),
        ...(found.kind === 'fails'
          ? { kind: 'fails', reason: found.reason }
          : { kind: found.kind === 'holds' ? 'holds' : 'unreadable' }),
      },
      rollback: { ...plan.rollback },
      onCancel: plan.onCancel,
      ...(plan.approval?.challenge != null && { challenge: plan.approval.challenge }),
    },
  };
}
