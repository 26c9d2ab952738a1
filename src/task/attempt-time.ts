/** How long one attempt may take in the worker, which the engine bounds and a lease must cover. Pure. */
import type { PlanDeadlines } from './plan.ts';

/** Above the handler's own deadlines, so that the handler times out before the engine does (interfaces.md "Claim"). */
const MARGIN_MS = 10_000;
const IN_ACTIVITY_VERIFY_MS = 3_000;

/** A lookup and the execution, one attempt deadline each, then verify; the first attempt has nothing to look up. */
export function attemptMsInAll(
  { attemptMs, verifyMs }: Pick<PlanDeadlines, 'attemptMs' | 'verifyMs'>,
  isFirst: boolean,
): number {
  const handlers = isFirst ? attemptMs : 2 * attemptMs;
  return handlers + Math.min(verifyMs, IN_ACTIVITY_VERIFY_MS) + MARGIN_MS;
}
