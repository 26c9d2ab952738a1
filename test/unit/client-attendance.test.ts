import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { attend, isUnattendedSince } from '../../src/client/attendance.ts';
import { HoldfastClient } from '../../src/client/index.ts';
import { defineAction, implementAction } from '../../src/index.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { openLedger } from '../../src/ledger/open-ledger.ts';
import { HandDrivenEngine } from '../support/hand-driven-engine.ts';

let ledger: Ledger;
let now = 1_000;
beforeEach(async () => {
  now = 1_000;
  ledger = await openLedger({ url: 'sqlite::memory:', allowEphemeral: true, nowMs: () => now });
  await ledger.migrate();
});
afterEach(() => ledger.close());

test('a task is unattended since its last mark, and attended by any later one, by the ledger’s clock [M5.3]', async () => {
  await attend(ledger, 'task_1', 'waiting');
  now = 2_000;
  const left = await attend(ledger, 'task_1', 'waiting');
  expect(left).toBe(2_000);
  now = 3_000;
  expect(await isUnattendedSince(ledger, 'task_1', left)).toBe(true);
  await attend(ledger, 'task_1', 'waiting');
  expect(await isUnattendedSince(ledger, 'task_1', left)).toBe(false);
  expect(await isUnattendedSince(ledger, 'task_2', left)).toBe(true);
});

test('whose handle was given away is attended for good, whoever marks it afterwards [M5.3]', async () => {
  await attend(ledger, 'task_1', 'handed');
  now = 2_000;
  const left = await attend(ledger, 'task_1', 'waiting');
  now = 1_000_000;
  expect(await isUnattendedSince(ledger, 'task_1', left)).toBe(false);
});

test('of two clients that waited for one task, the last to leave has it cancelled, and nobody of another tenant [M5.3]', async () => {
  const ann = { tenant: 'acme', subject: 'ann', roles: [] };
  const eve = { tenant: 'other', subject: 'eve', roles: [] };
  const send = implementAction(
    defineAction({
      ...{ name: 'send', version: 1, description: 'sends', effect: 'conditional', onAbandon: 'cancel' },
      ...{
        input: z.object({ to: z.string() }),
        output: z.object({ operationId: z.string() }),
        verify: { none: 'nothing to read' },
      },
      rollback: { kind: 'none', reason: 'it is sent' },
    }),
    { execute: async (_input, { operationId }) => ({ operationId }) },
  );
  const engine = new HandDrivenEngine();
  const options = { temporal: null as never, ledger, actions: [send], taskQueue: 'q' };
  const [here, there] = [new HoldfastClient(options, engine), new HoldfastClient(options, engine)];
  const call = { action: 'send', args: { to: 'bob' }, principal: ann };
  const { taskId } = await here.start(call);
  expect(await there.start(call)).toMatchObject({ taskId, attached: true });
  const leftHere = await here.attend(taskId, ann, 'waiting');
  now += 1;
  const leftThere = await there.attend(taskId, ann, 'waiting');
  expect(await here.cancelUnattended(taskId, ann, leftHere)).toBeNull();
  expect(engine.runs.get(taskId)?.told).toEqual([]);
  await expect(there.cancelUnattended(taskId, eve, leftThere)).rejects.toMatchObject({
    code: 'task_not_found',
  });
  await expect(there.attend(taskId, eve, 'handed')).rejects.toMatchObject({ code: 'task_not_found' });
  expect(await there.cancelUnattended(taskId, ann, leftThere)).toMatchObject({ accepted: true });
  expect(engine.runs.get(taskId)?.told).toEqual(['cancel']);
});
