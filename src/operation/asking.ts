/** Asking a target about an operation: precondition, lookup, verify. None of these changes anything. */
import { LIMITS } from '../contract/limits.ts';
import { keptText } from '../contract/text.ts';
import type { Failure } from '../task/failure.ts';
import type { Json } from '../task/json.ts';
import type { Attempt } from './attempt.ts';
import type { LookupKind } from './reconcile.ts';

export type LookupFound =
  | { kind: 'applied'; output: unknown }
  | { kind: 'not_applied' }
  | { kind: 'unknown' }
  | { kind: 'none' }
  | { kind: 'threw'; failure: Failure };

export type PreconditionFound =
  { kind: 'holds' } | { kind: 'fails'; reason: string } | { kind: 'threw'; failure: Failure };
export type VerifyFound =
  { kind: 'verified' } | { kind: 'mismatch'; reason: string } | { kind: 'not_yet'; reason?: string };

/** S2.2. A precondition that throws was not checked: nothing is known and nothing is sent. */
export async function askPrecondition(
  attempt: Attempt,
  signals: readonly AbortSignal[],
  tx?: unknown,
): Promise<PreconditionFound> {
  const { precondition } = attempt.deps.handlers;
  if (precondition === undefined) {
    return attempt.plan.handlers.precondition
      ? { kind: 'threw', failure: gone('precondition') }
      : { kind: 'holds' };
  }
  const answer = await attempt.call<unknown>('precondition', signals, (signal) =>
    precondition(attempt.input(), attempt.lookContext(signal, tx)),
  );
  if (answer.kind !== 'returned')
    return refusedForGood(answer.failure) ?? { kind: 'threw', failure: answer.failure };
  const { kind, reason } = fieldsOf(answer.value);
  if (kind === 'holds') return { kind };
  if (kind === 'fails') return { kind, reason: reasonOf(attempt, reason) };
  return { kind: 'threw', failure: malformed('precondition') };
}

const refusedForGood = (failure: Failure): PreconditionFound | null =>
  failure.kind === 'permanent' ? { kind: 'fails', reason: failure.message } : null;

/** A precondition that threw: nothing was sent because of it. */
export const notChecked = (failure: Failure): Failure =>
  failure.kind === 'rateLimited' ? failure : { ...failure, kind: 'notApplied', code: 'attempt_failed' };

/** As the plan froze it, unless the handler has gone since. */
export function lookupKindOf(attempt: Attempt): LookupKind {
  if (attempt.deps.handlers.lookup === undefined) return 'none';
  return attempt.plan.handlers.lookup === 'conclusive' ? 'conclusive' : 'plain';
}

/** S2.4: was the effect of this plan's operation applied? */
export async function askLookup(
  attempt: Attempt,
  signals: readonly AbortSignal[],
  tx?: unknown,
): Promise<LookupFound> {
  const { lookup } = attempt.deps.handlers;
  if (lookup === undefined) return { kind: 'none' };
  const { operationId } = attempt.plan;
  const answer = await attempt.call('lookup', signals, (signal) =>
    lookup({ ...attempt.lookContext(signal, tx), operationId, input: attempt.input() }),
  );
  if (answer.kind !== 'returned') return { kind: 'threw', failure: answer.failure };
  const { kind, result } = fieldsOf(answer.value);
  switch (kind) {
    case 'applied':
      return { kind, output: result };
    case 'not_applied':
    case 'unknown':
      return { kind };
    default:
      return { kind: 'threw', failure: malformed('lookup') };
  }
}

/** S2.6. A verify that throws, or answers nothing it should, has not seen the effect yet. */
export async function askVerify(
  attempt: Attempt,
  result: Json,
  signals: readonly AbortSignal[],
  tx?: unknown,
): Promise<VerifyFound> {
  const { verify } = attempt.deps.handlers;
  if (verify === undefined) {
    return attempt.plan.handlers.verify ? verifyFound(attempt, gone('verify')) : { kind: 'verified' };
  }
  const copy = structuredClone(result) as never;
  const answer = await attempt.call('verify', signals, (signal) =>
    verify(attempt.input(), copy, attempt.lookContext(signal, tx)),
  );
  return verifyFound(attempt, answer.kind === 'returned' ? answer.value : answer.failure);
}

export function verifyFound(attempt: Attempt, answer: unknown): VerifyFound {
  const { kind, reason, message } = fieldsOf(answer);
  if (kind === 'verified') return { kind };
  if (kind === 'mismatch') return { kind, reason: reasonOf(attempt, reason) };
  const why = reason ?? message;
  return why === undefined ? { kind: 'not_yet' } : { kind: 'not_yet', reason: reasonOf(attempt, why) };
}

/** What a handler answered, of whatever shape; one that throws on being read has answered nothing. */
export function fieldsOf(answer: unknown): Partial<Record<(typeof FIELDS)[number], unknown>> {
  try {
    return Object.fromEntries(FIELDS.map((field) => [field, (answer as Record<string, unknown>)[field]]));
  } catch {
    return {};
  }
}

const FIELDS = ['kind', 'reason', 'message', 'result', 'remains'] as const;

function reasonOf(attempt: Attempt, reason: unknown): string {
  const text = typeof reason === 'string' && reason !== '' ? reason : 'no reason given';
  return keptText(attempt.secrets.clean(text), LIMITS.failureMessageLengthMax.value);
}

/** The plan was made when the handler was there; what it promises is not skipped because of a deploy. */
const gone = (handler: string): Failure => ({
  kind: 'unknown',
  code: 'outcome_unknown',
  message: `The plan has a ${handler} and this worker's action has none.`,
});

const malformed = (handler: string): Failure => ({
  kind: 'unknown',
  code: 'outcome_unknown',
  message: `The ${handler} handler answered none of its answers.`,
});
