/**
 * The promises: stock reserved and released, in two places. `…_inventory` is a table in the ledger's own database;
 * `…_warehouse_stock` is another service over HTTP. The arguments and results are the same; what holds the promise
 * is not (README.md). No I/O here.
 */
import { z } from 'zod';
import { defineAction } from '../../src/index.ts';

const sku = z.string().min(1).max(64);
const reservation = z.object({ reservationId: z.string(), sku, quantity: z.int() });
const reserve = {
  input: z.object({ sku, quantity: z.int().positive().max(1_000_000) }),
  output: reservation,
};
const release = { input: z.object({ reservationId: z.string().min(1).max(128) }), output: reservation };

/** More than this takes a buyer's approval. */
const QUANTITY_WITHOUT_APPROVAL_MAX = 100;

export const reserveInventory = defineAction({
  name: 'reserve_inventory',
  version: 1,
  description: 'Reserves a quantity of one article in our own stock. Refused when less than that is left.',
  ...reserve,
  effect: 'conditional',
  transactional: true,
  rollback: { kind: 'inBand' },
  approval: ({ quantity }) =>
    quantity > QUANTITY_WITHOUT_APPROVAL_MAX && { roles: ['buyer'], expiresIn: '24h' },
  deadlines: { attempt: '1s', verify: '1s', run: '1h' },
  retry: { initialInterval: '50ms', maximumInterval: '1s' },
  onCancel: 'rollback',
});

export const releaseInventory = defineAction({
  name: 'release_inventory',
  version: 1,
  description: 'Gives a reservation of our own stock back. Refused when it was given back before.',
  ...release,
  effect: 'conditional',
  transactional: true,
  rollback: { kind: 'compensate' },
  deadlines: { attempt: '1s', verify: '1s', run: '1h' },
  retry: { initialInterval: '50ms', maximumInterval: '1s' },
  onCancel: 'keep',
});

export const reserveWarehouseStock = defineAction({
  name: 'reserve_warehouse_stock',
  version: 1,
  description:
    'Reserves a quantity of one article in the warehouse, another service. Refused when less is left.',
  ...reserve,
  effect: 'conditional',
  rollback: { kind: 'inBand' },
  approval: ({ quantity }) =>
    quantity > QUANTITY_WITHOUT_APPROVAL_MAX && { roles: ['buyer'], expiresIn: '24h' },
  deadlines: { attempt: '10s', verify: '30s', run: '1h' },
  onCancel: 'rollback',
});

export const releaseWarehouseStock = defineAction({
  name: 'release_warehouse_stock',
  version: 1,
  description: 'Gives a reservation in the warehouse back. Giving it back twice gives it back once.',
  ...release,
  effect: 'conditional',
  rollback: { kind: 'compensate' },
  deadlines: { attempt: '10s', verify: '30s', run: '1h' },
  onCancel: 'keep',
});
