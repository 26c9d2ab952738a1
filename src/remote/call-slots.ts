/**
 * How many control calls one worker makes at once: cancels before all others, else first come first served.
 *
 * Invariants:
 * 1. A slot is taken until whoever took it gives it back: a call that was left behind keeps it until it settles.
 * 2. Of one task there is at most one call here, a left-behind one included.
 * 3. A quarter as many calls as there are slots wait for one, and whoever comes beyond is told to come again: each that
 *    waits holds a slot of the worker's activities. A cancel that comes beyond takes the place of the last that is none.
 */

export type SlotAnswer =
  | { kind: 'taken'; giveBack: () => void }
  /** A call about this task is under way here, or was left behind and has not settled; or too many wait for a slot, or a cancel took the place. */
  | { kind: 'under_way' }
  | { kind: 'stopped' };

interface Waiting {
  key: string;
  isUrgent: boolean;
  admit: (answer: SlotAnswer) => void;
}

export class CallSlots {
  readonly #size: number;
  readonly #taken = new Set<string>();
  #waiting: Waiting[] = [];

  constructor(size: number) {
    this.#size = size;
  }

  get taken(): number {
    return this.#taken.size;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  take(key: string, stop: AbortSignal, isUrgent = false): Promise<SlotAnswer> {
    if (stop.aborted) return Promise.resolve({ kind: 'stopped' });
    if (this.#taken.has(key) || this.#waiting.some((each) => each.key === key))
      return Promise.resolve({ kind: 'under_way' });
    if (this.#isFull() && !(isUrgent && this.#turnAway())) return Promise.resolve({ kind: 'under_way' });
    return new Promise((resolve) => {
      const onStop = (): void => {
        this.#waiting = this.#waiting.filter((each) => each !== entry);
        resolve({ kind: 'stopped' });
      };
      const entry: Waiting = {
        ...{ key, isUrgent },
        admit: (answer) => {
          stop.removeEventListener('abort', onStop);
          resolve(answer);
        },
      };
      stop.addEventListener('abort', onStop, { once: true });
      const firstOther = this.#waiting.findIndex((each) => !each.isUrgent);
      this.#waiting.splice(isUrgent && firstOther >= 0 ? firstOther : this.#waiting.length, 0, entry);
      this.#admit();
    });
  }

  #isFull(): boolean {
    return this.#taken.size >= this.#size && this.#waiting.length >= Math.ceil(this.#size / 4);
  }

  /** False: all that wait are urgent. */
  #turnAway(): boolean {
    const last = this.#waiting.findLast((each) => !each.isUrgent);
    this.#waiting = this.#waiting.filter((each) => each !== last);
    last?.admit({ kind: 'under_way' });
    return last !== undefined;
  }

  #admit(): void {
    while (this.#taken.size < this.#size) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#taken.add(next.key);
      next.admit({ kind: 'taken', giveBack: this.#giveBackOnce(next.key) });
    }
  }

  #giveBackOnce(key: string): () => void {
    let isGiven = false;
    return () => {
      if (isGiven) return;
      isGiven = true;
      this.#taken.delete(key);
      this.#admit();
    };
  }
}
