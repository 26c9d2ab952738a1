/**
 * Taking over an operation that an earlier attempt claimed: find out first, then act (S2.4).
 *
 * Invariants:
 * 1. Nothing is looked up before the claim is ours: an earlier attempt that has not sent yet is refused from then on.
 * 2. A row that is `applied` is never executed again, whatever a lookup says: its handler returned.
 * 3. Purpose `settle` executes nothing.
 */
import { LIMITS } from '../contract/limits.ts';
import { cut } from '../contract/text.ts';
import type { OperationRow } from '../ledger/ledger.ts';
import type { Failure } from '../task/failure.ts';
import type { OperationOutcome } from '../task/outcome.ts';
import { askLookup, askPrecondition, notChecked } from './asking.ts';
import type { LookupFound } from './asking.ts';
import { claimMsOf } from './attempt.ts';
import { claim } from './claim.ts';
import { adoptLookedUp, conclude } from './conclude.ts';
import { execute } from './execute.ts';
import { isRecallable, keepOutput, recallValue, recalled } from './keep-result.ts';
import type { HeldClaim } from './held-claim.ts';
import { decisionLimit, paced } from './decision-limit.ts';
import { staleOutcome } from './look.ts';
import { askRemote } from './remote-end.ts';
import type { RemoteFound } from './remote-end.ts';
import type { RefusalCause } from './look.ts';
import { doubtAbout, settling } from './doubt.ts';
import type { OpenDoubt } from './doubt.ts';
import { isProvenNotApplied, judge, judgeToSettle } from './reconcile.ts';
import { raiseAttention, refuse, release } from './record.ts';
import type { EffectAttempt } from './record.ts';
import type { Result } from './result.ts';

const nothing = (what: string): Failure => ({
  kind: 'notApplied',
  code: 'attempt_failed',
  message: `Nothing was ${what}.`,
});

export async function takeOver(attempt: EffectAttempt): Promise<OperationOutcome> {
  const answer = await claim(attempt, false);
  if (answer.kind !== 'granted') return answer.outcome;
  return reconcileHeld(attempt, answer.held, answer.before);
}

/** `before`: the row as the claim found it. Lets the claim go at the end. */
export async function reconcileHeld(
  attempt: EffectAttempt,
  held: HeldClaim,
  before: OperationRow,
): Promise<OperationOutcome> {
  try {
    if (before.state === 'applied') return await concludeStored(attempt, held, before);
    if (before.state === 'in_flight') return await reconcile(attempt, held, before);
    return await goOn(attempt, held, before, null);
  } finally {
    held.letGo();
  }
}

/** S2.6: applied earlier. Verify is given the whole result: the row's own, or where that is redacted or gone the target's. */
async function concludeStored(
  attempt: EffectAttempt,
  held: HeldClaim,
  before: OperationRow,
): Promise<OperationOutcome> {
  const result = await wholeResult(attempt, held, before);
  return conclude(attempt, held, { result, how: 'looked_up', isStored: true });
}

async function wholeResult(attempt: EffectAttempt, held: HeldClaim, row: OperationRow): Promise<Result> {
  if (!isRecallable(attempt, row)) {
    const found = await askLookup(attempt, [held.lost]);
    const kept = found.kind === 'applied' ? await keepOutput(attempt, found.output) : null;
    if (kept !== null && kept.misfit === null) return kept.result;
  }
  return recalled(row.result, await recallValue(attempt, row.result));
}

async function reconcile(
  attempt: EffectAttempt,
  held: HeldClaim,
  before: OperationRow,
): Promise<OperationOutcome> {
  const remote = await askRemote(attempt, held);
  if (remote.kind === 'decided') return remote.outcome;
  const found = await askLookup(attempt, [attempt.runtime.signal, held.lost]);
  if (found.kind === 'applied') return adoptLookedUp(attempt, held, found.output);
  attempt.runtime.signal.throwIfAborted(); // a lookup that was cut off says nothing
  if (remote.kind === 'ended' && remote.mayLive && attempt.plan.effect !== 'safe')
    return raiseAttention(attempt, held.claim, doubtFailure(found, remote));
  const doubt = await doubtAbout(attempt, before, found.kind);
  const verdict = judge(doubt);
  switch (verdict) {
    case 'execute':
      return goOn(attempt, held, before, doubt);
    case 'release':
      return release(attempt, held.claim, nothing('applied'));
    case 'wait':
      return settling(doubt);
    case 'lookAgain':
      return { kind: 'unknown', failure: doubtFailure(found, remote), attention: false };
    case 'attention':
      return raiseAttention(attempt, held.claim, doubtFailure(found, remote));
    case 'adopt':
      throw new Error('an applied effect was adopted before');
    default:
      return verdict satisfies never;
  }
}

