/**
 * Wrong on purpose: its contract says that the provider dedupes, and it gives the provider a new key at each attempt. No
 * happy path shows that; a rehearsal does.
 */
import { randomUUID } from 'node:crypto';
import { defineAction, implementAction, mismatch, notYet, verified } from '../../src/index.ts';
import { getJson, postJson } from '../http-json.ts';
import { chargeCustomer } from '../provider/actions.ts';
import type { Charge } from '../provider/service.ts';

const at = (path: string): string =>
  `${process.env['HOLDFAST_PROVIDER_URL'] ?? 'http://127.0.0.1:7412'}/charges${path}`;

const chargeCarelessly = defineAction({
  name: 'charge_carelessly',
  version: 1,
  description: 'Charges a customer, under a key of its own at each attempt.',
  input: chargeCustomer.input,
  output: chargeCustomer.output,
  effect: 'conditional',
  rollback: { kind: 'outOfBand' },
});

export const carelessCharge = implementAction(chargeCarelessly, {
  async execute(input, { signal }) {
    const { chargeId, amountCents, currency } = await postJson<Charge>(at(''), input, {
      operationId: randomUUID(),
      signal,
    });
    return { chargeId, amountCents, currency };
  },

  async verify({ amountCents }, { chargeId }, context) {
    const look = await getJson<Charge>(at(`/${encodeURIComponent(chargeId)}`), context);
    if (look.kind === 'unreadable') return notYet(look.reason);
    return look.kind === 'found' && look.body.amountCents === amountCents
      ? verified()
      : mismatch(`there is no charge ${chargeId} of ${amountCents} cents`);
  },

  rehearsal: {
    args: (key) => ({ customer: key, amountCents: 100, currency: 'EUR' as const }),
    async count(_operationId, { args: { customer } }) {
      const response = await fetch(at(`?customer=${encodeURIComponent(customer)}`));
      return ((await response.json()) as { charges: Charge[] }).charges.length;
    },
  },
});
