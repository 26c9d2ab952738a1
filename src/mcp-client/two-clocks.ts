/**
 * The two clocks of a request (M4.1).
 *
 * Invariants:
 * 1. `idleMs` without real progress ends the request. Real progress is a progress value above every one before it; a
 *    repeated or lower one, a keepalive or any other message resets nothing.
 * 2. The maximum is a moment, fixed when the call began. Nothing moves it.
 * 3. Whichever ends first is the one that counts; afterwards nothing changes any more.
 */
import type { Clock } from '../contract/clock.ts';

export type ClockEnd = 'idle' | 'maximum' | 'abandoned';

export interface TwoClocks {
  /** Aborts at the end; the reason is a `ClockEnd`. */
  readonly signal: AbortSignal;
  /** Null while neither has run out. */
  readonly end: ClockEnd | null;
  progressed(value: number): void;
  /** The request has its answer. */
  stop(): void;
}

export interface ClockSpans {
  idleMs: number;
  /** By `clock.now()`. */
  maximumAt: number;
}

/** `caller` is the caller's own signal: it ends the request as `abandoned`. */
export function startClocks(
  clock: Clock,
  { idleMs, maximumAt }: ClockSpans,
  caller?: AbortSignal,
): TwoClocks {
  const controller = new AbortController();
  let end: ClockEnd | null = null;
  let highest = Number.NEGATIVE_INFINITY;
  let callOffIdle = (): void => undefined;
  const finish = (why: ClockEnd | null): void => {
    callOffIdle();
    callOffMaximum();
    caller?.removeEventListener('abort', leave);
    if (why === null || end !== null) return;
    end = why;
    controller.abort(why);
  };
  const leave = () => finish('abandoned');
  const callOffMaximum = clock.after(Math.max(0, maximumAt - clock.now()), () => finish('maximum'));
  const restartIdle = () => {
    callOffIdle();
    callOffIdle = clock.after(idleMs, () => finish('idle'));
  };
  restartIdle();
  caller?.addEventListener('abort', leave, { once: true });
  if (caller?.aborted) leave();
  return {
    signal: controller.signal,
    get end() {
      return end;
    },
    progressed(value) {
      if (end !== null || !(value > highest)) return;
      highest = value;
      restartIdle();
    },
    stop: () => finish(null),
  };
}
