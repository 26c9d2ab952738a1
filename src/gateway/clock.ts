/** The gateway's only source of time, so that tests move it by hand. */
export interface Clock {
  /** Milliseconds; only differences matter. */
  now(): number;
  /** Runs `action` once after `delayMs`; answers the function that calls it off. */
  after(delayMs: number, action: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  after(delayMs, action) {
    const timer = setTimeout(action, delayMs);
    return () => clearTimeout(timer);
  },
};
