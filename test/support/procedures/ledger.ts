/** A procedure of transactional steps: workflow code, bundled into the worker. */
import { procedure } from 'holdfast/procedure';
import type { transferFunds } from '../../../examples/transfer/actions.ts';

interface Payment {
  amountCents: number;
}

/** Pays in two rates. */
export const payTwice = procedure<readonly [typeof transferFunds], Payment>(
  'pay_twice',
  async (p, { amountCents }) => {
    await p.step('first', 'transfer_funds', { from: 'A', to: 'B', amountCents });
    return p.step('second', 'transfer_funds', { from: 'A', to: 'B', amountCents });
  },
);
