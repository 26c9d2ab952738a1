/** A configuration with a procedure, for commands that are run as processes. */
import { z } from 'zod';
import { transfer } from '../../examples/transfer/handlers.ts';
import { migrateTransfer } from '../../examples/transfer/tables.ts';
import { defineConfig, defineProcedure } from '../../src/index.ts';

const payTwice = defineProcedure({
  name: 'pay_twice',
  description: 'Pays in two rates.',
  input: z.object({ amountCents: z.int().positive() }),
});

export default defineConfig({
  actions: [transfer],
  procedures: { code: 'procedures/ledger.ts', contracts: [payTwice] },
  setup: migrateTransfer,
});
