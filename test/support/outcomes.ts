// Answers of activities, by the names that tests use for them.
import type { Failure } from '../../src/task/failure.ts';
import type { OperationOutcome, StoredResult } from '../../src/task/outcome.ts';

export const RESULT: StoredResult = { kind: 'inline', value: { reservationId: 'r-1' } };

export const committed: OperationOutcome = { kind: 'committed', result: RESULT, replayed: false };
export const notSent: Failure = {
  kind: 'notApplied',
  code: 'attempt_failed',
  message: 'The connection was refused.',
};
export const doubt: Failure = { kind: 'unknown', code: 'outcome_unknown', message: 'The reply was lost.' };
export const released: OperationOutcome = { kind: 'released', failure: notSent };
export const unknown: OperationOutcome = { kind: 'unknown', failure: doubt, attention: false };
export const attention: OperationOutcome = { kind: 'unknown', failure: doubt, attention: true };
export const notYet: OperationOutcome = { kind: 'notYet' };
export const mismatch: OperationOutcome = { kind: 'mismatch', reason: 'quantity is 2, not 1' };

export const rateLimited = (retryAfterMs?: number): OperationOutcome => ({
  kind: 'released',
  failure: {
    kind: 'rateLimited',
    code: 'rate_limited',
    message: 'Too many requests.',
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  },
});
