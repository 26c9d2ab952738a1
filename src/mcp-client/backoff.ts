/**
 * When to try again (M6.3): capped exponential backoff with full jitter, so that clients which lost their server at one
 * moment do not come back at one moment.
 *
 * Guarantees: the n-th delay is uniform over [0, min(cap, initial · 2ⁿ)); a `Retry-After` is waited for in full, with
 * the jitter on top of it, since everybody else was told the same second; the same seed gives the same delays.
 */
import { MCP_CLIENT_LIMITS } from './limits.ts';

const { backoffInitialMs, backoffMs } = MCP_CLIENT_LIMITS;

export const BACKOFF = { initialMs: backoffInitialMs.value, factor: 2, capMs: backoffMs.value } as const;

/** `attempt` counts failures in a row from 0; `random` is in [0, 1). */
export function backoffDelayMs(attempt: number, random: number, retryAfterMs = 0): number {
  const widthMs = Math.min(BACKOFF.capMs, BACKOFF.initialMs * BACKOFF.factor ** attempt);
  return retryAfterMs + Math.floor(random * widthMs);
}

export interface Backoff {
  /** The delay before the next try. */
  next(retryAfterMs?: number): number;
  /** After a success: the next failure is a first one. */
  reset(): void;
}

export function createBackoff(random: () => number): Backoff {
  let attempt = 0;
  return {
    next(retryAfterMs) {
      const delayMs = backoffDelayMs(attempt, random(), retryAfterMs);
      attempt += 1;
      return delayMs;
    },
    reset() {
      attempt = 0;
    },
  };
}

/** Numbers in [0, 1) that depend on the seed alone (mulberry32). For spreading, never for secrets. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
