/** The oracle is the two balances, read from the tables themselves. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { transferFunds } from '../../examples/transfer/actions.ts';
import { transfer } from '../../examples/transfer/handlers.ts';
import { migrateTransfer } from '../../examples/transfer/tables.ts';
import type { TransferTables } from '../../examples/transfer/tables.ts';
import { implementAction, mismatch } from '../../src/index.ts';
import type { Action } from '../../src/index.ts';
import { openTestServer } from '../../src/testing/index.ts';
import type { TestServer } from '../../src/testing/index.ts';
import { createTestDatabase } from '../support/postgres.ts';
import type { TestDatabase } from '../support/postgres.ts';
import { handlersOf, openExample } from './open-example.ts';
import type { OpenExample } from './open-example.ts';

const handlers = handlersOf(transfer, transferFunds);
const HUNDRED = { from: 'A', to: 'B', amountCents: 10_000 };

let server: TestServer;
let example: OpenExample<TransferTables>;
let database: TestDatabase | null = null;
const open = async (action: Action, store: 'sqlite' | 'postgres' = 'sqlite') => {
  database = store === 'postgres' ? await createTestDatabase() : null;
  example = await openExample<TransferTables>(server, [action], migrateTransfer, {
    ...(database && { store: database.url }),
  });
};
afterEach(async () => {
  await example.close();
  await database?.drop();
});

const balances = () =>
  example.tables(async (tx) => {
    const rows = await tx.selectFrom('example_account').selectAll().orderBy('account_id').execute();
    return Object.fromEntries(rows.map((row) => [row.account_id, row.balance_cents]));
  });
const setBalance = (account: string, cents: number) =>
  example.tables((tx) =>
    tx
      .updateTable('example_account')
      .set({ balance_cents: cents })
      .where('account_id', '=', account)
      .execute(),
  );
const transfers = () => example.tables((tx) => tx.selectFrom('example_transfer').selectAll().execute());

beforeAll(async () => {
  server = await openTestServer('local');
});
afterAll(() => server.close());

describe.each(['sqlite', 'postgres'] as const)('transfer example on %s', (store) => {
  beforeEach(() => open(transfer, store));

  test('[S1.5] [S2.8] $100 moves once, however often the same key asks', async () => {
    const first = await example.call('transfer_funds', HUNDRED, 'rent');
    const again = await Promise.all([1, 2, 3].map(() => example.call('transfer_funds', HUNDRED, 'rent')));
    expect(first).toMatchObject({
      status: 'completed',
      effect: 'applied',
      result: { amountCents: 10_000, balancesCents: { from: 140_000, to: 30_000 } },
    });
    expect(again.map(({ result }) => result)).toEqual(Array(3).fill(first.result));
    expect(await balances()).toEqual({ A: 140_000, B: 30_000 });
    expect(await transfers()).toHaveLength(1);
  });

  test('[S2.2] [S1.6] it is refused at $1,000.00 with what was found, and the same key succeeds once there is more', async () => {
    await setBalance('A', 100_000);
    const refused = await example.call('transfer_funds', HUNDRED, 'rent');
    expect(refused).toMatchObject({ status: 'failed', effect: 'none', cause: 'precondition_failed' });
    expect(refused.error?.message).toContain('account A holds $1,000.00');
    expect(await balances()).toEqual({ A: 100_000, B: 20_000 });
    await setBalance('A', 100_001);
    const done = await example.call('transfer_funds', HUNDRED, 'rent');
    expect(done).toMatchObject({ status: 'completed', effect: 'applied' });
    expect(done.taskId).not.toBe(refused.taskId);
    expect(await balances()).toEqual({ A: 90_001, B: 30_000 });
  });

  test('[S2.2] of five at once, only as many succeed as the balance allows', async () => {
    await setBalance('A', 115_000);
    const ends = await Promise.all(
      [1, 2, 3, 4, 5].map((n) => example.call('transfer_funds', HUNDRED, `rent-${n}`)),
    );
    expect(ends.map(({ status }) => status).sort()).toEqual([
      'completed',
      'completed',
      'failed',
      'failed',
      'failed',
    ]);
    expect(await balances()).toEqual({ A: 95_000, B: 40_000 });
    expect(await transfers()).toHaveLength(2);
  });

  test('[S2.8] transfers both ways at once add up', async () => {
    await setBalance('B', 150_000);
    const back = { from: 'B', to: 'A', amountCents: 10_000 };
    const calls = [1, 2, 3, 4].map((n) =>
      example.call('transfer_funds', n % 2 ? HUNDRED : back, `swap-${n}`),
    );
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(Array(4).fill('completed'));
    expect(await balances()).toEqual({ A: 150_000, B: 150_000 });
  });

  test('[S2.1] the same key with another amount is a conflict that names the path and moves nothing', async () => {
    await example.call('transfer_funds', HUNDRED, 'rent');
    const other = example.call('transfer_funds', { ...HUNDRED, amountCents: 20_000 }, 'rent');
    await expect(other).rejects.toMatchObject({
      code: 'idempotency_conflict',
      details: { paths: ['/amountCents'] },
    });
    expect(await balances()).toEqual({ A: 140_000, B: 30_000 });
  });

  test.each([
    [{ ...HUNDRED, to: 'A' }],
    [{ ...HUNDRED, amountCents: 99.5 }],
    [{ ...HUNDRED, amountCents: -10_000 }],
    [{ ...HUNDRED, memo: 'x' }],
  ])('[S1.4] %j is refused as invalid before anything starts', async (args) => {
    await expect(example.start('transfer_funds', args, 'rent')).rejects.toMatchObject({
      code: 'invalid_arguments',
    });
    expect(await transfers()).toEqual([]);
  });

  test('[S2.2] an account that does not exist, or holds less than the amount, is named', async () => {
    const nobody = await example.call('transfer_funds', { ...HUNDRED, to: 'C' }, 'a');
    expect(nobody.error?.message).toContain('no account C');
    const more = await example.call('transfer_funds', { ...HUNDRED, amountCents: 150_001 }, 'b');
    expect(more.error?.message).toContain('$1,500.01 were asked for');
    expect(await balances()).toEqual({ A: 150_000, B: 20_000 });
  });
});

describe('transfer example, when something breaks', () => {
  test('[S2.8] a failure between the two bookings leaves no trace', async () => {
    const breaking = implementAction(transferFunds, {
      ...handlers,
      execute: async (input, context) => {
        await handlers.execute(input, context);
        throw new Error('the process is as good as dead');
      },
    });
    await open(breaking);
    const end = await example.call('transfer_funds', HUNDRED, 'rent');
    expect(end).toMatchObject({ status: 'failed', effect: 'none', cause: 'retries_exhausted' });
    expect(await balances()).toEqual({ A: 150_000, B: 20_000 });
    expect(await transfers()).toEqual([]);
  });

  test('[S2.6] [S6.2] [S6.5] a transfer that does not verify leaves the balances as they were, and a person hears of it', async () => {
    const doubtful = implementAction(transferFunds, {
      ...handlers,
      verify: () => Promise.resolve(mismatch('told so by the test')),
    });
    await open(doubtful);
    const end = await example.call('transfer_funds', HUNDRED, 'rent');
    expect(end).toMatchObject({ status: 'failed', cause: 'verify_failed' });
    expect(await example.alerts(end.taskId)).toContain('verify_failed');
    expect(await balances()).toEqual({ A: 150_000, B: 20_000 });
  });
});
