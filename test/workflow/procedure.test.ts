// Procedures on a whole Holdfast: real ledger, real workflow code, time-skipping server.
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { z } from 'zod';
import { defineProcedure } from '../../src/index.ts';
import type { ProcedureContract } from '../../src/index.ts';
import type { TaskAnswer } from '../../src/client/index.ts';
import type { TaskState } from '../../src/task/state.ts';
import { createTestHoldfast } from '../../src/testing/index.ts';
import type { TestHoldfast } from '../../src/testing/index.ts';
import { bookActions, newBook, useBook } from '../support/book-actions.ts';
import type { Book } from '../support/book-actions.ts';

const PRINCIPAL = { tenant: 'local', subject: 'ann', roles: [] };
const BOSS = { tenant: 'local', subject: 'bea', roles: ['boss'] };
const input = z.object({ fail: z.array(z.string()).optional() });
const contracts: ProcedureContract[] = ['trip', 'parallel_trip', 'optional_hotel'].map((name) =>
  defineProcedure({ name, description: 'A procedure of the tests.', input }),
);

let holdfast: TestHoldfast;
let book: Book;
let calls = 0;

beforeAll(async () => {
  const code = fileURLToPath(new URL('../support/procedures/saga.ts', import.meta.url));
  holdfast = await createTestHoldfast({ actions: [...bookActions], procedures: { code, contracts } });
});
afterAll(() => holdfast?.close());
beforeEach(() => {
  book = useBook(newBook());
});

async function start(action: string, args = {}): Promise<TaskAnswer> {
  calls += 1;
  return holdfast.client.start({ action, args, key: `call-${calls}`, principal: PRINCIPAL });
}

async function ended(taskId: string): Promise<TaskAnswer> {
  await holdfast.temporal.workflow.getHandle(taskId).result();
  return holdfast.client.get(taskId, PRINCIPAL);
}

it('performs its steps one after the other, each once, and completes with what its code returned [S6.3]', async () => {
  const { taskId } = await start('trip');
  const answer = await ended(taskId);
  expect(answer).toMatchObject({ status: 'completed', effect: 'applied', cause: 'committed' });
  expect(book.log).toEqual(['book flight', 'book hotel', 'book car']);
  expect(answer.result).toEqual({ bookings: [...book.booked.keys()] });
});

it('undoes what was committed, newest first, when a step fails for good [S6.3] permanent', async () => {
  const { taskId } = await start('trip', { fail: ['car'] });
  const answer = await ended(taskId);
  expect(answer).toMatchObject({ status: 'failed', effect: 'rolled_back', cause: 'permanent_failure' });
  expect(answer.error).toMatchObject({ code: 'sold_out', details: { step: 'car' } });
  expect(book.log).toEqual(['book flight', 'book hotel', 'cancel hotel', 'cancel flight']);
  expect(book.booked.size).toBe(0);
});

it('undoes parallel steps newest commit first, and only once none is under way [S6.3] permanent', async () => {
  let release!: () => void;
  book.gates.set('hotel', new Promise<void>((resolve) => (release = resolve)));
  // The failure is known while the hotel is still being booked: it is booked, and undone first.
  book.gates.set(
    'car',
    until(() => book.log.includes('book flight')),
  );
  const { taskId } = await start('parallel_trip', { fail: ['car'] });
  await until(() => stepStatus(taskId, 'car', 'failed'));
  expect(book.log).toEqual(['book flight']);
  release();
  const answer = await ended(taskId);
  expect(answer).toMatchObject({ status: 'failed', effect: 'rolled_back', cause: 'permanent_failure' });
  expect(book.log).toEqual(['book flight', 'book hotel', 'cancel hotel', 'cancel flight']);
});

