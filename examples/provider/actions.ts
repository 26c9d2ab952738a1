/** The promise: a customer is charged once per key, as asked, or gets the money back. No I/O here. */
import { z } from 'zod';
import { defineAction } from '../../src/index.ts';

export const chargeCustomer = defineAction({
  name: 'charge_customer',
  version: 1,
  description:
    'Charges a customer through the payment provider. The amount is in integer cents: $12.50 is 1250.',
  input: z.object({
    customer: z.string().min(1).max(64),
    amountCents: z.int().positive().max(100_000_000),
    currency: z.enum(['EUR', 'USD']),
  }),
  output: z.object({ chargeId: z.string(), amountCents: z.int(), currency: z.enum(['EUR', 'USD']) }),
  effect: 'conditional',
  rollback: { kind: 'compensate' },
  deadlines: { attempt: '10s', verify: '30s', run: '1h' },
  retry: { maximumRetries: 5 },
  onCancel: 'rollback',
});
