/**
 * Progress of one request (M4.2).
 *
 * Invariants:
 * 1. Without the caller's token nothing is ever sent; with one, every notification carries that very token.
 * 2. The progress value rises by one with each notification that is sent, from what was sent under the token before.
 * 3. Two notifications are at least `intervalMs` apart; what comes faster is coalesced to the latest message.
 * 4. One send is under way at a time, so that a slow reader holds the sender up instead of filling a queue.
 * 5. After `stop()` has settled, nothing is sent: the final response comes after it.
 */
import type { Clock } from '../contract/clock.ts';

export type ProgressToken = string | number;
type Send = (params: { progressToken: ProgressToken; progress: number; message: string }) => Promise<void>;

export interface ProgressReporter {
  report(message: string): void;
  /** Settles when nothing is under way any more. A message still waiting is dropped: the response says more. */
  stop(): Promise<void>;
}

const SILENT: ProgressReporter = { report: () => undefined, stop: () => Promise.resolve() };

export function createProgress(options: {
  token: ProgressToken | undefined;
  send: Send;
  intervalMs: number;
  clock: Clock;
  /** How many were sent under this token before: a 2025 client's call goes on under it after a person was asked. */
  sentBefore?: number;
}): ProgressReporter {
  const { token, send, intervalMs, clock, sentBefore = 0 } = options;
  if (token === undefined) return SILENT;
  let progress = sentBefore;
  let lastSentAt = -Infinity;
  let lastMessage: string | null = null;
  let waiting: string | null = null;
  let underWay: Promise<void> | null = null;
  let callOff: (() => void) | null = null;
  let isStopped = false;

  const flush = (): void => {
    if (isStopped || waiting === null || underWay || callOff) return;
    const restMs = lastSentAt + intervalMs - clock.now();
    if (restMs > 0) {
      callOff = clock.after(restMs, () => {
        callOff = null;
        flush();
      });
      return;
    }
    const message = waiting;
    waiting = null;
    lastMessage = message;
    lastSentAt = clock.now();
    progress += 1;
    underWay = send({ progressToken: token, progress, message })
      .catch(() => {
        isStopped = true; // the connection is gone; the request's own signal says so to everyone else
      })
      .then(() => {
        underWay = null;
        flush();
      });
  };

  return {
    report(message) {
      if (message === lastMessage && waiting === null) return;
      waiting = message;
      flush();
    },
    async stop() {
      isStopped = true;
      callOff?.();
      callOff = null;
      await underWay;
    },
  };
}
