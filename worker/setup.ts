/** Runs a configuration's `setup`: the tables of transactional actions. One worker at a time, in one transaction. */
import { sql } from 'kysely';
import type { Kysely } from 'kysely';
import type { HoldfastConfig } from '../src/contract/define-config.ts';
import type { Ledger } from '../src/ledger/ledger.ts';

/** `CREATE TABLE IF NOT EXISTS` of two workers at once fails on PostgreSQL; this advisory lock orders them. */
const SETUP_LOCK = 7_400_002;

export async function runSetup(ledger: Ledger, setup: NonNullable<HoldfastConfig['setup']>): Promise<void> {
  await ledger.transaction(async (_transitions, tx) => {
    const database = tx as Kysely<unknown>;
    if (ledger.kind === 'postgres') await sql`select pg_advisory_xact_lock(${SETUP_LOCK})`.execute(database);
    await setup(database);
  });
}
