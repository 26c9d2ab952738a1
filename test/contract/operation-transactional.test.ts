/** S2.8: claim, effect, executions and result in one transaction of the ledger's own database, or none of them. */
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Kysely } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ActionFailure, fails, holds, mismatch, notYet, verified } from '../../src/contract/handlers.ts';
import type { LookContext } from '../../src/contract/handlers.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { FAULT_POINTS } from '../../src/operation/faults.ts';
import { countingLedger } from '../support/counting-ledger.ts';
import { Operation, STORES } from '../support/operation-rig.ts';
import type { Handlers, OperationSpec, TestStore } from '../support/operation-rig.ts';

const db = ({ tx }: LookContext) => tx as Kysely<unknown>;
const DEADLINES = { attempt: '1s', verify: '1s' } as const;

describe.each(STORES)('a transactional action on $kind', ({ open }) => {
  let store: TestStore;
  let ledger: Ledger;
  beforeAll(async () => {
    store = await open();
    ledger = store.ledger;
    await ledger.transaction((_transitions, tx) =>
      sql`create table effect (operation_id text not null, amount integer not null)`.execute(
        tx as Kysely<unknown>,
      ),
    );
  });
  afterAll(() => store.close());

  const insert = (operationId: string, amount: number, context: LookContext) =>
    sql`insert into effect (operation_id, amount) values (${operationId}, ${amount})`.execute(db(context));
  const rowsOf = async ({ operationId }: Operation): Promise<number> =>
    ledger.transaction(async (_transitions, tx) => {
      const { rows } = await sql<{
        n: number | string;
      }>`select count(*) as n from effect where operation_id = ${operationId}`.execute(tx as Kysely<unknown>);
      return Number(rows[0]?.n);
    });
  const reserve = ({ handlers, definition, ...rest }: OperationSpec = {}) =>
    Operation.reserve(ledger, {
      ...rest,
      definition: { transactional: true, deadlines: DEADLINES, ...definition },
      handlers: {
        async execute({ amount }, context) {
          await insert(context.operationId, amount, context);
          return { id: context.operationId, amount };
        },
        ...handlers,
      },
    });

  test('[S2.8] commits effect and record in one ledger transaction', async () => {
    const operation = await reserve({
      handlers: {
        precondition: () => Promise.resolve(holds()),
        async verify(_input, { id }, context) {
          const { rows } = await sql`select amount from effect where operation_id = ${id}`.execute(
            db(context),
          );
          return rows.length === 1 ? verified() : mismatch(`${rows.length} rows`);
        },
      },
    });
    const { ledger: counted, calls } = countingLedger(ledger);
    expect(await operation.attempt({}, { ledger: counted })).toMatchObject({
      kind: 'committed',
      replayed: false,
      result: { value: { amount: 5 } },
    });
    expect(calls).toEqual(['find', 'transaction']);
    expect(await rowsOf(operation)).toBe(1);
    expect(await operation.row()).toMatchObject({
      state: 'committed',
      executions: 1,
      attempt: 1,
      end: { status: 'completed' },
    });
    expect(await operation.attempt()).toMatchObject({ kind: 'committed' });
    expect(await rowsOf(operation)).toBe(1);
  });

  test('[S2.8] rolls everything back when the handler throws, whatever it throws: provably nothing was applied', async () => {
    const cases: [Error, string, string][] = [
      [new Error('reset'), 'released', 'released'],
      [ActionFailure.notSent('later'), 'released', 'released'],
      [ActionFailure.rateLimited('later', 500), 'released', 'released'],
      [ActionFailure.permanent('no such account'), 'failed', 'failed'],
    ];
    for (const [failure, kind, state] of cases) {
      const operation = await reserve({
        handlers: {
          async execute({ amount }, context) {
            await insert(context.operationId, amount, context);
            throw failure;
          },
        },
      });
      expect(await operation.attempt()).toMatchObject({ kind, failure: { message: failure.message } });
      expect(await operation.row()).toMatchObject({
        state,
        attempt: 1,
        failure: { message: failure.message },
      });
      expect(await rowsOf(operation)).toBe(0);
    }
  });

  test('[S2.8] a statement the database refuses rolls back too', async () => {
    const operation = await reserve({
      handlers: {
        execute: async (_input, context) => (
          await insert(context.operationId, null as never, context),
          { id: 'x', amount: 1 }
        ),
      },
    });
    expect(await operation.attempt()).toMatchObject({ kind: 'released', failure: { kind: 'notApplied' } });
    expect(await rowsOf(operation)).toBe(0);
  });

  test('[S2.6][S2.8][S6.5] a mismatch undoes it within the transaction: failed, effect none, and a person is alerted', async () => {
    const operation = await reserve({
      handlers: { verify: () => Promise.resolve(mismatch('the books do not balance')) },
    });
    expect(await operation.attempt()).toMatchObject({
      kind: 'failed',
      failure: { code: 'verify_failed', message: 'the books do not balance' },
    });
    expect(await operation.row()).toMatchObject({
      state: 'failed',
      end: { effect: 'none', cause: 'verify_failed' },
    });
    expect(await operation.alerts()).toMatchObject([
      { type: 'verify_failed', message: expect.stringContaining('the books do not balance') as string },
    ]);
    expect(await rowsOf(operation)).toBe(0);
  });

  test('[S2.8] what can’t be seen in its own transaction, or does not fit the contract, is not committed', async () => {
    const specs: OperationSpec[] = [
      { handlers: { verify: () => Promise.resolve(notYet()) } },
      { handlers: { verify: () => Promise.reject(new Error('bug')) } },
      { definition: { output: z.object({ other: z.string() }) } },
    ];
    for (const spec of specs) {
      const operation = await reserve(spec);
      expect(await operation.attempt()).toMatchObject({ kind: 'released' });
      expect(await rowsOf(operation)).toBe(0);
    }
  });

  test('[S2.2][S2.8] its precondition is read in the same transaction', async () => {
    const seen: boolean[] = [];
    const operation = await reserve({
      handlers: {
        precondition: ({ amount }, context) =>
          Promise.resolve((seen.push(context.tx !== undefined && amount === 5), fails('closed'))),
      },
    });
    expect(await operation.attempt()).toEqual({ kind: 'refused', reason: 'closed' });
    expect(seen).toEqual([true]);
    expect(await operation.row()).toMatchObject({ state: 'refused', executions: 0 });
    const unchecked = await reserve({ handlers: { precondition: () => Promise.reject(new Error('down')) } });
    expect(await unchecked.attempt()).toMatchObject({ kind: 'released' });
  });

  test('[S2.8] a handler that takes more than a second loses its transaction, and what it does later is refused', async () => {
    const later: unknown[] = [];
    const operation = await reserve({
      handlers: {
        async execute({ amount }, context) {
          await insert(context.operationId, amount, context);
          await sleep(1_300);
          later.push(
            await insert(context.operationId, amount, context).catch(
              (error: unknown) => (error as Error).message,
            ),
          );
          return { id: 'x', amount };
        },
      },
    });
    expect(await operation.attempt()).toMatchObject({ kind: 'released' });
    while (later.length === 0) await sleep(20);
    expect(later).toEqual([
      'the ledger transaction of this attempt is over; nothing more may be written in it',
    ]);
    expect(await rowsOf(operation)).toBe(0);
  });

  test.each(FAULT_POINTS)('[S2.11] dies %s and is carried out once by the next attempt', async (point) => {
    const operation = await reserve();
    await operation.crash(point);
    expect(await operation.attempt()).toMatchObject({ kind: 'committed' });
    expect(await rowsOf(operation)).toBe(1);
    expect(await operation.row()).toMatchObject({ state: 'committed', executions: 1 });
  });

  test('[S2.3][S2.8] begun many times at once, its effect takes place once', async () => {
    const operation = await reserve();
    const outcomes = await Promise.all([1, 1, 2, 2, 3].map((attempt) => operation.attempt({ attempt })));
    expect(outcomes.some(({ kind }) => kind === 'committed')).toBe(true);
    expect(await rowsOf(operation)).toBe(1);
  });

  test('[S2.8] settled without ever having committed, nothing was applied', async () => {
    const operation = await reserve();
    await operation.crash('after_effect');
    expect(await operation.attempt({ purpose: 'settle' })).toMatchObject({ kind: 'released' });
    expect(await rowsOf(operation)).toBe(0);
  });

  test('[S2.9] a large result is stored by reference after the commit', async () => {
    const text = 'x'.repeat(300_000);
    const operation = await reserve({
      definition: { output: z.any() },
      handlers: { execute: () => Promise.resolve({ text } as never) },
    });
    const outcome = await operation.attempt();
    if (outcome.kind !== 'committed' || outcome.result.kind !== 'reference') throw new Error(outcome.kind);
    expect(await ledger.getPayload('local', outcome.result.sha256)).toBe(JSON.stringify({ text }));
  });

  test('[S3.8] stopped while at work it records nothing and throws the reason', async () => {
    const stop = new AbortController();
    const operation = await reserve({
      handlers: {
        async execute({ amount }, context) {
          await insert(context.operationId, amount, context);
          stop.abort(new Error('cancelled'));
          throw new Error('aborted');
        },
      },
    });
    await expect(operation.attempt({}, {}, stop.signal)).rejects.toThrow('cancelled');
    expect(await rowsOf(operation)).toBe(0);
    expect(await operation.row()).toMatchObject({ state: 'reserved' });
  });

  test('[S2.3] an older attempt, or one whose task has ended, is refused', async () => {
    const operation = await reserve({
      handlers: { execute: () => Promise.reject(ActionFailure.notSent('later')) },
    });
    await operation.attempt({ attempt: 4 });
    expect(await operation.attempt({ attempt: 3 })).toMatchObject({ kind: 'fenceStale', rowAttempt: 4 });
  });

  describe('undone', () => {
    const undoing = (overrides: Handlers = {}): OperationSpec => ({
      plan: { onCancel: 'rollback' },
      handlers: {
        rollback: async (_input, _result, context) =>
          void (await sql`delete from effect where operation_id = ${context.originalOperationId}`.execute(
            db(context),
          )),
        async verifyRollback(_input, _result, context) {
          const { rows } =
            await sql`select 1 from effect where operation_id = ${context.originalOperationId}`.execute(
              db(context),
            );
          return rows.length === 0 ? verified() : mismatch('still there');
        },
        ...overrides,
      },
    });

    test('[S6.2][S2.8] deletes, looks and records in one transaction', async () => {
      const operation = await reserve(undoing());
      await operation.attempt();
      const { ledger: counted, calls } = countingLedger(ledger);
      expect(await operation.rollback({ reason: 'cancelled' }, { ledger: counted })).toEqual({
        kind: 'rolledBack',
      });
      expect(calls).toEqual(['find', 'transaction']);
      expect(await rowsOf(operation)).toBe(0);
      expect(await operation.row()).toMatchObject({ state: 'rolled_back', end: { status: 'cancelled' } });
    });

    test('[S6.2][S2.8] that fails leaves the effect as it was, is tried again, and goes to a person at last', async () => {
      const failing = undoing({
        rollback: async (_input, _result, context) => {
          await sql`delete from effect where operation_id = ${context.originalOperationId}`.execute(
            db(context),
          );
          throw new Error('bug');
        },
      });
      const operation = await reserve(failing);
      await operation.attempt();
      expect(await operation.rollback()).toMatchObject({ kind: 'retry' });
      expect(await rowsOf(operation)).toBe(1);
      expect(await operation.rollback({ final: true })).toMatchObject({ kind: 'attention' });
      expect(await operation.row()).toMatchObject({ state: 'attention', attentionAbout: 'rollback' });
      expect(await operation.rollback({ attempt: 1 })).toMatchObject({ kind: 'fenceStale' });
    });

    test.each(FAULT_POINTS)('[S6.6] dies %s and is finished by the next attempt', async (point) => {
      const operation = await reserve(undoing());
      await operation.attempt();
      const died = new Error('died');
      const faults = (place: { point: string }) =>
        place.point === point ? Promise.reject(died) : Promise.resolve();
      await expect(operation.rollback({}, { faults })).rejects.toBe(died);
      expect(await operation.rollback()).toEqual({ kind: 'rolledBack' });
      expect(await rowsOf(operation)).toBe(0);
    });
  });
});
