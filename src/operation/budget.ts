/**
 * How long one attempt may take in all, measured on a clock that can't step. The engine's own timeout lies 3 s beyond
 * (workflows/steps.ts), so that whatever is slow here gets its answer recorded before the engine gives up on it.
 */
import type { Plan } from '../task/plan.ts';

/** Verification polls inside the attempt for at most this long; then the workflow polls by timer (S2.6). */
const IN_ATTEMPT_VERIFY_MS = 3_000;
/** For the ledger's writes, their repeats and a handler's reaction to its abort. */
const MARGIN_MS = 7_000;
/** A call that is begun at all gets at least this long. */
const CALL_MS_MIN = 1_000;

/** How long a handler may take to react to its abort before it is left behind. */
export const ABORT_GRACE_MS = 1_000;
export const TRANSACTION_GRACE_MS = 20;

export const verifyWindowMs = (plan: Plan): number => Math.min(plan.deadlines.verifyMs, IN_ATTEMPT_VERIFY_MS);

export interface Budget {
  /** The deadline of a handler call begun now: the attempt deadline, or what is left of the whole. */
  callMs(): number;
}

/** From the second attempt on there may be a lookup before the execution, so there is room for both. */
export function openBudget(plan: Plan, attempt: number): Budget {
  const { attemptMs } = plan.deadlines;
  const endsAt =
    performance.now() + (attempt === 1 ? attemptMs : 2 * attemptMs) + verifyWindowMs(plan) + MARGIN_MS;
  return {
    callMs: () => Math.min(attemptMs, Math.max(CALL_MS_MIN, Math.floor(endsAt - performance.now()))),
  };
}
