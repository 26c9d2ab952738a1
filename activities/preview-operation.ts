/** What an approver is to see (S4.7): what will happen, not only what was asked. Reads; changes nothing. */
import { shownArguments } from '../src/contract/shown-arguments.ts';
import type { RowState } from '../src/ledger/ledger.ts';
import { askPrecondition } from '../src/operation/asking.ts';
import { Attempt } from '../src/operation/attempt.ts';
import type { AttemptRuntime, OperationDeps } from '../src/operation/deps.ts';
import type { PreviewRequest, PreviewResult } from '../src/task/activity-api.ts';

/** Any other state: an earlier run of the operation (its workflow was killed) sent something, and nobody is asked before that is settled. */
const NOTHING_SENT: readonly RowState[] = ['reserved', 'released', 'refused'];

/** The attempt it stands for: none yet. */
const NO_ATTEMPT = { ordinal: 0, attempt: 0, purpose: 'settle', inline: false, verifyFinal: false } as const;

export async function previewOperation(
  deps: OperationDeps,
  request: PreviewRequest,
  runtime: AttemptRuntime,
): Promise<PreviewResult> {
  const { plan, input, taskId, journal } = request;
  if (journal.length > 0) {
    const { operationId, principal } = plan;
    await deps.ledger.appendAudit({ taskId, operationId, tenant: principal.tenant, notes: journal });
  }
  const row = plan.recorded ? await deps.ledger.find(plan.operationId) : null;
  if (row !== null && !NOTHING_SENT.includes(row.state))
    return { kind: 'overtaken', rowAttempt: row.attempt };
  const attempt = new Attempt(deps, { ...NO_ATTEMPT, plan, input, taskId, journal: [] }, runtime);
  const found = plan.transactional
    ? await deps.ledger.transaction((_transitions, tx) => askPrecondition(attempt, [runtime.signal], tx))
    : await askPrecondition(attempt, [runtime.signal]);
  runtime.signal.throwIfAborted();
  return {
    kind: 'view',
    view: {
      ...shownArguments(input, plan.sensitive.input),
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
