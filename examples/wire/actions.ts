/** The promise: money leaves for good, once, and only after somebody typed back to whom and how much. No I/O here. */
import { z } from 'zod';
import { defineAction } from '../../src/index.ts';

export const wireMoney = defineAction({
  name: 'wire_money',
  version: 1,
  description:
    'Wires money to an IBAN. It can not be undone: a person other than the requester types back what is to happen. ' +
    'The amount is in integer cents: $12.50 is 1250.',
  input: z.object({
    iban: z.string().regex(/^[A-Z]{2}\d{2}[A-Z0-9]{10,30}$/),
    amountCents: z.int().positive().max(100_000_000),
    currency: z.enum(['EUR', 'USD']),
    purpose: z.string().max(140).default(''),
  }),
  output: z.object({ wireId: z.string(), iban: z.string(), amountCents: z.int() }),
  // The bank knows no idempotency key: a second request is a second wire. It can be asked by reference, and what it does
  // not know once the settle time has passed was never sent.
  effect: 'unsafe',
  lookup: 'conclusive',
  rollback: { kind: 'none', reason: 'A settled wire is the recipient’s money; only they can send it back.' },
  // S6.4: a phrase of target and amount is asked for by itself, and never over the connection that asked. Said here in the
  // words a treasurer checks against the invoice.
  approval: ({ iban, amountCents, currency }) => ({
    roles: ['treasurer'],
    quorum: amountCents > 1_000_000 ? 2 : 1,
    expiresIn: '24h',
    challenge: `wire ${(amountCents / 100).toFixed(2)} ${currency} to ${iban}`,
  }),
  deadlines: { attempt: '10s', verify: '30s', run: '2h', settle: '1s' },
  onCancel: 'keep',
});
