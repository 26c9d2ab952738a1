/** interfaces.md "Closing": a task that ends otherwise than by its commit raises the fence first, so that no attempt of it can claim after the end. */
import type { Ledger } from '../ledger/ledger.ts';
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
  const answer = await ledger.closeTask({ operationId, taskId, ordinal, attempt, end, notes: journal });
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
