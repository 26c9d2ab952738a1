/** The example's tables in the ledger's database, and the two accounts it starts with. */
import type { Kysely } from 'kysely';

export interface TransferTables {
  example_account: { account_id: string; balance_cents: number };
  example_transfer: {
    operation_id: string;
    from_account: string;
    to_account: string;
    amount_cents: number;
    from_balance_cents: number;
    to_balance_cents: number;
    is_reversed: number;
  };
}

/** Creates what is missing and touches nothing that is there; runs at every start. */
export async function migrateTransfer(ledger: Kysely<unknown>): Promise<void> {
  const db = ledger as Kysely<TransferTables>;
  await db.schema
    .createTable('example_account')
    .ifNotExists()
    .addColumn('account_id', 'varchar(64)', (column) => column.primaryKey())
    .addColumn('balance_cents', 'integer', (column) => column.notNull())
    .execute();
  await db.schema
    .createTable('example_transfer')
    .ifNotExists()
    .addColumn('operation_id', 'varchar(64)', (column) => column.primaryKey())
    .addColumn('from_account', 'varchar(64)', (column) => column.notNull())
    .addColumn('to_account', 'varchar(64)', (column) => column.notNull())
    .addColumn('amount_cents', 'integer', (column) => column.notNull())
    .addColumn('from_balance_cents', 'integer', (column) => column.notNull())
    .addColumn('to_balance_cents', 'integer', (column) => column.notNull())
    .addColumn('is_reversed', 'integer', (column) => column.notNull())
    .execute();
  await db
    .insertInto('example_account')
    .values([
      { account_id: 'A', balance_cents: 150_000 },
      { account_id: 'B', balance_cents: 20_000 },
    ])
    .onConflict((conflict) => conflict.column('account_id').doNothing())
    .execute();
}
