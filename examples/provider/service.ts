/**
 * A payment provider, small but real: charges and refunds over HTTP, each once per `Idempotency-Key`.
 *
 *   POST /charges                 {customer, amountCents, currency} → 201 Charge; same key: the same charge, 200
 *   GET  /charges?idempotencyKey= status look-up: 200 Charge | 404
 *   GET  /charges?customer=        the customer's charges: 200 {charges}
 *   GET  /charges/:id             200 Charge | 404
 *   POST /charges/:id/refunds     refunds what is left → 201; same key: 200
 *
 * Run it: `npx node examples/provider/service.ts [port]` (default 7412). How to make it misbehave: ../service-kit.ts.
 */
import { fileURLToPath } from 'node:url';
import { startService } from '../service-kit.ts';
import type { Call, Deed, Reply, Service } from '../service-kit.ts';

export interface Charge {
  chargeId: string;
  idempotencyKey: string;
  customer: string;
  amountCents: number;
  currency: 'EUR' | 'USD';
  refundedCents: number;
}

export interface ProviderBooks {
  /** How often a customer was charged, refunded since or not: the oracle of "once". */
  charges: number;
  refunds: number;
  chargedCents: number;
  refundedCents: number;
}

export type Provider = Service<ProviderBooks>;

/** The provider's own limit: refused for good, with 422. */
const AMOUNT_CENTS_MAX = 1_000_000;

export function startProvider(port = 0): Promise<Provider> {
  const charges: Charge[] = [];
  const refundKeys = new Map<string, string>();

  const charge = ({ body, idempotencyKey }: Call): Reply | Deed => {
    if (idempotencyKey === null) return refused(400, 'Idempotency-Key is missing');
    const earlier = charges.find((each) => each.idempotencyKey === idempotencyKey);
    if (earlier) return { status: 200, body: earlier };
    const asked = body as unknown as Pick<Charge, 'customer' | 'amountCents' | 'currency'>;
    if (asked.amountCents > AMOUNT_CENTS_MAX) return refused(422, `more than ${AMOUNT_CENTS_MAX} cents`);
    const wanted: Charge = { chargeId: 'ch_0', idempotencyKey, refundedCents: 0, ...asked };
    const apply = (wrong: boolean): Reply => {
      const made = { ...wanted, chargeId: `ch_${charges.length + 1}` };
      charges.push(wrong ? { ...made, amountCents: made.amountCents * 10 } : made);
      return { status: 201, body: made };
    };
    return { apply, lie: wanted };
  };

  const refund = (found: Charge, { idempotencyKey }: Call): Reply | Deed => {
    if (idempotencyKey === null) return refused(400, 'Idempotency-Key is missing');
    if (refundKeys.get(idempotencyKey) === found.chargeId) return { status: 200, body: found };
    if (found.refundedCents === found.amountCents)
      return refused(409, `${found.chargeId} is refunded already`);
    const apply = (wrong: boolean): Reply => {
      refundKeys.set(idempotencyKey, found.chargeId);
      found.refundedCents = wrong ? Math.floor(found.amountCents / 2) : found.amountCents;
      return { status: 201, body: { ...found, refundedCents: found.amountCents } };
    };
    return { apply, lie: { ...found, refundedCents: found.amountCents } };
  };

  const route = (call: Call): Reply | Deed => {
    const [collection, chargeId, action] = call.path;
    if (collection !== 'charges') return refused(404, 'no such path');
    if (call.method === 'POST' && chargeId === undefined) return charge(call);
    const [customer, key] = [call.query.get('customer'), call.query.get('idempotencyKey')];
    if (customer !== null && chargeId === undefined)
      return { status: 200, body: { charges: charges.filter((each) => each.customer === customer) } };
    const found = charges.find((each) =>
      chargeId ? each.chargeId === chargeId : each.idempotencyKey === key,
    );
    if (!found) return refused(404, 'no such charge');
    return call.method === 'POST' && action === 'refunds'
      ? refund(found, call)
      : { status: 200, body: found };
  };

  const books = (): ProviderBooks => ({
    charges: charges.length,
    refunds: refundKeys.size,
    chargedCents: charges.reduce((sum, each) => sum + each.amountCents, 0),
    refundedCents: charges.reduce((sum, each) => sum + each.refundedCents, 0),
  });
  return startService({ route, books }, port);
}

function refused(status: number, error: string): Reply {
  return { status, body: { error } };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { url } = await startProvider(Number(process.argv[2] ?? 7412));
  console.log(`provider listens on ${url}`);
}
