/**
 * Undoing one effect (S6): an operation of its own, with its own key, intent and row, retried and verified.
 *
 * Guarantees: the rollback handler runs only under a durable intent; the effect counts as undone only once that was seen;
 * what can't be undone is told to a person (S6.5). The handler must be idempotent by its operation id, which is the same
 * in every attempt. Throws as performOperation does.
 */
import { rollbackOperationId } from '../contract/ids.ts';
import type { OperationRow, Written } from '../ledger/ledger.ts';
import type { RollbackRequest } from '../task/activity-api.ts';
import type { Failure } from '../task/failure.ts';
import type { RollbackOutcome } from '../task/outcome.ts';
import { Attempt, assertLease } from './attempt.ts';
import type { AttemptRuntime, OperationDeps } from './deps.ts';
import type { HeldClaim } from './held-claim.ts';
import { newerFence } from './newer-fence.ts';
import { persist } from './persist.ts';
import { alertOf, failedJson, recordLate } from './record.ts';
import {
  cannotUndo,
  claimRollback,
  endOfRollback,
  isUndoneAlready,
  resultToUndo,
  staleRollback,
} from './rollback-claim.ts';
import { rollbackInTransaction } from './rollback-in-transaction.ts';
import { undo } from './undo.ts';
import type { RollbackAttempt, UndoSite } from './undo.ts';

export async function rollbackOperation(
  deps: OperationDeps,
  request: RollbackRequest,
  runtime: AttemptRuntime,
): Promise<RollbackOutcome> {
  const attempt: RollbackAttempt = new Attempt(
    deps,
    request,
    runtime,
    rollbackOperationId(request.plan.operationId),
  );
  assertLease(request);
  runtime.signal.throwIfAborted();
  if (request.plan.transactional) return rollbackInTransaction(attempt);
  await attempt.reach('before_claim');
  const claimed = await claimRollback(attempt, deps.ledger);
  if (claimed.kind !== 'granted') return claimed.outcome;
  const held = attempt.hold(claimed.claim, false);
  try {
    await attempt.reach('after_intent');
    return await carryOut(attempt, held, claimed.parent);
  } finally {
    held.letGo();
  }
}

async function carryOut(
  attempt: RollbackAttempt,
  held: HeldClaim,
  parent: OperationRow,
): Promise<RollbackOutcome> {
  const failure = cannotUndo(attempt);
  if (failure !== null) return giveUp(attempt, held, failure);
  if (await isUndoneAlready(attempt, [held.lost], parent)) return finish(attempt, held, undefined);
  const result = await resultToUndo(attempt, [held.lost], parent);
  const answer = await undo(attempt, siteOf(attempt, held), result);
  switch (answer.kind) {
    case 'undone':
      return finish(attempt, held, answer.remains);
    case 'failed':
      return onFailure(attempt, held, answer.failure);
    case 'overtaken': {
      if (answer.late !== null) await recordLate(attempt, held.claim, answer.late);
      const row = await attempt.deps.ledger.find(held.claim.operationId);
      const leaseFence = await newerFence(attempt, held.claim);
      return staleRollback(row?.attempt ?? attempt.request.attempt, leaseFence);
    }
    default:
      return answer satisfies never;
  }
}

function siteOf(attempt: RollbackAttempt, held: HeldClaim): UndoSite {
  return {
    claim: held.claim,
    stops: [attempt.runtime.signal, held.lost],
    looks: [held.lost],
    isOursStill: () => held.isOursStill(),
    isLost: () => held.isLost,
    assertOwner: held.assertOwner,
  };
}

async function finish(
  attempt: RollbackAttempt,
  held: HeldClaim,
  remains: string | undefined,
): Promise<RollbackOutcome> {
  await attempt.reach('after_verify');
  const end = endOfRollback(attempt, remains);
  const parentId = attempt.plan.operationId;
  const written = await persist(() =>
    attempt.deps.ledger.finishRollback(held.claim, parentId, remains ?? null, end),
  );
  if (written.kind === 'stale') {
    await recordLate(attempt, held.claim, { kind: 'undone', remains: remains ?? null });
    return staleRollback(written.row.attempt, written.leaseFence);
  }
  await attempt.reach('after_commit');
  return { kind: 'rolledBack', ...(remains !== undefined && { remains }) };
}

/** S6.2: retried, until the request says that this was the last try; a refusal for good is the last one at once. */
async function onFailure(
  attempt: RollbackAttempt,
  held: HeldClaim,
  failure: Failure,
): Promise<RollbackOutcome> {
  if (attempt.request.final || failure.kind === 'permanent') return giveUp(attempt, held, failure);
  const written = await persist(() => attempt.deps.ledger.releaseRollback(held.claim, failure));
  if (written.kind === 'stale') return late(attempt, held, written, failure);
  return { kind: 'retry', failure };
}

async function giveUp(attempt: RollbackAttempt, held: HeldClaim, failure: Failure): Promise<RollbackOutcome> {
  const alert = alertOf(attempt, 'rollback_failed', `The effect could not be undone: ${failure.message}`);
  const written = await persist(() =>
    attempt.deps.ledger.rollbackAttention(held.claim, attempt.plan.operationId, failure, alert),
  );
  if (written.kind === 'stale') return late(attempt, held, written, failure);
  return { kind: 'attention', failure };
}

async function late(
  attempt: RollbackAttempt,
  held: HeldClaim,
  { row, leaseFence }: Extract<Written, { kind: 'stale' }>,
  failure: Failure,
): Promise<RollbackOutcome> {
  if (attempt.hasSent) await recordLate(attempt, held.claim, failedJson(failure));
  return staleRollback(row.attempt, leaseFence);
}
