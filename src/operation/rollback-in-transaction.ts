/** The rollback of a transactional action: undone, seen and recorded in one transaction, or not at all (S2.8, S6.2). */
import type { Failure } from '../task/failure.ts';
import type { Json } from '../task/json.ts';
import type { RollbackOutcome } from '../task/outcome.ts';
import { inTransaction, nothingApplied } from './in-transaction.ts';
import type { TransactionSite } from './in-transaction.ts';
import { alertOf } from './record.ts';
import { cannotUndo, claimRollback, endOfRollback, resultToUndo } from './rollback-claim.ts';
import { undo } from './undo.ts';
import type { RollbackAttempt } from './undo.ts';

export async function rollbackInTransaction(attempt: RollbackAttempt): Promise<RollbackOutcome> {
  const parent = await attempt.deps.ledger.find(attempt.plan.operationId);
  if (parent === null) throw new Error(`the row of ${attempt.plan.operationId} is gone`);
  const failure = cannotUndo(attempt);
  if (failure !== null) return recordFailure(attempt, failure);
  const result = await resultToUndo(attempt, [attempt.runtime.signal], parent);
  const transacted = await inTransaction(attempt, (site) => carryOut(attempt, site, result));
  if (transacted.kind === 'undone') return recordFailure(attempt, transacted.failure);
  if (transacted.value.kind === 'rolledBack') await attempt.reach('after_commit');
  return transacted.value;
}

async function carryOut(
  attempt: RollbackAttempt,
  site: TransactionSite,
  result: Json,
): Promise<RollbackOutcome> {
  await attempt.reach('before_claim');
  const claimed = await claimRollback(attempt, site.transitions);
  if (claimed.kind !== 'granted') return claimed.outcome;
  const { claim } = claimed;
  await attempt.reach('after_intent');
  const undone = await undo(
    attempt,
    {
      claim,
      stops: site.signals,
      looks: site.signals,
      isOursStill: () => Promise.resolve(true),
      isLost: () => false,
      assertOwner: () => Promise.resolve(),
      tx: site.tx,
    },
    result,
  );
  if (undone.kind === 'overtaken')
    throw new Error('a claim can not be taken over within its own transaction');
  if (undone.kind === 'failed') return site.undo(nothingApplied(undone.failure));
  await attempt.reach('after_verify');
  const { remains } = undone;
  await site.transitions.finishRollback(
    claim,
    attempt.plan.operationId,
    remains ?? null,
    endOfRollback(attempt, remains),
  );
  return { kind: 'rolledBack', ...(remains !== undefined && { remains }) };
}

/** A claim of its own, given back with the reason, or handed to a person when no retry follows. */
function recordFailure(attempt: RollbackAttempt, failure: Failure): Promise<RollbackOutcome> {
  const parentId = attempt.plan.operationId;
  return attempt.deps.ledger.transaction(async (transitions) => {
    const claimed = await claimRollback(attempt, transitions);
    if (claimed.kind !== 'granted') return claimed.outcome;
    if (!attempt.request.final && failure.kind !== 'permanent') {
      await transitions.releaseRollback(claimed.claim, failure);
      return { kind: 'retry', failure };
    }
    const alert = alertOf(attempt, 'rollback_failed', `The effect could not be undone: ${failure.message}`);
    await transitions.rollbackAttention(claimed.claim, parentId, failure, alert);
    return { kind: 'attention', failure };
  });
}
