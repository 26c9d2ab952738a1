/**
 * A bank, small but real: wires over HTTP, without idempotency keys. Two requests are two wires.
 *
 *   POST /wires                {reference, iban, amountCents, currency} → 201 Wire
 *   GET  /wires?reference=     status look-up: 200 Wire | 404
 *   GET  /wires?iban=          all to one account: 200 {wires}
 *   GET  /wires/:id            200 Wire | 404
 *
 * Run it: `npx node examples/wire/service.ts [port]` (default 7414). How to make it misbehave: ../service-kit.ts.
 */
import { fileURLToPath } from 'node:url';
import { startService } from '../service-kit.ts';
import type { Call, Deed, Reply, Service } from '../service-kit.ts';

export interface Wire {
  wireId: string;
  reference: string;
  iban: string;
  amountCents: number;
  currency: string;
}

export interface BankBooks {
  /** The oracle of "once". */
  wires: number;
  wiredCents: number;
}

export type Bank = Service<BankBooks>;

export function startBank(port = 0): Promise<Bank> {
  const wires: Wire[] = [];

  const wire = ({ body }: Call): Reply | Deed => {
    const asked = body as unknown as Omit<Wire, 'wireId'>;
    const wanted: Wire = { wireId: 'wire_0', ...asked };
    const apply = (wrong: boolean): Reply => {
      const made = { ...wanted, wireId: `wire_${wires.length + 1}` };
      wires.push(wrong ? { ...made, amountCents: made.amountCents * 10 } : made);
      return { status: 201, body: made };
    };
    return { apply, lie: wanted };
  };

  const route = (call: Call): Reply | Deed => {
    const [collection, wireId] = call.path;
    if (collection !== 'wires') return { status: 404, body: { error: 'no such path' } };
    if (call.method === 'POST') return wire(call);
    const iban = call.query.get('iban');
    if (iban !== null) return { status: 200, body: { wires: wires.filter((each) => each.iban === iban) } };
    const reference = call.query.get('reference');
    const found = wires.find((each) =>
      wireId === undefined ? each.reference === reference : each.wireId === wireId,
    );
    return found ? { status: 200, body: found } : { status: 404, body: { error: 'no such wire' } };
  };

  const books = (): BankBooks => ({
    wires: wires.length,
    wiredCents: wires.reduce((sum, { amountCents }) => sum + amountCents, 0),
  });
  return startService({ route, books }, port);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { url } = await startBank(Number(process.argv[2] ?? 7414));
  console.log(`bank listens on ${url}`);
}
