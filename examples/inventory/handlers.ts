/**
 * The deed in the ledger's own database: stock and reservation change in the transaction that also holds the ledger's
 * claim and commit (S2.8), so there is no moment at which one is true without the other.
 */
import type { Transaction } from 'kysely';
import { ActionFailure, fails, holds, implementAction, mismatch, verified } from '../../src/index.ts';
import { releaseInventory, reserveInventory } from './actions.ts';
import type { InventoryTables } from './tables.ts';

type Tx = Transaction<InventoryTables>;

export const reservation = implementAction(reserveInventory, {
  async precondition({ sku, quantity }, context) {
    const left = await availableOf(context.tx as Tx, sku);
    if (left === undefined) return fails(`there is no article ${sku}`);
    return left < quantity ? fails(`${left} of ${sku} are left, ${quantity} were asked for`) : holds();
  },

  async execute({ sku, quantity }, { operationId, tx: open }) {
    const tx = open as Tx;
    const reservationId = `res_${operationId}`;
    await takeStock(tx, sku, quantity);
    await tx
      .insertInto('example_reservation')
      .values({ reservation_id: reservationId, sku, quantity, is_released: 0 })
      .execute();
    return { reservationId, sku, quantity };
  },

  async verify({ sku, quantity }, { reservationId }, context) {
    const row = await reservationOf(context.tx as Tx, reservationId);
    return row?.sku === sku && row.quantity === quantity && row.is_released === 0
      ? verified()
      : mismatch(`reservation ${reservationId} is not in the books as asked`);
  },

  async rollback(_input, { reservationId }, context) {
    await giveBack(context.tx as Tx, reservationId);
  },

  async verifyRollback(_input, { reservationId }, context) {
    const row = await reservationOf(context.tx as Tx, reservationId);
    return row?.is_released === 1 ? verified() : mismatch(`reservation ${reservationId} still stands`);
  },
});

export const release = implementAction(releaseInventory, {
  async precondition({ reservationId }, context) {
    const row = await reservationOf(context.tx as Tx, reservationId);
    if (!row) return fails(`there is no reservation ${reservationId}`);
    return row.is_released === 1 ? fails(`${reservationId} was given back before`) : holds();
  },

  async execute({ reservationId }, context) {
    const given = await giveBack(context.tx as Tx, reservationId);
    if (!given) throw ActionFailure.notSent(`${reservationId} was given back meanwhile`);
    return { reservationId, sku: given.sku, quantity: given.quantity };
  },

  async verify(_input, { reservationId }, context) {
    const row = await reservationOf(context.tx as Tx, reservationId);
    return row?.is_released === 1 ? verified() : mismatch(`reservation ${reservationId} still stands`);
  },

  /** Takes the stock again, if it is still there: giving back is undone by reserving anew. */
  async rollback(_input, { reservationId, sku, quantity }, context) {
    const tx = context.tx as Tx;
    if (!(await mark(tx, reservationId, 0))) return; // taken again by an earlier attempt
    await takeStock(tx, sku, quantity);
  },

  async verifyRollback(_input, { reservationId }, context) {
    const row = await reservationOf(context.tx as Tx, reservationId);
    return row?.is_released === 0 ? verified() : mismatch(`reservation ${reservationId} is still given back`);
  },
});

async function availableOf(tx: Tx, sku: string): Promise<number | undefined> {
  const row = await tx
    .selectFrom('example_stock')
    .select('available')
    .where('sku', '=', sku)
    .executeTakeFirst();
  return row?.available;
}

/** Asks the stock again in the update itself: on PostgreSQL another transaction may have taken it since. */
async function takeStock(tx: Tx, sku: string, quantity: number): Promise<void> {
  const taken = await tx
    .updateTable('example_stock')
    .set(({ eb }) => ({ available: eb('available', '-', quantity) }))
    .where('sku', '=', sku)
    .where('available', '>=', quantity)
    .executeTakeFirst();
  if (taken.numUpdatedRows === 0n) throw ActionFailure.notSent(`the stock of ${sku} changed meanwhile`);
}

/** Answers the reservation when it was this call that gave it back. */
async function giveBack(tx: Tx, reservationId: string) {
  const given = await mark(tx, reservationId, 1);
  if (!given) return undefined;
  await tx
    .updateTable('example_stock')
    .set(({ eb }) => ({ available: eb('available', '+', given.quantity) }))
    .where('sku', '=', given.sku)
    .execute();
  return given;
}

function mark(tx: Tx, reservationId: string, isReleased: 0 | 1) {
  return tx
    .updateTable('example_reservation')
    .set({ is_released: isReleased })
    .where('reservation_id', '=', reservationId)
    .where('is_released', '=', 1 - isReleased)
    .returning(['sku', 'quantity'])
    .executeTakeFirst();
}

function reservationOf(tx: Tx, reservationId: string) {
  return tx
    .selectFrom('example_reservation')
    .selectAll()
    .where('reservation_id', '=', reservationId)
    .executeTakeFirst();
}
