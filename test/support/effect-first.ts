/**
 * The operation protocol in the wrong order, on purpose: the effect first, its intent after. Everything else is as good
 * as in `performOperation`: fenced claims, look-up, verification, one transaction for each write. It is here to measure
 * what the order alone costs (docs/crash-windows.md).
 */
import type { Action } from '../../src/contract/implement-action.ts';
import type { Ledger, OperationRow } from '../../src/ledger/ledger.ts';
import type { FaultPoint, FaultPoints } from '../../src/operation/faults.ts';
import type { AttemptRequest } from '../../src/task/activity-api.ts';
import { committedEnd } from '../../src/task/ends.ts';
import type { Json } from '../../src/task/json.ts';
import type { OperationOutcome } from '../../src/task/outcome.ts';

interface EffectFirstDeps {
  ledger: Ledger;
  actions: readonly Action[];
  faults: FaultPoints;
}

export async function performEffectFirst(
  { ledger, actions, faults }: EffectFirstDeps,
  request: AttemptRequest,
): Promise<OperationOutcome> {
  const { plan, taskId, attempt, input } = request;
  const { operationId } = plan;
  const reach = (point: FaultPoint) => faults({ point, about: 'effect', operationId, taskId, attempt });
  const handlers = actions.find(({ contract }) => contract.name === plan.action)?.handlers;
  const row = await ledger.find(operationId);
  if (!handlers || !row) throw new Error(`${plan.action} has no handlers or no row`);
  if (row.state === 'committed')
    return { kind: 'committed', result: row.result ?? stored(null), replayed: false };

  await reach('before_claim');
  const context = contextOf(request);
  // No intent on record: nothing was sent. That is the mistake.
  const sent = row.state === 'in_flight' ? undefined : await handlers.execute(input as never, context);
  if (sent !== undefined) await reach('after_effect');

  const answer = await ledger.claim({ ...claimOf(request), executing: true, notes: [] });
  if (answer.kind !== 'granted') throw new Error(`the claim is ${answer.kind}`);
  await reach('after_intent');

  const output = (sent ?? (await lookedUp(handlers, request, answer.before))) as Json;
  if (handlers.verify && output !== null) await handlers.verify(input as never, output, context);
  await reach('after_verify');
  const end = committedEnd({ plan, cancelRequested: false });
  await ledger.commit(answer.claim, stored(output), { verified: true, how: 'executed', end });
  await reach('after_commit');
  return { kind: 'committed', result: stored(output), replayed: false };
}

const stored = (value: Json) => ({ kind: 'inline', value }) as const;

function claimOf({ plan, taskId, ordinal, attempt }: AttemptRequest) {
  const { heartbeatMs, attemptMs } = plan.deadlines;
  return { operationId: plan.operationId, taskId, ordinal, attempt, claimMs: heartbeatMs, attemptMs };
}

function contextOf({ plan, taskId, ordinal, attempt }: AttemptRequest) {
  return {
    operationId: plan.operationId,
    taskId,
    principal: plan.principal,
    signal: AbortSignal.timeout(plan.deadlines.attemptMs),
    attempt,
    isFirstSend: true,
    fence: `${ordinal}.${attempt}.0`,
    lease: null,
    heartbeat: () => undefined,
    assertOwner: () => Promise.resolve(),
  };
}

/** The intent is on record, so the effect took place; its result is asked for where somebody can be asked. */
async function lookedUp(
  handlers: Action['handlers'],
  request: AttemptRequest,
  _before: OperationRow,
): Promise<Json> {
  const found = await handlers.lookup?.({ ...contextOf(request), input: request.input as never });
  return found?.kind === 'applied' ? found.result : null;
}
