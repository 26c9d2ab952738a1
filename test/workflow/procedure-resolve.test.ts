// S3.5: what a person says about a step reaches that step alone, and counts once.
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import type { ResolutionInput } from '../../src/client/task-client.ts';
import { defineAction, defineProcedure, implementAction } from '../../src/index.ts';
import type { MessageReply } from '../../workflows/messages.ts';
import { ANN, BOSS, ProcedureStage, until } from '../support/procedure-stage.ts';

/** What was sent, in order: the oracle of "once". */
let log: string[] = [];
/** Transfers to these are answered by nothing. */
const silent = new Set<string>();

const wire = implementAction(
  defineAction({
    name: 'wire',
    version: 1,
    description: 'Transfers money; nobody can look it up.',
    input: z.object({ to: z.string() }),
    output: z.object({ id: z.string() }),
    effect: 'unsafe',
    rollback: { kind: 'outOfBand' },
    verify: { none: 'the log is the oracle' },
  }),
  {
    execute: async ({ to }) => {
      log.push(to);
      if (silent.has(to)) throw new Error('the connection was reset');
      return { id: `to ${to}` };
    },
  },
);

let stage: ProcedureStage;
beforeAll(async () => {
  const code = fileURLToPath(new URL('../support/procedures/wired.ts', import.meta.url));
  const contracts = [
    defineProcedure({ name: 'two_wires', description: 'Transfers twice.', input: z.looseObject({}) }),
  ];
  stage = await ProcedureStage.open({ actions: [wire], procedures: { code, contracts } });
});
afterAll(() => stage?.holdfast.close());
beforeEach(() => {
  log = [];
  silent.clear();
});

const isWaiting = (taskId: string, step: string) =>
  until(() => stage.hasStep(taskId, step, 'needs_attention'));
const resolve = (taskId: string, input: ResolutionInput) =>
  stage.holdfast.client.resolve(taskId, BOSS, input);

async function started(...lost: string[]): Promise<string> {
  for (const to of lost) silent.add(to);
  const taskId = await stage.start('two_wires');
  for (const to of lost) await isWaiting(taskId, to);
  return taskId;
}

const bareResolve = (taskId: string, message: object) =>
  stage.holdfast.temporal.workflow
    .getHandle(taskId)
    .executeUpdate<MessageReply, [object]>('resolveTask', { args: [{ by: 'bea', ...message }] });

test('where two steps wait a resolution names its step, and the other is not sent again [S3.5]', async () => {
  const taskId = await started('a', 'b');
  await expect(resolve(taskId, { as: 'not_applied' })).rejects.toMatchObject({
    code: 'invalid_resolution',
    message: expect.stringContaining('a, b') as string,
  });
  expect(await bareResolve(taskId, { as: 'not_applied' })).toMatchObject({
    accepted: false,
    code: 'step_not_named',
  });
  silent.delete('b');
  expect(await resolve(taskId, { as: 'not_applied', step: 'b' })).toMatchObject({ accepted: true });
  await until(() => stage.hasStep(taskId, 'b', 'completed'));
  expect(log.toSorted()).toEqual(['a', 'b', 'b']);
  expect(await stage.hasStep(taskId, 'a', 'needs_attention')).toBe(true);
  expect(await resolve(taskId, { as: 'abandoned', step: 'c' })).toMatchObject({ code: 'not_in_attention' });

  const seen = { as: 'applied', result: { id: 'seen' } } as const;
  expect(await resolve(taskId, seen)).toMatchObject({ accepted: true });
  const result = { wired: [{ id: 'seen' }, { id: 'to b' }] };
  expect(await stage.ended(taskId)).toMatchObject({ status: 'completed', result });
  expect(log).toHaveLength(3);
});

test('a result is checked against the contract of its step, and asked for where nobody else has it [S3.5]', async () => {
  const taskId = await started('b');
  for (const more of [{}, { result: null }, { result: 7 }, { result: { idd: 'seen' } }])
    await expect(resolve(taskId, { as: 'applied', ...more })).rejects.toMatchObject({
      code: 'invalid_resolution',
    });
  expect(await resolve(taskId, { as: 'applied', result: { id: 'seen' } })).toMatchObject({ accepted: true });
  expect(await stage.ended(taskId)).toMatchObject({ status: 'completed' });
});

test('delivered twice it counts once, also where the step waits for a person again [S3.5]', async () => {
  const taskId = await started('a');
  const once = { as: 'not_applied', step: 'a', id: 'first' };
  expect(await bareResolve(taskId, once)).toMatchObject({ accepted: true });
  await until(() => log.filter((to) => to === 'a').length === 2);
  await isWaiting(taskId, 'a');
  await stage.holdfast.temporal.workflow.getHandle(taskId).signal('resolve', { by: 'bea', ...once });
  expect(await bareResolve(taskId, once)).toMatchObject({ accepted: true, code: 'requested' });
  expect(await stage.hasStep(taskId, 'a', 'needs_attention')).toBe(true);
  expect(await resolve(taskId, { as: 'applied', result: { id: 'seen' } })).toMatchObject({ accepted: true });
  expect(await stage.ended(taskId)).toMatchObject({ status: 'completed' });
  expect(log.toSorted()).toEqual(['a', 'a', 'b']);
  const { events } = await stage.holdfast.client.detail(taskId, ANN);
  expect(events.filter(({ type }) => type === 'resolve_requested')).toHaveLength(2);
});
