/**
 * A ledger whose n-th call fails, as SQLite is tested: before it did anything, or after it did all of it and only the
 * answer is lost. Calls inside a transaction count too.
 */
import { HoldfastError } from '../../src/contract/error.ts';
import type { Ledger, Transitions } from '../../src/ledger/ledger.ts';

export type Loss = 'before' | 'after';

export interface FailingLedger {
  ledger: Ledger;
  /** The calls made so far, in order. */
  calls: string[];
}

/** Calls `first` to `first + count - 1` fail; counted from 1. */
export function failingLedger(ledger: Ledger, loss: Loss, first: number, count = 1): FailingLedger {
  const calls: string[] = [];
  const wrap = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(object, name) {
        const member: unknown = Reflect.get(object, name);
        if (typeof member !== 'function') return member;
        return async (...given: unknown[]): Promise<unknown> => {
          calls.push(String(name));
          const fails = calls.length >= first && calls.length < first + count;
          if (fails && loss === 'before') throw away(name);
          const answer: unknown = await Reflect.apply(
            member,
            object,
            name === 'transaction' ? [inside(given[0])] : given,
          );
          if (fails) throw away(name);
          return answer;
        };
      },
    });
  const inside = (work: unknown) => (transitions: Transitions, tx: unknown) =>
    (work as (t: Transitions, tx: unknown) => unknown)(wrap(transitions), tx);
  return { ledger: wrap(ledger), calls };
}

const away = (name: string | symbol): HoldfastError =>
  new HoldfastError('ledger_unavailable', `the ledger is away (${String(name)})`);
