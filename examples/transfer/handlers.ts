/**
 * The deed: two balances and one record, in the transaction that also holds the ledger's claim and commit (S2.8).
 * The condition is asked twice, by the precondition and by the update itself, because on PostgreSQL another
 * transaction may commit in between.
 */
import type { Transaction } from 'kysely';
import { ActionFailure, fails, holds, implementAction, mismatch, verified } from '../../src/index.ts';
import { BALANCE_CENTS_ABOVE, transferFunds } from './actions.ts';
import type { TransferTables } from './tables.ts';

type Tx = Transaction<TransferTables>;

export const transfer = implementAction(transferFunds, {
  async precondition({ from, to, amountCents }, context) {
    const tx = context.tx as Tx;
    const payer = await balanceOf(tx, from);
    if (payer === undefined) return fails(`there is no account ${from}`);
    if ((await balanceOf(tx, to)) === undefined) return fails(`there is no account ${to}`);
    if (payer <= BALANCE_CENTS_ABOVE) {
      return fails(
        `account ${from} holds ${dollars(payer)}; it must hold more than ${dollars(BALANCE_CENTS_ABOVE)}`,
      );
    }
    return payer < amountCents
      ? fails(`account ${from} holds ${dollars(payer)}; ${dollars(amountCents)} were asked for`)
      : holds();
  },

  async execute({ from, to, amountCents }, { operationId, tx: open }) {
    const tx = open as Tx;
    const fromCents = await add(tx, from, -amountCents, Math.max(BALANCE_CENTS_ABOVE + 1, amountCents));
    if (fromCents === undefined) throw ActionFailure.notSent(`the balance of ${from} changed meanwhile`);
    const toCents = await add(tx, to, amountCents, 0);
    if (toCents === undefined) throw ActionFailure.notSent(`account ${to} is gone`);
    await tx
      .insertInto('example_transfer')
      .values({
        operation_id: operationId,
        from_account: from,
        to_account: to,
        amount_cents: amountCents,
        from_balance_cents: fromCents,
        to_balance_cents: toCents,
        is_reversed: 0,
      })
      .execute();
    return {
      transferId: operationId,
      from,
      to,
      amountCents,
      balancesCents: { from: fromCents, to: toCents },
    };
  },

  async verify({ from, to, amountCents }, { transferId, balancesCents }, context) {
    const tx = context.tx as Tx;
    const booked = await transferOf(tx, transferId);
    if (booked?.amount_cents !== amountCents)
      return mismatch(`transfer ${transferId} is not booked as asked`);
    const [fromCents, toCents] = [await balanceOf(tx, from), await balanceOf(tx, to)];
    return fromCents === balancesCents.from && toCents === balancesCents.to
      ? verified()
      : mismatch(
          `the balances are ${fromCents} and ${toCents}, not ${balancesCents.from} and ${balancesCents.to}`,
        );
  },

  async rollback({ from, to, amountCents }, { transferId }, context) {
    const tx = context.tx as Tx;
    const reversed = await tx
      .updateTable('example_transfer')
      .set({ is_reversed: 1 })
      .where('operation_id', '=', transferId)
      .where('is_reversed', '=', 0)
      .executeTakeFirst();
    if (reversed.numUpdatedRows === 0n) return; // reversed by an earlier attempt
    const taken = await add(tx, to, -amountCents, amountCents);
    if (taken === undefined)
      throw ActionFailure.permanent(`account ${to} no longer holds ${dollars(amountCents)}`);
    await add(tx, from, amountCents, 0);
  },

  async verifyRollback(_input, { transferId }, context) {
    const booked = await transferOf(context.tx as Tx, transferId);
    return booked?.is_reversed === 1 ? verified() : mismatch(`transfer ${transferId} is not reversed`);
  },

  rehearsal: {
    args: { from: 'A', to: 'B', amountCents: 100 },
    // One row for each transfer that moved money, in the same transaction as the money.
    count: async (operationId, { tx }) => ((await transferOf(tx as Tx, operationId)) === undefined ? 0 : 1),
    undone: async (operationId, { tx }) => (await transferOf(tx as Tx, operationId))?.is_reversed ?? 0,
  },
});

async function balanceOf(tx: Tx, account: string): Promise<number | undefined> {
  const row = await tx
    .selectFrom('example_account')
    .select('balance_cents')
    .where('account_id', '=', account)
    .executeTakeFirst();
  return row?.balance_cents;
}

/** Changes a balance that is at least `atLeastCents`; answers the new one, or undefined when it is not. */
async function add(
  tx: Tx,
  account: string,
  cents: number,
  atLeastCents: number,
): Promise<number | undefined> {
  const row = await tx
    .updateTable('example_account')
    .set(({ eb }) => ({ balance_cents: eb('balance_cents', '+', cents) }))
    .where('account_id', '=', account)
    .where('balance_cents', '>=', atLeastCents)
    .returning('balance_cents')
    .executeTakeFirst();
  return row?.balance_cents;
}

function transferOf(tx: Tx, transferId: string) {
  return tx
    .selectFrom('example_transfer')
    .selectAll()
    .where('operation_id', '=', transferId)
    .executeTakeFirst();
}

function dollars(cents: number): string {
  return (cents / 100).toLocaleString('en-US', { style: 'currency', currency: 'USD' });
}
