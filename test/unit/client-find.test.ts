import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { HoldfastClient } from '../../src/client/index.ts';
import { defineAction, implementAction } from '../../src/index.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { openLedger } from '../../src/ledger/open-ledger.ts';
import { HandDrivenEngine } from '../support/hand-driven-engine.ts';

const ann = { tenant: 'acme', subject: 'ann', roles: [] };
const bob = { tenant: 'acme', subject: 'bob', roles: [] };
const eve = { tenant: 'other', subject: 'eve', roles: [] };
const pay = implementAction(
  defineAction({
    name: 'pay',
    version: 1,
    description: 'moves money',
    effect: 'unsafe',
    input: z.object({ amount: z.int() }),
    output: z.object({}),
    rollback: { kind: 'outOfBand' },
    verify: { none: 'the bank says so' },
  }),
  { execute: () => Promise.resolve({}) },
);

let ledger: Ledger;
let client: HoldfastClient;
beforeEach(async () => {
  ledger = await openLedger({ url: 'sqlite::memory:', allowEphemeral: true });
  await ledger.migrate();
  client = new HoldfastClient(
    { temporal: null as never, ledger, actions: [pay], taskQueue: 'q' },
    new HandDrivenEngine(),
  );
});
afterEach(() => ledger.close());

const begun = () => client.start({ action: 'pay', args: { amount: 1 }, key: 'order-7', principal: ann });
const notFound = { code: 'task_not_found' };

test('[M6.3] a call whose answer never came is found under its tool and key, by whoever may read it by its id', async () => {
  const { taskId } = await begun();
  for (const principal of [ann, bob])
    expect(await client.find({ action: 'pay', key: 'order-7', principal })).toMatchObject(
      await client.get(taskId, principal),
    );
});

test('[M6.3] what nobody has reserved is not found, in words that do not deny a call on its way', async () => {
  await begun();
  for (const [action, key] of [
    ['pay', 'order-8'],
    ['pay_not', 'order-7'],
  ] as const) {
    const reading = client.find({ action, key, principal: ann });
    await expect(reading).rejects.toMatchObject({ ...notFound, message: /may still be on its way/ });
  }
});

test('[M2.6] [M7.1] another tenant’s key reads like one that was never used', async () => {
  const own = client.find({ action: 'pay', key: 'order-7', principal: eve });
  const unused = await own.catch((error: unknown) => String(error));
  await begun();
  const foreign = client.find({ action: 'pay', key: 'order-7', principal: eve });
  await expect(foreign).rejects.toMatchObject(notFound);
  expect(await foreign.catch((error: unknown) => String(error))).toBe(unused);
});

test('[M2.2] without the ledger nothing is said to be absent', async () => {
  await begun();
  await ledger.close();
  await expect(client.find({ action: 'pay', key: 'order-7', principal: ann })).rejects.toMatchObject({
    code: 'ledger_unavailable',
  });
  ledger = await openLedger({ url: 'sqlite::memory:', allowEphemeral: true });
});
