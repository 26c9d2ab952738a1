/** interfaces.md "Closing": a task that ends otherwise than by its commit raises the fence first, so that no attempt of it can claim after the end. */
import type { Alert, Ledger } from '../ledger/ledger.ts';
import type { CloseRequest } from '../task/activity-api.ts';
import type { CloseOutcome } from '../task/outcome.ts';
import { NO_RESULT } from './result.ts';

export async function closeOperation(
  { ledger }: { ledger: Pick<Ledger, 'closeTask' | 'recordEnd'> },
  request: CloseRequest,
): Promise<CloseOutcome> {
  const { plan, taskId, ordinal, attempt, end, journal } = request;
  if (!plan.recorded) return { kind: 'closed' };
  const { operationId } = plan;
  const alert = expiryAlert(request);
  const answer = await ledger.closeTask({
    ...{ operationId, taskId, ordinal, attempt, end, notes: journal },
    ...(alert && { alert }),
  });
  switch (answer.kind) {
    case 'closed':
    case 'superseded':
      return { kind: answer.kind };
    case 'inFlight':
      return { kind: 'inFlight', rowAttempt: answer.row.attempt };
    case 'committed':
      if (end.cause !== 'committed') return { kind: 'committed', result: answer.row.result ?? NO_RESULT };
      // Committed under `onCancel: rollback`, and no cancel came: only the end itself is missing.
      await ledger.recordEnd(taskId, end);
      return { kind: 'closed' };
    default:
      return answer satisfies never;
  }
}

/** S4.4, S6.5: nobody decided and that ends the task. After a `halt` a person ended it, who need not be told. */
function expiryAlert({ plan, taskId, end }: CloseRequest): Alert | null {
  if (end.cause !== 'approval_expired' || plan.approval?.onExpiry === 'halt') return null;
  const { operationId, action, principal } = plan;
  const message = end.error?.message ?? 'Nobody decided in time; nothing was done.';
  return {
    type: 'approval_expired',
    taskId,
    operationId,
    tenant: principal.tenant,
    action,
    message,
    data: {},
  };
}
