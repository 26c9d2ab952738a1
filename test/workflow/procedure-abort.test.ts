// A cancel that meets a step's first attempt, whose contract nobody knows before it has planned (S7.4).
import { Context } from '@temporalio/activity';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { applied, defineAction, implementAction, notApplied } from '../../src/index.ts';
import { deferred } from '../support/deferred.ts';
import { ANN, ProcedureStage, until } from '../support/procedure-stage.ts';

const asked = new Set<string>();
/** Activities that the engine told of the cancel, and handlers that heard of it. */
const [told, heard] = [new Set<string>(), new Set<string>()];
const gate = deferred();
const done = new Set<string>();
const undone: string[] = [];

const waits = (name: string, cancelAttempt: 'finish' | 'abort') =>
  implementAction(
    defineAction({
      name,
      version: 1,
      description: 'Takes its time.',
      input: z.object({}),
      output: z.object({}),
      effect: 'conditional',
      lookup: 'conclusive',
      rollback: { kind: 'inBand' },
      verify: { none: 'its target is this test' },
      deadlines: { settle: '1s' },
      cancelAttempt,
    }),
    {
      async execute(_input, { signal }) {
        Context.current().cancellationSignal.addEventListener('abort', () => told.add(name));
        const stopped = new Promise<never>((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            heard.add(name);
            reject(new Error('stopped'));
          });
        });
        asked.add(name);
        await Promise.race([gate.promise, stopped]);
        done.add(name);
        return {};
      },
      lookup: () => Promise.resolve(done.has(name) ? applied({}) : notApplied()),
      rollback: () => {
        if (done.delete(name)) undone.push(name);
        return Promise.resolve();
      },
    },
  );

let stage: ProcedureStage;
beforeAll(async () => {
  stage = await ProcedureStage.open({ actions: [waits('patient', 'finish'), waits('hasty', 'abort')] });
});
afterAll(() => stage?.holdfast.close());

it('stops where its contract says so, and is left to finish where it does not [S7.4][S7.5][case 26]', async () => {
  const taskId = await stage.start('two_ways');
  await until(() => asked.size === 2);
  await stage.holdfast.client.cancel(taskId, ANN);
  await until(() => told.size === 2);
  await until(() => heard.size > 0);
  gate.resolve();
  expect(await stage.ended(taskId)).toMatchObject({ status: 'cancelled', effect: 'rolled_back' });
  expect([[...heard], undone]).toEqual([['hasty'], ['patient']]);
});
