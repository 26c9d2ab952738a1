// Procedures whose record is larger than what one payload of the engine takes (S3.6, field case 14): never stuck, and what
// was committed is undone.
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import {
  applied,
  defineAction,
  defineProcedure,
  implementAction,
  notApplied,
  verified,
} from '../../src/index.ts';
import { createTestHoldfast } from '../../src/testing/index.ts';
import type { TestHoldfast } from '../../src/testing/index.ts';
import type { TaskAnswer } from '../../src/client/index.ts';
import { ANN, until } from '../support/procedure-stage.ts';

const PART = 'ö'.repeat(100_000);
const WAIT_MS = 120_000;

/** What was fetched and given back, in order: the oracle of "once". */
let log: string[] = [];
const fetched = new Set<string>();
beforeEach(() => {
  log = [];
  fetched.clear();
});

const fetchPart = implementAction(
  defineAction({
    name: 'fetch_part',
    version: 1,
    description: 'Fetches a part of something large.',
    input: z.object({ name: z.string(), padding: z.string() }),
    output: z.object({ id: z.string(), text: z.string() }),
    effect: 'conditional',
    rollback: { kind: 'inBand' },
    lookup: 'conclusive',
  }),
  {
    execute: async ({ name, padding }, { operationId }) => {
      if (!fetched.has(operationId)) log.push(`fetch ${name}`);
      fetched.add(operationId);
      return { id: operationId, text: padding === '' ? PART : '' };
    },
    lookup: async ({ operationId }) =>
      fetched.has(operationId) ? applied({ id: operationId, text: PART }) : notApplied(),
    verify: async () => verified(),
    rollback: async ({ name }, { id }) => {
      if (fetched.delete(id)) log.push(`return ${name}`);
    },
  },
);

const contractOf = (name: string) =>
  defineProcedure({ name, description: 'Something large.', input: z.looseObject({}) });

let holdfast: TestHoldfast;
beforeAll(async () => {
  const code = fileURLToPath(new URL('../support/procedures/large.ts', import.meta.url));
  const procedures = { code, contracts: [contractOf('collect'), contractOf('heap')] };
  holdfast = await createTestHoldfast({ actions: [fetchPart], procedures, server: 'local' });
});
afterAll(() => holdfast?.close());

let calls = 0;
async function start(action: string, args: object): Promise<string> {
  calls += 1;
  const call = { action, args: { ...args }, key: `large-${calls}`, principal: ANN };
  return (await holdfast.client.start(call)).taskId;
}
const ended = (taskId: string): Promise<TaskAnswer> =>
  holdfast.client.wait(taskId, ANN, { timeoutMs: WAIT_MS });
const named = (verb: string, parts: number): string[] =>
  Array.from({ length: parts }, (_, index) => `${verb} part ${index + 1}`);

test('[S3.6] [case 14] large results of many steps reach the code whole, whoever replays them', async () => {
  const taskId = await start('collect', { parts: 40, fail: false });
  await until(() => log.length > 30);
  await holdfast.stopWorker();
  await holdfast.startWorker();
  expect(await ended(taskId)).toMatchObject({ status: 'completed', result: { characters: 4_000_000 } });
  expect(log).toEqual(named('fetch', 40));
});

test('[S3.6] [S6.3] [case 14] and when they were in vain, every one of them is undone, newest first', async () => {
  const taskId = await start('collect', { parts: 40, fail: true });
  expect(await ended(taskId)).toMatchObject({ status: 'failed', effect: 'rolled_back' });
  expect(log).toEqual([...named('fetch', 40), ...named('return', 40).toReversed()]);
});

test('[S3.6] [S6.3] [case 14] where the engine would take no more the next step is refused before it begins, and all are undone', async () => {
  const taskId = await start('heap', { parts: 200, characters: 480_000 });
  const answer = await ended(taskId);
  expect(answer).toMatchObject({
    status: 'failed',
    effect: 'rolled_back',
    error: { code: 'procedure_too_large' },
  });
  const done = log.filter((entry) => entry.startsWith('fetch')).length;
  expect(done).toBeGreaterThan(5);
  expect(log).toEqual([...named('fetch', done), ...named('return', done).toReversed()]);
});
