/** The only source of time of whoever is handed one, so that tests move it by hand. */
export interface Clock {
  /** Milliseconds; only differences matter. */
  now(): number;
  /** Runs `action` once after `delayMs`; answers the function that calls it off. */
  after(delayMs: number, action: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  after(delayMs, action) {
    let leftMs = delayMs;
    let timer: NodeJS.Timeout;
    const arm = (): void => {
      const partMs = Math.min(leftMs, TIMER_MS_MAX);
      leftMs -= partMs;
      timer = setTimeout(leftMs > 0 ? arm : action, partMs);
    };
    arm();
    return () => clearTimeout(timer);
  },
};

/** Largest delay a Node timer keeps; a longer one, or none at all, would fire at once. */
const TIMER_MS_MAX = 2_147_483_647;

/** Resolves when the time is over or `signal` aborts; never rejects. */
export function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = () => {
      callOff();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const callOff = clock.after(delayMs, done);
    signal.addEventListener('abort', done, { once: true });
  });
}

/** For whoever gives no signal of their own. */
export const NEVER: AbortSignal = new AbortController().signal;
