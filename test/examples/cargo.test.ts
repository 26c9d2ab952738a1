/** The oracle is the freight desk's own log: what it did, in the order in which it did it. */
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { bookCargo } from '../../examples/cargo/actions.ts';
import { actions } from '../../examples/cargo/handlers.ts';
import { startFreightDesk } from '../../examples/cargo/service.ts';
import type { FreightDesk } from '../../examples/cargo/service.ts';
import { openTestServer, rehearseProcedure } from '../../src/testing/index.ts';
import type { TestHoldfastOptions, TestServer } from '../../src/testing/index.ts';
import { openExample } from './open-example.ts';
import type { OpenExample } from './open-example.ts';

const CARGO = { cargo: 'c-7', weightKg: 1_000 };
const code = fileURLToPath(new URL('../../examples/cargo/procedures.ts', import.meta.url));
const RESERVED = ['reserve funds', 'reserve slot', 'book carrier'];

let desk: FreightDesk;
let server: TestServer;
let example: OpenExample<unknown>;
/** What a test makes go wrong in the worker; nothing. */
let faults: TestHoldfastOptions['faults'];
beforeEach(async () => {
  desk = await startFreightDesk();
  process.env['HOLDFAST_FREIGHT_URL'] = desk.url;
  faults = undefined;
  example = await openExample(server, [...actions], undefined, {
    procedures: { code, contracts: [bookCargo] },
    faults: async (place) => faults?.(place),
  });
});
afterEach(async () => {
  await example.close();
  await desk.close();
});
beforeAll(async () => {
  server = await openTestServer('local');
});
afterAll(() => server.close());

const book = (args = CARGO) => example.call('book_cargo', args, 'order-7');

describe('cargo example', () => {
  test('funds, slot and carrier are reserved in that order, once, however often the same key asks [S6.3] [S1.5]', async () => {
    const end = await book();
    expect(end).toMatchObject({ status: 'completed', effect: 'applied' });
    expect(end.result).toEqual({
      ...CARGO,
      weightKg: undefined,
      amountCents: 12_000,
      funds: 'fd_1',
      slot: 'sl_1',
      carrier: 'ca_1',
    });
    expect(await book()).toMatchObject({ replayed: true, result: end.result });
    expect(desk.books()).toMatchObject({
      log: RESERVED,
      funds: 1,
      slots: 1,
      carriers: 1,
      centsLeft: 9_988_000,
    });
  });

  test('a carrier that refuses for good: slot, then funds are given back, each once [S6.3] permanent', async () => {
    const end = await book({ ...CARGO, weightKg: 20_001 });
    expect(end).toMatchObject({ status: 'failed', effect: 'rolled_back', cause: 'permanent_failure' });
    expect(end.error).toMatchObject({ details: { step: 'carrier' } });
    expect(end.error?.message).toContain('no carrier takes more than 20000 kg');
    expect(desk.books()).toMatchObject({
      log: ['reserve funds', 'reserve slot', 'release slot', 'release funds'],
      funds: 0,
      slots: 0,
      centsLeft: 10_000_000,
    });
  });

  test('the worker crashed after the funds were reserved: asked again, the desk answers the earlier reservation [S2.11] [S5.1] crash', async () => {
    const crash = new Error('the worker is gone');
    let crashes = 0;
    faults = async ({ point, about }) => {
      if (point !== 'after_effect' || about !== 'effect' || crashes > 0) return;
      crashes += 1;
      throw crash;
    };
    expect(await book()).toMatchObject({ status: 'completed', result: { funds: 'fd_1' } });
    expect(crashes).toBe(1);
    expect(desk.books()).toMatchObject({ log: RESERVED, repeats: 1, funds: 1 });
  });

  test('op-reserve-1, repeated after its reply was lost, is the earlier reservation [S1.3] crash', async () => {
    const [funds] = actions;
    const context = { operationId: 'op-reserve-1', signal: AbortSignal.timeout(10_000) } as Parameters<
      typeof funds.handlers.execute
    >[1];
    const reserve = () => funds.handlers.execute({ amountCents: 500 } as never, context);
    desk.behave('drop', 1);
    await expect(reserve()).rejects.toThrow();
    expect(await reserve()).toEqual({ id: 'fd_1' });
    expect(await reserve()).toEqual({ id: 'fd_1' });
    expect(desk.books()).toMatchObject({ log: ['reserve funds'], repeats: 2, centsLeft: 9_999_500 });
  });

  test.each(['slots', 'carriers'])(
    'a lost answer about %s is looked up, not sent again [S2.4]',
    async (at) => {
      desk.behave('drop', 1, at);
      expect(await book()).toMatchObject({ status: 'completed' });
      expect(desk.books()).toMatchObject({ log: RESERVED, repeats: 0 });
    },
  );

  test('a cancel during the last step: the carrier is booked, and all three are undone, newest first [S6.3] [S7.4] [case 27]', async () => {
    desk.behave('hold', 1, 'carriers');
    const { taskId } = await example.start('book_cargo', CARGO, 'order-7');
    await desk.held();
    await example.cancel(taskId);
    desk.release();
    expect(await example.wait(taskId)).toMatchObject({ status: 'cancelled', effect: 'rolled_back' });
    expect(desk.books()).toMatchObject({
      log: [...RESERVED, 'cancel carrier', 'release slot', 'release funds'],
      funds: 0,
      slots: 0,
      carriers: 0,
    });
  });

  test('a slot for another cargo is not taken for this one: it and the funds are given back, and a person hears of it [S2.6] [S6.5]', async () => {
    desk.behave('wrong', 1, 'slots');
    const end = await book();
    expect(end).toMatchObject({ status: 'failed', effect: 'rolled_back', cause: 'verify_failed' });
    expect(desk.books().log).toEqual(['reserve funds', 'reserve slot', 'release slot', 'release funds']);
    expect(await example.alerts(end.taskId)).toContain('verify_failed');
  });

  test('a crash at every point of every step: the rehearsal finds no broken promise [S6.6] crash', async () => {
    const found = await rehearseProcedure(bookCargo, { args: CARGO, actions, code, server, only: 'crash' });
    expect(found.broken).toEqual([]);
    expect(found.effect).toBe('a procedure: funds, slot, carrier');
    expect(found.scenarios.length).toBeGreaterThan(6);
  });
});
