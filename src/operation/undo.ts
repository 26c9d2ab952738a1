/** One call of the rollback handler, and the proof that it worked (S6.2). */
import { setTimeout as sleep } from 'node:timers/promises';
import type { VerifyAnswer } from '../contract/handlers.ts';
import { LIMITS } from '../contract/limits.ts';
import { keptText } from '../contract/text.ts';
import type { RollbackRequest } from '../task/activity-api.ts';
import type { Claim } from '../task/claim.ts';
import type { Failure } from '../task/failure.ts';
import type { Json } from '../task/json.ts';
import { askLookup, fieldsOf, verifyFound } from './asking.ts';
import type { VerifyFound } from './asking.ts';
import type { Attempt } from './attempt.ts';
import { verifyWindowMs } from './budget.ts';
import { failedJson } from './record.ts';

export type RollbackAttempt = Attempt<RollbackRequest>;

export type Undoing =
  | { kind: 'undone'; remains?: string }
  | { kind: 'failed'; failure: Failure }
  /** The claim was taken over; `late` is what came of it, null when nothing was sent. */
  | { kind: 'overtaken'; late: Json };

/** Under what the handler runs: a held claim, or an open transaction. */
export interface UndoSite {
  claim: Claim;
  /** End the handler's call. */
  stops: readonly AbortSignal[];
  /** End the looking back. */
  looks: readonly AbortSignal[];
  isOursStill(): Promise<boolean>;
  isLost(): boolean;
  assertOwner(): Promise<void>;
  tx?: unknown;
}

const POLL_INITIAL_MS = 50;

export async function undo(attempt: RollbackAttempt, site: UndoSite, result: Json): Promise<Undoing> {
  if (!(await site.isOursStill())) return { kind: 'overtaken', late: null };
  const answer = await call(attempt, site, result);
  if (site.isLost()) {
    return {
      kind: 'overtaken',
      late: answer.kind === 'returned' ? { kind: 'undone' } : failedJson(answer.failure),
    };
  }
  if (answer.kind !== 'returned') return { kind: 'failed', failure: answer.failure };
  await attempt.reach('after_effect');
  const remains = remainsIn(attempt, answer.value);
  const found = await seen(attempt, site, result);
  switch (found.kind) {
    case 'verified':
      return { kind: 'undone', ...(remains !== undefined && { remains }) };
    case 'mismatch':
      return failed(`The rollback is not as promised when read back: ${found.reason}`);
    case 'not_yet':
      return failed(`The rollback can not be seen yet: ${found.reason ?? 'no reason given'}`);
    default:
      return found satisfies never;
  }
}

/** It may be called again: the handler is idempotent by its operation id. */
const failed = (message: string): Undoing => ({
  kind: 'failed',
  failure: { kind: 'unknown', code: 'rollback_failed', message },
});

function call(attempt: RollbackAttempt, site: UndoSite, result: Json) {
  const { rollback } = attempt.deps.handlers;
  const originalOperationId = attempt.plan.operationId;
  attempt.hasSent = true;
  return attempt.call('rollback', site.stops, async (signal) =>
    rollback?.(attempt.input(), structuredClone(result) as never, {
      ...attempt.executeContext(signal, site.claim, () => site.assertOwner(), {
        isFirstSend: false,
        tx: site.tx,
      }),
      originalOperationId,
    }),
  );
}

function remainsIn(attempt: RollbackAttempt, value: unknown): string | undefined {
  const { remains } = fieldsOf(value);
  if (typeof remains !== 'string') return undefined;
  return keptText(attempt.secrets.clean(remains), LIMITS.failureMessageLengthMax.value);
}

/** Looks until the undoing is seen, or the in-attempt window is over; within a transaction once. */
async function seen(attempt: RollbackAttempt, site: UndoSite, result: Json): Promise<VerifyFound> {
  const endsAt = performance.now() + verifyWindowMs(attempt.plan);
  const isOver = (pauseMs: number) =>
    site.isLost() || site.tx !== undefined || performance.now() + pauseMs >= endsAt;
  for (let pauseMs = POLL_INITIAL_MS; ; pauseMs *= 2) {
    const found = await proof(attempt, site, result);
    if (found.kind !== 'not_yet' || isOver(pauseMs)) return found;
    await sleep(pauseMs);
  }
}

/** `verifyRollback`, or a lookup that no longer finds the effect. A contract that undoes has one of the two. */
async function proof(attempt: RollbackAttempt, site: UndoSite, result: Json): Promise<VerifyFound> {
  const { verifyRollback } = attempt.deps.handlers;
  if (verifyRollback === undefined) return proofByLookup(attempt, site);
  const originalOperationId = attempt.plan.operationId;
  const answer = await attempt.call<VerifyAnswer>('verifyRollback', site.looks, (signal) =>
    verifyRollback(attempt.input(), structuredClone(result), {
      ...attempt.lookContext(signal, site.tx),
      originalOperationId,
    }),
  );
  return verifyFound(attempt, answer.kind === 'returned' ? answer.value : answer.failure);
}

async function proofByLookup(attempt: RollbackAttempt, site: UndoSite): Promise<VerifyFound> {
  const found = await askLookup(attempt, site.looks, site.tx);
  switch (found.kind) {
    case 'not_applied':
      return { kind: 'verified' };
    case 'applied':
      return { kind: 'not_yet', reason: 'the target still shows the effect' };
    case 'unknown':
      return { kind: 'not_yet', reason: 'the target can’t tell' };
    case 'threw':
      return { kind: 'not_yet', reason: found.failure.message };
    case 'none':
      return {
        kind: 'not_yet',
        reason: 'nothing can prove it: the action has neither verifyRollback nor lookup',
      };
    default:
      return found satisfies never;
  }
}
