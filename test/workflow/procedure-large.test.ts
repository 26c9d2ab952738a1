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
import type { JournalEntry } from '../../src/task/procedure-event.ts';
import { ANN, BOSS, until } from '../support/procedure-stage.ts';

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

/** Has no effect. */
const weigh = implementAction(
  defineAction({
    name: 'weigh',
    version: 1,
    description: 'Weighs a part of something large.',
    input: z.object({ name: z.string(), padding: z.string() }),
    output: z.object({ characters: z.number() }),
    effect: 'safe',
  }),
  { execute: ({ padding }) => Promise.resolve({ characters: padding.length }) },
);

const contractOf = (name: string) =>
  defineProcedure({ name, description: 'Something large.', input: z.looseObject({}) });

let holdfast: TestHoldfast;
beforeAll(async () => {
  const code = fileURLToPath(new URL('../support/procedures/large.ts', import.meta.url));
  const contracts = ['collect', 'heap', 'fan', 'excess', 'laden'].map(contractOf);
  holdfast = await createTestHoldfast({
    actions: [fetchPart, weigh],
    procedures: { code, contracts },
    server: 'local',
  });
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
/** The steps whose activity was scheduled, in that order. */
async function begun(taskId: string): Promise<unknown[]> {
  const events = await holdfast.temporal.workflow.getHandle(taskId).query<JournalEntry[]>('events');
  return events
    .filter(({ type }) => type === 'attempt_scheduled')
    .map(({ data }) => 'step' in data && data.step);
}
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

test('[S3.6] [case 14] ten steps begun at once with 600 KB each are all done once, in the order they were asked for', async () => {
  const taskId = await start('fan', { parts: 10, characters: 600_000, inChildren: false, fail: false });
  await until(() => log.length > 2);
  await holdfast.stopWorker();
  await holdfast.startWorker();
  expect(await ended(taskId)).toMatchObject({ status: 'completed', result: { parts: 10 } });
  expect(log.toSorted()).toEqual(named('fetch', 10).toSorted());
  expect(await begun(taskId)).toEqual(Array.from({ length: 10 }, (_, index) => `part-${index + 1}`));
});

test('[S3.6] [S6.3] [case 14] and so are ten children, and each of them is undone when it fails', async () => {
  const taskId = await start('fan', { parts: 10, characters: 600_000, inChildren: true, fail: true });

  expect(await ended(taskId)).toMatchObject({ status: 'completed', result: { parts: 10 } });
  expect(log.toSorted()).toEqual([...named('fetch', 10), ...named('return', 10)].toSorted());
});

test.each([
  { at: 'step', done: [] },
  { at: 'decide', done: [] },
  { at: 'approve', done: ['fetch part 1', 'return part 1'] },
  { at: 'restart', done: ['fetch part 1', 'return part 1'] },
  { at: 'return', done: ['fetch part 1', 'return part 1'] },
])(
  '[S3.6] [S6.3] [case 14] more than one payload takes, handed over by $at, is refused, and what was done is undone',
  async ({ at, done }) => {
    const taskId = await start('excess', { at });
    const answer = await ended(taskId);
    expect(answer).toMatchObject({ status: 'failed', error: { code: 'payload_too_large' } });
    expect(log).toEqual(done);
  },
);

test('[S6.3] what a procedure returns that is no JSON fails it, and what was done is undone', async () => {
  const answer = await ended(await start('excess', { at: 'a return that is no JSON' }));
  expect(answer).toMatchObject({ status: 'failed', error: { code: 'procedure_failed' } });
  expect(answer.error?.message).toContain('JSON');
  expect(log).toEqual(['fetch part 1', 'return part 1']);
});

test('[S3.6] [case 14] an input and a record that only together are too large for one payload do not cross together', async () => {
  const taskId = await start('laden', { text: 'x'.repeat(1_048_000), characters: 1_043_000 });
  await until(async () => (await holdfast.client.get(taskId, ANN)).status === 'awaiting_approval');
  const handle = holdfast.temporal.workflow.getHandle(taskId);
  for (let sent = 0; sent < 8; sent += 1)
    await handle.signal('approve', { callId: 'home#9', by: ANN, noise: 'x'.repeat(1_000_000) });
  await holdfast.client.decide(taskId, BOSS, { kind: 'approve', callId: 'home#1' });
  expect(await ended(taskId)).toMatchObject({ status: 'completed', result: { characters: 1_048_000 } });
  expect(log).toEqual(['fetch part 1']);
});
