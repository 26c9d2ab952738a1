import type { Clock } from '../contract/clock.ts';

/** The calls under way, so that a shutdown can let them answer first. */
export interface OpenCalls {
  track<T>(call: () => Promise<T>): Promise<T>;
  readonly size: number;
  /** True when all that were open have settled and their answers are on their way; false when `timeoutMs` passed first. */
  settle(timeoutMs: number): Promise<boolean>;
}

export function createOpenCalls(clock: Clock): OpenCalls {
  const open = new Set<Promise<unknown>>();
  return {
    track(call) {
      const promise = call();
      open.add(promise);
      const forget = () => open.delete(promise);
      promise.then(forget, forget);
      return promise;
    },
    get size() {
      return open.size;
    },
    async settle(timeoutMs) {
      let callOff = (): void => undefined;
      const tooLate = new Promise<false>((resolve) => {
        callOff = clock.after(timeoutMs, () => resolve(false));
      });
      const settled = Promise.allSettled(open)
        // The SDK sends an answer some microtasks after its handler, and Node writes it a turn later.
        .then(() => new Promise<true>((resolve) => setImmediate(() => setImmediate(() => resolve(true)))));
      const outcome = await Promise.race([settled, tooLate]);
      callOff();
      return outcome;
    },
  };
}