function doubtFailure(found: LookupFound, remote: RemoteFound): Failure {
  const why = {
    applied: '',
    not_applied: 'the target does not show it, which proves nothing for this action',
    unknown: 'the target can’t tell',
    none: 'this action has no lookup',
    threw: `the lookup failed: ${found.kind === 'threw' ? found.failure.message : ''}`,
  }[found.kind];
  const told = remote.kind === 'ended' ? `; ${remote.message}` : '';
  const message = `An earlier attempt may have been applied, and ${why}${told}`;
  return {
    kind: 'unknown',
    code: 'outcome_unknown',
    message: cut(message, LIMITS.failureMessageLengthMax.value),
  };
}

/** To the execution, or with purpose `settle` to the record that nothing was sent. `doubt` null: nothing ever was. */
async function goOn(
  attempt: EffectAttempt,
  held: HeldClaim,
  before: OperationRow,
  doubt: OpenDoubt | null,
): Promise<OperationOutcome> {
  if (attempt.request.purpose === 'settle') return release(attempt, held.claim, nothing('sent'));
  const isProven = doubt === null || isProvenNotApplied(doubt);
  const limit = await decisionLimit(attempt, before);
  if (limit.kind === 'paced') return paced(limit.waitMs);
  if (limit.kind === 'spent')
    return onRefused(attempt, held, { ...limit, cause: 'decision_budget_spent' }, doubt);
  const found = await askPrecondition(attempt, [attempt.runtime.signal, held.lost]);
  switch (found.kind) {
    case 'holds':
      break;
    case 'fails':
      return onRefused(attempt, held, { ...found, cause: 'precondition_failed' }, doubt);
    case 'threw':
      attempt.runtime.signal.throwIfAborted();
      if (isProven) return release(attempt, held.claim, notChecked(found.failure));
      return { kind: 'unknown', failure: { ...found.failure, kind: 'unknown' }, attention: false };
    default:
      return found satisfies never;
  }
  attempt.runtime.signal.throwIfAborted();
  await attempt.reach('before_claim');
  const { attemptMs } = attempt.plan.deadlines;
  const claimMs = claimMsOf(attempt.plan, attempt.request.inline);
  const written = await attempt.deps.ledger.intend(held.claim, { claimMs, attemptMs });
  if (written.kind === 'stale') return staleOutcome(written, attempt.request);
  return execute(attempt, held, isProven ? 'nothing_sent' : 'in_doubt');
}

/**
 * S2.2: `refused` needs no claim of anyone's, or one just reconciled as not applied. It says that nothing is applied and
 * frees the key, so what may still land is waited for, and what can't be told goes to a person: perhaps the precondition
 * no longer holds because the earlier attempt was applied.
 */
async function onRefused(
  attempt: EffectAttempt,
  held: HeldClaim,
  { reason, cause }: { reason: string; cause: RefusalCause },
  doubt: OpenDoubt | null,
): Promise<OperationOutcome> {
  const verdict = doubt === null ? 'release' : judgeToSettle(doubt);
  if (verdict === 'release') return refuse(attempt, held.claim, reason, cause);
  if (verdict === 'wait' && doubt !== null) return settling(doubt);
  const why =
    cause === 'precondition_failed' ? 'the precondition does not hold now' : 'it may not be asked again';
  const message = `An earlier attempt may have been applied, and ${why}: ${reason}`;
  const failure: Failure = { kind: 'unknown', code: 'outcome_unknown', message };
  if (verdict === 'lookAgain') return { kind: 'unknown', failure, attention: false };
  return raiseAttention(attempt, held.claim, failure);
}
