/**
 * A warehouse with its own books, reached over HTTP. Not the ledger's database: nothing here commits with it.
 *
 *   POST   /reservations               {sku, quantity} → 201 Reservation; same Idempotency-Key: the same one, 200
 *   GET    /reservations?operationId=  status look-up: 200 Reservation | 404
 *   GET    /reservations/:id           200 Reservation | 404
 *   POST   /reservations/:id/release   gives the stock back → 200; again: 200
 *   GET    /stock/:sku                 200 {sku, available} | 404
 *
 * Run it: `npx node examples/inventory/service.ts [port]` (default 7411). How to make it misbehave: ../service-kit.ts.
 */
import { fileURLToPath } from 'node:url';
import { startService } from '../service-kit.ts';
import type { Call, Deed, Reply, Service } from '../service-kit.ts';

export interface WarehouseReservation {
  reservationId: string;
  operationId: string;
  sku: string;
  quantity: number;
  isReleased: boolean;
}

export interface WarehouseBooks {
  /** How often stock was taken, released since or not: the oracle of "once". */
  reservations: number;
  releases: number;
  available: Record<string, number>;
}

export type Warehouse = Service<WarehouseBooks>;

export function startWarehouse(
  port = 0,
  stock: Record<string, number> = { widget: 1000, gadget: 10, gizmo: 0 },
): Promise<Warehouse> {
  const available = new Map(Object.entries(stock));
  const reservations: WarehouseReservation[] = [];

  const take = (sku: string, quantity: number) => available.set(sku, (available.get(sku) ?? 0) - quantity);

  const reserve = ({ body, idempotencyKey }: Call): Reply | Deed => {
    if (idempotencyKey === null) return refused(400, 'Idempotency-Key is missing');
    const earlier = reservations.find((each) => each.operationId === idempotencyKey);
    if (earlier) return { status: 200, body: earlier };
    const { sku, quantity } = body as { sku: string; quantity: number };
    const left = available.get(sku);
    if (left === undefined) return refused(422, `no sku ${sku}`);
    if (left < quantity) return refused(409, `${left} of ${sku} left, ${quantity} asked for`);
    const wanted = { reservationId: 'wh_0', operationId: idempotencyKey, sku, quantity, isReleased: false };
    const apply = (wrong: boolean): Reply => {
      const made = { ...wanted, reservationId: `wh_${reservations.length + 1}` };
      const booked = wrong ? { ...made, quantity: quantity - 1 } : made;
      reservations.push(booked);
      take(sku, booked.quantity);
      return { status: 201, body: made };
    };
    return { apply, lie: wanted };
  };

  const release = (found: WarehouseReservation): Reply | Deed => {
    const apply = (): Reply => {
      if (!found.isReleased) take(found.sku, -found.quantity);
      found.isReleased = true;
      return { status: 200, body: found };
    };
    return { apply, lie: { ...found, isReleased: true } };
  };

  const route = (call: Call): Reply | Deed => {
    const [collection, id, action] = call.path;
    if (collection === 'stock' && id !== undefined) {
      const left = available.get(id);
      return left === undefined
        ? refused(404, `no sku ${id}`)
        : { status: 200, body: { sku: id, available: left } };
    }
    if (collection !== 'reservations') return refused(404, 'no such path');
    if (call.method === 'POST' && id === undefined) return reserve(call);
    const operationId = call.query.get('operationId');
    const found = reservations.find((each) =>
      id ? each.reservationId === id : each.operationId === operationId,
    );
    if (!found) return refused(404, 'no such reservation');
    return call.method === 'POST' && action === 'release' ? release(found) : { status: 200, body: found };
  };

  const books = (): WarehouseBooks => ({
    reservations: reservations.length,
    releases: reservations.filter((each) => each.isReleased).length,
    available: Object.fromEntries(available),
  });
  return startService({ route, books }, port);
}

function refused(status: number, error: string): Reply {
  return { status, body: { error } };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { url } = await startWarehouse(Number(process.argv[2] ?? 7411));
  console.log(`warehouse listens on ${url}`);
}