it('a cancel lets the step under way finish and undoes all, each once; a second cancel changes nothing [S6.3, S7.4, case 27]', async () => {
  let release!: () => void;
  book.gates.set('car', new Promise<void>((resolve) => (release = resolve)));
  book.stuck.set('hotel', 1);
  const { taskId } = await start('trip');
  await until(() => stepStatus(taskId, 'car', 'running'));
  expect(await holdfast.client.cancel(taskId, PRINCIPAL)).toMatchObject({
    accepted: true,
    code: 'requested',
  });
  expect(book.log).toEqual(['book flight', 'book hotel']);
  release();
  await until(() => book.log.includes('cancel car'));
  const again = await holdfast.client.cancel(taskId, PRINCIPAL);
  expect(['already_requested', 'already_ended']).toContain(again.code);
  const answer = await ended(taskId);
  expect(answer).toMatchObject({
    status: 'cancelled',
    effect: 'rolled_back',
    cause: 'cancelled_after_commit',
  });
  expect(book.log).toEqual([
    'book flight',
    'book hotel',
    'book car',
    'cancel car',
    'cancel hotel',
    'cancel flight',
  ]);
});

it('a rollback that fails three times waits for a person, who says that it is undone; the others are undone after it [S6.2, case 27]', async () => {
  book.stuck.set('hotel', 1_000);
  const { taskId } = await start('trip', { fail: ['car'] });
  await until(async () => (await holdfast.client.get(taskId, PRINCIPAL)).status === 'needs_attention');
  expect(book.log).toEqual(['book flight', 'book hotel']);
  const { alerts } = await holdfast.client.detail(taskId, PRINCIPAL);
  expect(alerts).toMatchObject([{ type: 'rollback_failed', action: 'book' }]);
  expect(await holdfast.client.resolve(taskId, PRINCIPAL, { as: 'not_applied' })).toMatchObject({
    accepted: true,
  });
  const answer = await ended(taskId);
  expect(answer).toMatchObject({ status: 'failed', effect: 'rolled_back' });
  expect(book.log).toEqual(['book flight', 'book hotel', 'cancel flight']);
});

it('a rejected step is a failure that the code may go on without [S4.2, S6.3] approval', async () => {
  const { taskId } = await start('optional_hotel');
  await until(async () => (await holdfast.client.get(taskId, PRINCIPAL)).status === 'awaiting_approval');
  const { approval } = await holdfast.client.detail(taskId, PRINCIPAL);
  expect(approval).toMatchObject({ callId: 'hotel#1', roles: ['boss'] });
  expect(await holdfast.client.decide(taskId, BOSS, { kind: 'reject' })).toMatchObject({ code: 'rejected' });
  const answer = await ended(taskId);
  expect(answer).toMatchObject({
    status: 'completed',
    effect: 'applied',
    result: { hotel: 'approval_rejected' },
  });
  expect(book.log).toEqual(['book flight']);
});

it('a step waits for a person, and is performed once as approved [S4.1] approval', async () => {
  const { taskId } = await start('optional_hotel');
  await until(async () => (await holdfast.client.get(taskId, PRINCIPAL)).status === 'awaiting_approval');
  expect(await holdfast.client.decide(taskId, BOSS, { kind: 'approve' })).toMatchObject({ code: 'approved' });
  expect(await ended(taskId)).toMatchObject({ status: 'completed', result: { hotel: 'booked' } });
  expect(book.log).toEqual(['book flight', 'book hotel']);
});

it('the same key meets the same procedure, and is answered from its row once it has ended [S1.5]', async () => {
  const call = { action: 'trip', args: {}, key: 'twice', principal: PRINCIPAL };
  const first = await holdfast.client.start(call);
  const answer = await ended(first.taskId);
  const again = await holdfast.client.start(call);
  expect(again).toMatchObject({ taskId: first.taskId, replayed: true, result: answer.result as object });
  expect(book.log).toHaveLength(3);
  await expect(holdfast.client.start({ ...call, args: { fail: ['car'] } })).rejects.toMatchObject({
    code: 'idempotency_conflict',
  });
});

/** Polls while the clock stands still. */
async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (const limit = Date.now() + 20_000; !(await isSo()); await delay(20))
    if (Date.now() > limit) throw new Error(`it never came to be so: ${isSo.toString()}`);
}

async function stepStatus(taskId: string, name: string, status: string): Promise<boolean> {
  const state = await holdfast.temporal.workflow.getHandle(taskId).query<TaskState>('task');
  return state.steps?.some((step) => step.step === name && step.status === status) ?? false;
}
