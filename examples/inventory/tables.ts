/** The example's tables in the ledger's database, and the stock it starts with. */
import type { Kysely } from 'kysely';

export interface InventoryTables {
  example_stock: { sku: string; available: number };
  example_reservation: {
    /** Made from the operationId, so that one operation can't leave two reservations behind. */
    reservation_id: string;
    sku: string;
    quantity: number;
    /** 0 or 1. */
    is_released: number;
  };
}

/** Creates what is missing and touches nothing that is there; runs at every start. */
export async function migrateInventory(ledger: Kysely<unknown>): Promise<void> {
  const db = ledger as Kysely<InventoryTables>;
  await db.schema
    .createTable('example_stock')
    .ifNotExists()
    .addColumn('sku', 'varchar(64)', (column) => column.primaryKey())
    .addColumn('available', 'integer', (column) => column.notNull())
    .execute();
  await db.schema
    .createTable('example_reservation')
    .ifNotExists()
    .addColumn('reservation_id', 'varchar(128)', (column) => column.primaryKey())
    .addColumn('sku', 'varchar(64)', (column) => column.notNull())
    .addColumn('quantity', 'integer', (column) => column.notNull())
    .addColumn('is_released', 'integer', (column) => column.notNull())
    .execute();
  await db
    .insertInto('example_stock')
    .values([
      { sku: 'widget', available: 1000 },
      { sku: 'gadget', available: 10 },
      { sku: 'gizmo', available: 0 },
    ])
    .onConflict((conflict) => conflict.column('sku').doNothing())
    .execute();
}
