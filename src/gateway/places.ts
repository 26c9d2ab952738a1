/**
 * So many places for each principal: of open calls, of open listens (M7.2). Pure.
 *
 * Invariants:
 * 1. Principals are counted apart: a place that one takes is never missing for another.
 * 2. Memory follows the places that are taken, not those who ever took one.
 */
import type { Principal } from '../task/plan.ts';

/** Gives the places back; calling it again does nothing. */
export type Leave = () => void;

export class Places {
  readonly #most: number;
  readonly #takenBy = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  /** The keys of those who have one. */
  get holders(): string[] {
    return [...this.#takenBy.keys()];
  }

  /** All of `count` or none: null where fewer are left. */
  take(principal: Principal, count = 1): Leave | null {
    const key = principalKey(principal);
    if (count > 0 && this.#taken(key) + count > this.#most) return null;
    this.#change(key, count);
    let isTaken = true;
    return () => {
      if (isTaken) this.#change(key, -count);
      isTaken = false;
    };
  }

  #taken(key: string): number {
    return this.#takenBy.get(key) ?? 0;
  }

  #change(key: string, by: number): void {
    const taken = this.#taken(key) + by;
    if (taken === 0) this.#takenBy.delete(key);
    else this.#takenBy.set(key, taken);
  }
}

/** Names a principal, its roles aside. Signed into what clients carry between the rounds of a call: never changed. */
export const principalKey = ({ tenant, subject }: Principal): string => JSON.stringify([tenant, subject]);
