/**
 * The deed: one POST with the operationId as `Idempotency-Key`. What makes it safe to send again is the provider's
 * own deduplication; what makes an answer worth believing is the GET that follows it.
 */
import {
  applied,
  implementAction,
  mismatch,
  notApplied,
  notYet,
  unknown,
  verified,
} from '../../src/index.ts';
import { getJson, postJson } from '../http-json.ts';
import { chargeCustomer } from './actions.ts';
import type { Charge } from './service.ts';

const at = (path: string): string =>
  `${process.env['HOLDFAST_PROVIDER_URL'] ?? 'http://127.0.0.1:7412'}/charges${path}`;

const result = ({ chargeId, amountCents, currency }: Charge) => ({ chargeId, amountCents, currency });

/** The provider's own list, for the rehearsal: a charge made twice is there twice. */
async function chargesOf(operationId: string, { customer }: { customer: string }): Promise<Charge[]> {
  const response = await fetch(at(`?customer=${encodeURIComponent(customer)}`));
  const { charges } = (await response.json()) as { charges: Charge[] };
  return charges.filter(({ idempotencyKey }) => idempotencyKey === operationId);
}

export const charge = implementAction(chargeCustomer, {
  async execute(input, context) {
    return result(await postJson<Charge>(at(''), input, context));
  },

  async lookup(context) {
    const look = await getJson<Charge>(
      at(`?idempotencyKey=${encodeURIComponent(context.operationId)}`),
      context,
    );
    if (look.kind === 'unreadable') return unknown(look.reason);
    return look.kind === 'found' ? applied(result(look.body)) : notApplied();
  },

  async verify({ customer, amountCents, currency }, { chargeId }, context) {
    const look = await getJson<Charge>(at(`/${encodeURIComponent(chargeId)}`), context);
    if (look.kind === 'unreadable') return notYet(look.reason);
    if (look.kind === 'absent') return mismatch(`the provider knows no charge ${chargeId}`);
    const made = look.body;
    return made.customer === customer && made.amountCents === amountCents && made.currency === currency
      ? verified()
      : mismatch(
          `${made.amountCents} ${made.currency} were charged, ${amountCents} ${currency} were asked for`,
        );
  },

  async rollback(_input, { chargeId }, context) {
    await postJson(at(`/${encodeURIComponent(chargeId)}/refunds`), {}, context);
    return { remains: 'charge and refund both show on the customer’s statement' };
  },

  async verifyRollback(_input, { chargeId }, context) {
    const look = await getJson<Charge>(at(`/${encodeURIComponent(chargeId)}`), context);
    if (look.kind === 'unreadable') return notYet(look.reason);
    return look.kind === 'found' && look.body.refundedCents === look.body.amountCents
      ? verified()
      : mismatch(`charge ${chargeId} is not refunded in full`);
  },

  rehearsal: {
    args: { customer: 'rehearsal', amountCents: 100, currency: 'EUR' },
    count: async (operationId, { args }) => (await chargesOf(operationId, args)).length,
    undone: async (operationId, { args }) =>
      (await chargesOf(operationId, args)).filter(({ refundedCents }) => refundedCents > 0).length,
  },
});
