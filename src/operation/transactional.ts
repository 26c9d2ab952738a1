/**
 * An action whose effect lives in the ledger's own database: claim, effect, executions and result commit in one
 * transaction, or none of them does (S2.8). What rolled it back is recorded in a second one.
 */
import { remoteTaskIn } from '../contract/handlers.ts';
import type { Claim } from '../task/claim.ts';
import type { ClaimAnswer } from '../ledger/ledger.ts';
import type { Failure } from '../task/failure.ts';
import type { OperationOutcome } from '../task/outcome.ts';
import { askPrecondition, askVerify, notChecked } from './asking.ts';
import { claimRequest, refusedClaim } from './claim.ts';
import { inTransaction, nothingApplied } from './in-transaction.ts';
import type { TransactionSite } from './in-transaction.ts';
import { composeOutput, keepPayload } from './keep-result.ts';
import { look, staleOutcome } from './look.ts';
import { commitEnd, failedWith, refusedEnd } from './record.ts';
import type { EffectAttempt } from './record.ts';
import type { ComposedResult } from './result.ts';

interface Performed {
  outcome: OperationOutcome;
  /** Put into the payload table afterwards: its row is referred to by hash, and the ledger writes one transaction at a time. */
  composed: ComposedResult | null;
}

export async function performInTransaction(attempt: EffectAttempt): Promise<OperationOutcome> {
  const transacted = await inTransaction(attempt, (site) => perform(attempt, site));
  if (transacted.kind === 'undone') return recordUndone(attempt, transacted.failure);
  const { outcome, composed } = transacted.value;
  if (composed === null) return outcome;
  await keepPayload(attempt, composed);
  await attempt.reach('after_commit');
  return outcome;
}

async function perform(attempt: EffectAttempt, site: TransactionSite): Promise<Performed> {
  const { plan, taskId, ordinal, attempt: number, journal } = attempt.request;
  const { operationId } = plan;
  const row = await site.transitions.find(operationId);
  const decided = row === null ? null : look(row, attempt.request);
  if (decided !== null) {
    await site.transitions.appendAudit({
      taskId,
      operationId,
      tenant: plan.principal.tenant,
      notes: journal,
    });
    return without(decided);
  }
  const found = await askPrecondition(attempt, site.signals, site.tx);
  if (found.kind === 'threw') return site.undo(notChecked(found.failure));
  if (found.kind === 'fails') {
    const { reason } = found;
    const { lease } = attempt.request;
    const request = { operationId, taskId, ordinal, attempt: number, lease, notes: journal };
    const written = await site.transitions.refuse(request, reason, refusedEnd(plan, reason));
    return without(
      written.kind === 'written' ? { kind: 'refused', reason } : staleOutcome(written, attempt.request),
    );
  }
  await attempt.reach('before_claim');
  const answer = await site.transitions.claim(claimRequest(attempt, true));
  if (answer.kind !== 'granted') return without(refusedClaim(attempt, answer));
  await attempt.reach('after_intent');
  return execute(attempt, site, answer.claim);
}

const without = (outcome: OperationOutcome): Performed => ({ outcome, composed: null });

async function execute(attempt: EffectAttempt, site: TransactionSite, claim: Claim): Promise<Performed> {
  const { handlers } = attempt.deps;
  const answer = await attempt.call('execute', site.signals, (signal) =>
    handlers.execute(
      attempt.input(),
      attempt.executeContext(signal, claim, () => Promise.resolve(), { isFirstSend: true, tx: site.tx }),
    ),
  );
  if (answer.kind !== 'returned') return site.undo(nothingApplied(answer.failure));
  if (remoteTaskIn(answer.value) !== null) return site.undo(UNWATCHED);
  await attempt.reach('after_effect');
  const { composed, misfit } = composeOutput(attempt, answer.value);
  if (misfit !== null) return site.undo(retryable(`The result does not fit the contract: ${misfit}`));
  const found = await askVerify(attempt, composed.value, site.signals, site.tx);
  if (found.kind === 'mismatch')
    return site.undo({ kind: 'permanent', code: 'verify_failed', message: found.reason });
  if (found.kind === 'not_yet') {
    return site.undo(
      retryable(`Not to be seen in its own transaction: ${found.reason ?? 'no reason given'}`),
    );
  }
  await attempt.reach('after_verify');
  const options = {
    verified: handlers.verify !== undefined,
    how: 'executed',
    end: commitEnd(attempt.plan),
  } as const;
  const written = await site.transitions.commit(claim, composed.stored, options);
  if (written.kind === 'stale')
    return site.undo(retryable('The claim did not last for its own transaction.'));
  return { outcome: { kind: 'committed', result: composed.answer, replayed: false }, composed };
}

/** What the row keeps of a transaction that was rolled back: a claim of its own, given back with the reason. */
function recordUndone(attempt: EffectAttempt, failure: Failure): Promise<OperationOutcome> {
  const isFinal = failure.kind === 'permanent';
  return attempt.deps.ledger.transaction(async (transitions) => {
    const answer: ClaimAnswer = await transitions.claim(claimRequest(attempt, isFinal));
    if (answer.kind !== 'granted') return refusedClaim(attempt, answer);
    if (isFinal) await transitions.fail(answer.claim, failure, ...failedWith(attempt, failure));
    else await transitions.release(answer.claim, failure);
    return { kind: isFinal ? 'failed' : 'released', failure };
  });
}

const UNWATCHED: Failure = {
  kind: 'permanent',
  code: 'permanent_failure',
  message:
    'A transactional action has its effect in the ledger’s database; no other server can go on with it.',
};

const retryable = (message: string): Failure => ({ kind: 'notApplied', code: 'attempt_failed', message });
