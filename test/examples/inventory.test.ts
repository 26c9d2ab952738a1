/** The oracle is the stock: the table's rows, and the warehouse's own books. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { release, reservation } from '../../examples/inventory/handlers.ts';
import { startWarehouse } from '../../examples/inventory/service.ts';
import type { Warehouse } from '../../examples/inventory/service.ts';
import { migrateInventory } from '../../examples/inventory/tables.ts';
import type { InventoryTables } from '../../examples/inventory/tables.ts';
import { warehouseRelease, warehouseReservation } from '../../examples/inventory/warehouse-handlers.ts';
import { openTestServer } from '../../src/testing/index.ts';
import type { TestServer } from '../../src/testing/index.ts';
import { openExample } from './open-example.ts';
import type { OpenExample } from './open-example.ts';

let warehouse: Warehouse;
let server: TestServer;
let example: OpenExample<InventoryTables>;
beforeEach(async () => {
  warehouse = await startWarehouse();
  process.env['HOLDFAST_WAREHOUSE_URL'] = warehouse.url;
  const actions = [reservation, release, warehouseReservation, warehouseRelease];
  example = await openExample<InventoryTables>(server, actions, migrateInventory);
});
afterEach(async () => {
  await example.close();
  await warehouse.close();
});

const availableInTable = (sku: string) =>
  example.tables(async (tx) => {
    const row = await tx
      .selectFrom('example_stock')
      .select('available')
      .where('sku', '=', sku)
      .executeTakeFirst();
    return row?.available;
  });

const PLACES = [
  ['reserve_inventory', 'release_inventory', availableInTable],
  [
    'reserve_warehouse_stock',
    'release_warehouse_stock',
    (sku: string) => Promise.resolve(warehouse.books().available[sku]),
  ],
] as const;

beforeAll(async () => {
  server = await openTestServer('local');
});
afterAll(() => server.close());

describe.each(PLACES)('inventory example, %s', (reserve, giveBack, available) => {
  test('[S1.5] stock is taken once, however often the same key asks', async () => {
    const args = { sku: 'widget', quantity: 3 };
    const first = await example.call(reserve, args, 'order-17');
    const again = await example.call(reserve, args, 'order-17');
    expect(first).toMatchObject({ status: 'completed', effect: 'applied', result: args });
    expect(again).toMatchObject({ replayed: true, result: first.result });
    expect(await available('widget')).toBe(997);
  });

  test('[S2.2] more than is left is refused with what was found, and nothing is taken', async () => {
    const end = await example.call(reserve, { sku: 'gadget', quantity: 11 }, 'order-17');
    expect(end).toMatchObject({ status: 'failed', effect: 'none', cause: 'precondition_failed' });
    expect(end.error?.message).toContain('10 of gadget are left, 11 were asked for');
    expect(await available('gadget')).toBe(10);
  });

  test('the last ten go to one of two who want eight each', async () => {
    const ends = await Promise.all(
      ['a', 'b'].map((key) => example.call(reserve, { sku: 'gadget', quantity: 8 }, key)),
    );
    expect(ends.map(({ status }) => status).sort()).toEqual(['completed', 'failed']);
    expect(await available('gadget')).toBe(2);
  });

  test('a reservation is given back once; a second call with its own key is refused', async () => {
    const { result } = await example.call(reserve, { sku: 'gadget', quantity: 4 }, 'order-17');
    const { reservationId } = result as { reservationId: string };
    const given = await example.call(giveBack, { reservationId }, 'return-17');
    expect(given).toMatchObject({
      status: 'completed',
      result: { reservationId, sku: 'gadget', quantity: 4 },
    });
    expect(await available('gadget')).toBe(10);
    const twice = await example.call(giveBack, { reservationId }, 'return-18');
    expect(twice).toMatchObject({ cause: 'precondition_failed' });
    expect(twice.error?.message).toContain('given back before');
    expect(await available('gadget')).toBe(10);
  });

  test('more than a hundred waits for a person, with nothing reserved [S4.1]', async () => {
    const waiting = await example.call(reserve, { sku: 'widget', quantity: 101 }, 'order-17');
    expect(waiting).toMatchObject({ status: 'awaiting_approval', effect: 'none' });
    expect(await available('widget')).toBe(1000);
  });
});

describe('inventory example, when the warehouse fails', () => {
  const reserve = () => example.call('reserve_warehouse_stock', { sku: 'widget', quantity: 3 }, 'order-17');

  test('[S2.4] a lost answer is looked up by operationId, not sent again', async () => {
    warehouse.behave('drop', 1);
    expect(await reserve()).toMatchObject({ status: 'completed', result: { reservationId: 'wh_1' } });
    expect(warehouse.books()).toMatchObject({ reservations: 1, available: { widget: 997 } });
  });

  test('[S2.6][S6.5] a 200 without a reservation ends failed, with effect none, and a person hears of it', async () => {
    warehouse.behave('lie', 1);
    const end = await reserve();
    expect(end).toMatchObject({ status: 'failed', effect: 'none', cause: 'verify_failed' });
    expect(warehouse.books().reservations).toBe(0);
    expect(await example.alerts(end.taskId)).toContain('verify_failed');
  });

  test('[S6.1] a reservation of another quantity is given back', async () => {
    warehouse.behave('wrong', 1);
    expect(await reserve()).toMatchObject({ status: 'failed', effect: 'rolled_back' });
    expect(warehouse.books()).toMatchObject({ reservations: 1, releases: 1, available: { widget: 1000 } });
  });

  test('[S5] a busy warehouse is asked again when it said so', async () => {
    warehouse.behave('busy', 2);
    expect(await reserve()).toMatchObject({ status: 'completed' });
    expect(warehouse.books().reservations).toBe(1);
  });

  test('[S7.4] a cancel that meets a reservation under way gives it back', async () => {
    warehouse.behave('hold', 1);
    const { taskId } = await example.start(
      'reserve_warehouse_stock',
      { sku: 'widget', quantity: 3 },
      'order-17',
    );
    await warehouse.held();
    await example.cancel(taskId);
    warehouse.release();
    expect(await example.wait(taskId)).toMatchObject({ status: 'cancelled', effect: 'rolled_back' });
    expect(warehouse.books()).toMatchObject({ releases: 1, available: { widget: 1000 } });
  });
});
