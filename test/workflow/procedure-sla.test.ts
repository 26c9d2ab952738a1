// The business SLA of a whole procedure (S5.3), on a time-skipping server.
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { z } from 'zod';
import { defineProcedure } from '../../src/index.ts';
import { newBook, useBook } from '../support/book-actions.ts';
import { ANN, BOSS, ProcedureStage, SAGA_CODE, until } from '../support/procedure-stage.ts';

let stage: ProcedureStage;
beforeAll(async () => {
  const contracts = ['trip', 'optional_hotel'].map((name) =>
    defineProcedure({ name, description: 'Is to be over soon.', input: z.looseObject({}), sla: '30m' }),
  );
  stage = await ProcedureStage.open({ procedures: { code: SAGA_CODE, contracts } });
});
afterAll(() => stage?.holdfast.close());
beforeEach(() => {
  useBook(newBook());
});

const alertsOf = async (taskId: string) =>
  (await stage.holdfast.client.detail(taskId, ANN)).alerts?.map(({ type }) => type);

it('is missed while a person is waited for: alerted once, and nothing else changes [S5.3] approval', async () => {
  const taskId = await stage.start('optional_hotel');
  await until(async () => (await stage.status(taskId)) === 'awaiting_approval');
  expect(await alertsOf(taskId)).toEqual([]);
  await stage.holdfast.skip('40m');
  await until(async () => (await alertsOf(taskId))?.length === 1);
  expect(await alertsOf(taskId)).toEqual(['sla_missed']);
  expect(await stage.status(taskId)).toBe('awaiting_approval');
  expect(await stage.holdfast.client.decide(taskId, BOSS, { kind: 'approve' })).toMatchObject({
    code: 'approved',
  });
  expect(await stage.ended(taskId)).toMatchObject({ status: 'completed', result: { hotel: 'booked' } });
  expect(await alertsOf(taskId)).toEqual(['sla_missed']);
});

it('is kept by a procedure that is over before it, which nobody hears of [S5.3]', async () => {
  const taskId = await stage.start('trip');
  expect(await stage.ended(taskId)).toMatchObject({ status: 'completed' });
  await stage.holdfast.skip('40m');
  expect(await alertsOf(taskId)).toEqual([]);
});
