// Decisions of a procedure (S3.7) on a whole Holdfast: real ledger, real workflow code, time-skipping server.
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { z } from 'zod';
import { ActionFailure, defineAction, defineProcedure, implementAction } from '../../src/index.ts';
import { ProcedureStage } from '../support/procedure-stage.ts';

const code = fileURLToPath(new URL('../support/procedures/decided.ts', import.meta.url));
const input = z.object({ topic: z.string() });

const INTERVAL_MS = 3_600_000;
/** When it was asked, by the engine's clock, and how often its answer is no use. */
let asked: number[] = [];
let uselessAnswers = 0;

const model = implementAction(
  defineAction({
    name: 'ask_model',
    version: 1,
    description: 'Asks a model.',
    input,
    output: z.object({ answer: z.string() }),
    effect: 'safe',
    retry: { maximumRetries: 20, initialInterval: '1ms', maximumInterval: '1ms' },
    decision: { asksMax: 3, interval: INTERVAL_MS },
    deadlines: { run: '30d' },
  }),
  {
    async execute() {
      asked.push(await stage.holdfast.env.currentTimeMs());
      if (asked.length <= uselessAnswers)
        throw new ActionFailure({ kind: 'notApplied', code: 'overloaded', message: 'later' });
      return { answer: `answer ${asked.length}` };
    },
  },
);

let stage: ProcedureStage;
beforeAll(async () => {
  const contracts = ['advised', 'told'].map((name) =>
    defineProcedure({ name, description: 'Asks a model.', input }),
  );
  stage = await ProcedureStage.open({ actions: [model], procedures: { code, contracts } });
});
afterAll(() => stage?.holdfast.close());
beforeEach(() => {
  asked = [];
  uselessAnswers = 0;
});

it('a decision whose asks are spent is a typed failure that the code can handle [S3.7] retry', async () => {
  uselessAnswers = 100;
  const answer = await stage.ended(await stage.start('advised', { topic: 'rain' }));
  expect(answer).toMatchObject({
    status: 'completed',
    effect: 'none',
    result: { step: 'advice', cause: 'decision_budget_spent', code: 'decision_budget_spent' },
  });
  expect(asked).toHaveLength(3);
});

it('is asked again only after its interval, and goes on with the answer that was recorded [S3.7] retry', async () => {
  uselessAnswers = 2;
  const answer = await stage.ended(await stage.start('advised', { topic: 'snow' }));
  expect(answer).toMatchObject({ status: 'completed', result: { answer: 'answer 3' } });
  const [first = 0, second = 0, third = 0] = asked;
  for (const waitedMs of [second - first, third - second])
    expect(waitedMs).toBeGreaterThanOrEqual(INTERVAL_MS - 1_000);
});

it('a plain step has the retries of its contract, and no budget of a decision', async () => {
  uselessAnswers = 5;
  const answer = await stage.ended(await stage.start('told', { topic: 'hail' }));
  expect(answer).toMatchObject({ status: 'completed', result: { answer: 'answer 6' } });
  expect(asked).toHaveLength(6);
});
