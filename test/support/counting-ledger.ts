/** A ledger that remembers which of its methods were called, in order. */
import type { Ledger } from '../../src/ledger/ledger.ts';

export function countingLedger(ledger: Ledger): { ledger: Ledger; calls: string[] } {
  const calls: string[] = [];
  const counted = new Proxy(ledger, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...given: unknown[]): unknown => {
        calls.push(String(name));
        return Reflect.apply(member, target, given);
      };
    },
  });
  return { ledger: counted, calls };
}
