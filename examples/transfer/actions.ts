/** The promise: money moves between two accounts of the ledger's own database, exactly once per key. No I/O here. */
import { z } from 'zod';
import { defineAction } from '../../src/index.ts';

/** Money leaves an account only while its balance is above this. Integer cents, as everywhere in this example. */
export const BALANCE_CENTS_ABOVE = 100_000;

const account = z.string().min(1).max(64);

export const transferFunds = defineAction({
  name: 'transfer_funds',
  version: 1,
  description:
    'Moves money from one account to another, only while the paying account holds more than $1,000.00. ' +
    'Amounts are integer cents: $100.00 is 10000.',
  input: z
    .object({ from: account, to: account, amountCents: z.int().positive().max(100_000_000) })
    .refine(({ from, to }) => from !== to, { path: ['to'], message: 'is the paying account' }),
  output: z.object({
    transferId: z.string(),
    from: account,
    to: account,
    amountCents: z.int(),
    balancesCents: z.object({ from: z.int(), to: z.int() }),
  }),
  effect: 'conditional',
  transactional: true,
  rollback: { kind: 'inBand' },
  deadlines: { attempt: '1s', verify: '1s', run: '10m' },
  retry: { initialInterval: '50ms', maximumInterval: '1s' },
  onCancel: 'keep',
});
