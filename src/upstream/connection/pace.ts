/**
 * How soon a lost server is started or reached again, so that one that ends at once is not started in a circle. Pure.
 *
 * Invariants:
 * 1. A server that was opened a while ago is opened again at once: one that died is replaced at the next use.
 * 2. Of openings that follow close on one another, the second is free; from then on each pause is twice the one before,
 *    up to a cap.
 */
import { BACKOFF } from '../../mcp-client/backoff.ts';

export interface Pace {
  /** 0: open now, which is then counted. Else the milliseconds until it may be asked again. */
  next(now: number): number;
}

/** Longer than the longest pause, so that a circle at that pace is still one. */
const CLOSE_MS = BACKOFF.capMs + 2_000;

export function createPace(): Pace {
  let [inARow, openedAt, notBefore] = [0, Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];
  return {
    next(now) {
      if (now < notBefore) return Math.ceil(notBefore - now);
      inARow = now - openedAt < CLOSE_MS ? inARow + 1 : 0;
      const pauseMs = inARow === 0 ? 0 : BACKOFF.initialMs * BACKOFF.factor ** (inARow - 1);
      openedAt = now;
      notBefore = now + Math.min(BACKOFF.capMs, pauseMs);
      return 0;
    },
  };
}
