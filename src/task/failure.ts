import type { JsonObject } from './json.ts';

/**
 * What went wrong with one attempt, already classified (S5).
 *
 * - `notApplied`: provably nothing happened (refused connection, DNS, declared by the handler). Retried within budget.
 * - `rateLimited`: the target itself said "later" before applying. Retried at `retryAfterMs`, else with backoff.
 * - `permanent`: provably nothing happened and never will (invalid, denied, domain error). Never retried.
 * - `unknown`: anything else, every unclassified exception included. Reconciled before anything else.
 */
export type FailureKind = 'notApplied' | 'rateLimited' | 'permanent' | 'unknown';

export interface Failure {
  kind: FailureKind;
  /** An error code of docs/errors.md, or the handler's own code. */
  code: string;
  /** For people; holds no secret and no stack. At most 2,000 characters. */
  message: string;
  retryAfterMs?: number;
  details?: JsonObject;
}
