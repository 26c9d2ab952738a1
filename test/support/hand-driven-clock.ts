import type { Clock } from '../../src/contract/clock.ts';

/** A clock that stands still until `pass` is called; timers fire in their order. */
export class HandDrivenClock implements Clock {
  #now = 0;
  #timers: { at: number; action: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  after(delayMs: number, action: () => void): () => void {
    const timer = { at: this.#now + delayMs, action };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer);
    };
  }

  get pending(): number {
    return this.#timers.length;
  }

  pass(ms: number): void {
    const until = this.#now + ms;
    for (;;) {
      const next = this.#timers.filter((timer) => timer.at <= until).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.#now = next.at;
      next.action();
    }
    this.#now = until;
  }
}
