// People and cancels in a procedure, where the field cases have them in a single call: by signal, by the engine, past every
// budget, and while it is being undone.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { defineProcedure } from '../../src/index.ts';
import { z } from 'zod';
import { newBook, useBook } from '../support/book-actions.ts';
import type { Book } from '../support/book-actions.ts';
import { deferred } from '../support/deferred.ts';
import { ANN, BOSS, ProcedureStage, SAGA_CODE, until } from '../support/procedure-stage.ts';

let stage: ProcedureStage;
let book: Book;

beforeAll(async () => {
  const input = z.looseObject({});
  const contracts = ['trip', 'optional_hotel', 'halted_trip'].map((name) =>
    defineProcedure({ name, description: 'A procedure of the tests.', input, run: '5m' }),
  );
  stage = await ProcedureStage.open({ procedures: { code: SAGA_CODE, contracts } });
});
afterAll(() => stage?.holdfast.close());
beforeEach(() => {
  book = useBook(newBook());
});

const handleOf = (taskId: string) => stage.holdfast.temporal.workflow.getHandle(taskId);
const isAsking = (taskId: string) => until(async () => (await stage.status(taskId)) === 'awaiting_approval');
const decide = (taskId: string, decision: Parameters<typeof stage.holdfast.client.decide>[2]) =>
  stage.holdfast.client.decide(taskId, BOSS, decision);

test('[case 18] [case 19] [S4.3] of two signals at one moment the first decides about a step, and the other is audited', async () => {
  const taskId = await stage.start('optional_hotel');
  await isAsking(taskId);
  const by = { ...BOSS };
  await handleOf(taskId).signal('reject', { callId: 'hotel#1', by, decisionId: 'first' });
  await handleOf(taskId).signal('approve', { callId: 'hotel#1', by, decisionId: 'second' });
  expect(await stage.ended(taskId)).toMatchObject({ result: { hotel: 'approval_rejected' } });
  expect(book.log).toEqual(['book flight']);
  const audit = await stage.holdfast.client.audit(taskId, ANN);
  const types = audit.map(({ type }) => type);
  expect(types.filter((type) => type === 'approval_decided')).toHaveLength(1);
  expect(types).toContain('decision_ignored');
});

test('[case 21] [S4.2] an edit of a step that does not fit is refused, and the step stays to be decided', async () => {
  const taskId = await stage.start('optional_hotel');
  await isAsking(taskId);
  for (const args of [{ name: 'hostel', tool: 'book' }, { title: 'hostel' }, { name: 7 }])
    expect(await decide(taskId, { kind: 'edit', arguments: args })).toMatchObject({ code: 'invalid_edit' });
  expect(await decide(taskId, { kind: 'approve' })).toMatchObject({ code: 'approved' });
  expect(await stage.ended(taskId)).toMatchObject({ status: 'completed' });
  expect(book.log).toEqual(['book flight', 'book hotel']);
});

test('[case 23] [S5.3] people’s 54 minutes are in no budget of a procedure that has five', async () => {
  const taskId = await stage.start('halted_trip');
  await isAsking(taskId);
  await stage.holdfast.skip('54m');
  expect(await decide(taskId, { kind: 'approve' })).toMatchObject({ code: 'approved' });
  expect(await stage.ended(taskId)).toMatchObject({ status: 'completed', effect: 'applied' });
  expect(book.log).toEqual(['book flight', 'book car']);
});

test('[case 24] [case 23] [S4.4] [S5.3] halted at its expiry, a procedure’s question waits three days for a person, past its run of five minutes, is asked anew, and keeps what was done', async () => {
  const taskId = await stage.start('halted_trip');
  await isAsking(taskId);
  await stage.holdfast.skip('61m');
  await until(async () => (await stage.status(taskId)) === 'needs_attention');
  await stage.holdfast.skip('3d');
  expect(await stage.status(taskId)).toBe('needs_attention');
  expect(book.log).toEqual(['book flight']);
  expect(await decide(taskId, { kind: 'approve', callId: 'go#1' })).toMatchObject({ accepted: false });
  expect(await stage.holdfast.client.resolve(taskId, BOSS, { as: 'not_applied' })).toMatchObject({
    accepted: true,
  });
  await isAsking(taskId);
  const { approval } = await stage.holdfast.client.detail(taskId, ANN);
  expect(approval).toMatchObject({ callId: 'go#2' });
  expect(await decide(taskId, { kind: 'approve', callId: 'go#2' })).toMatchObject({ code: 'approved' });
  expect(await stage.ended(taskId)).toMatchObject({ status: 'completed' });
  expect(book.log).toEqual(['book flight', 'book car']);
});

test('[case 27] [S7.5] the engine’s own cancel, again while it is undone, interrupts no undoing', async () => {
  const gate = deferred();
  book.gates.set('car', gate.promise);
  book.stuck.set('flight', 1);
  const taskId = await stage.start('trip');
  await until(() => stage.hasStep(taskId, 'car', 'running'));
  await handleOf(taskId).cancel();
  gate.resolve();
  await until(() => book.log.includes('cancel car'));
  await handleOf(taskId).cancel();
  await handleOf(taskId).signal('cancel', { by: 'ann' });
  expect(await stage.ended(taskId)).toMatchObject({ status: 'cancelled', effect: 'rolled_back' });
  const booked = ['flight', 'hotel', 'car'];
  const undone = booked.toReversed().map((name) => `cancel ${name}`);
  expect(book.log).toEqual([...booked.map((name) => `book ${name}`), ...undone]);
});

test('[case 27] [S6.3] a step that is in doubt when the cancel comes is asked about before anything is undone', async () => {
  const lost = deferred();
  book.gates.set(
    'car',
    lost.promise.then(() => Promise.reject(new Error('the connection was reset'))),
  );
  book.gates.get('car')?.catch(() => undefined);
  const taskId = await stage.start('trip');
  await until(() => stage.hasStep(taskId, 'car', 'running'));
  await stage.holdfast.client.cancel(taskId, ANN);
  lost.resolve();
  expect(await stage.ended(taskId)).toMatchObject({ status: 'cancelled', effect: 'rolled_back' });
  expect(book.log).toEqual(['book flight', 'book hotel', 'cancel hotel', 'cancel flight']);
});
