// Procedures on a whole Holdfast: real ledger, real workflow code, time-skipping server.
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { newBook, useBook } from '../support/book-actions.ts';
import type { Book } from '../support/book-actions.ts';
import { ANN, BOSS, ProcedureStage, until } from '../support/procedure-stage.ts';

let stage: ProcedureStage;
let book: Book;

beforeAll(async () => {
  stage = await ProcedureStage.open();
});
afterAll(() => stage?.holdfast.close());
beforeEach(() => {
  book = useBook(newBook());
});

it('performs its steps one after the other, each once, and completes with what its code returned [S6.3]', async () => {
  const taskId = await stage.start('trip');
  const answer = await stage.ended(taskId);
  expect(answer).toMatchObject({ status: 'completed', effect: 'applied', cause: 'committed' });
  expect(book.log).toEqual(['book flight', 'book hotel', 'book car']);
  expect(answer.result).toEqual({ bookings: [...book.booked.keys()] });
});

it('undoes what was committed, newest first, when a step fails for good [S6.3] permanent', async () => {
  const taskId = await stage.start('trip', { fail: ['car'] });
  const answer = await stage.ended(taskId);
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
  const taskId = await stage.start('parallel_trip', { fail: ['car'] });
  await until(() => stage.hasStep(taskId, 'car', 'failed'));
  expect(book.log).toEqual(['book flight']);
  release();
  const answer = await stage.ended(taskId);
  expect(answer).toMatchObject({ status: 'failed', effect: 'rolled_back', cause: 'permanent_failure' });
  expect(book.log).toEqual(['book flight', 'book hotel', 'cancel hotel', 'cancel flight']);
});

it('a cancel lets the step under way finish and undoes all, each once; a second cancel changes nothing [S6.3, S7.4, case 27]', async () => {
  let release!: () => void;
  book.gates.set('car', new Promise<void>((resolve) => (release = resolve)));
  book.stuck.set('hotel', 1);
  const taskId = await stage.start('trip');
  await until(() => stage.hasStep(taskId, 'car', 'running'));
  expect(await stage.holdfast.client.cancel(taskId, ANN)).toMatchObject({
    accepted: true,
    code: 'requested',
  });
  expect(book.log).toEqual(['book flight', 'book hotel']);
  release();
  await until(() => book.log.includes('cancel car'));
  const again = await stage.holdfast.client.cancel(taskId, ANN);
  expect(['already_requested', 'already_ended']).toContain(again.code);
  const answer = await stage.ended(taskId);
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
  const taskId = await stage.start('trip', { fail: ['car'] });
  await until(async () => (await stage.status(taskId)) === 'needs_attention');
  expect(book.log).toEqual(['book flight', 'book hotel']);
  const { alerts } = await stage.holdfast.client.detail(taskId, ANN);
  expect(alerts).toMatchObject([{ type: 'rollback_failed', action: 'book' }]);
  expect(await stage.holdfast.client.resolve(taskId, ANN, { as: 'not_applied' })).toMatchObject({
    accepted: true,
  });
  const answer = await stage.ended(taskId);
  expect(answer).toMatchObject({ status: 'failed', effect: 'rolled_back' });
  expect(book.log).toEqual(['book flight', 'book hotel', 'cancel flight']);
});

it('a rejected step is a failure that the code may go on without [S4.2, S6.3] approval', async () => {
  const taskId = await stage.start('optional_hotel');
  await until(async () => (await stage.status(taskId)) === 'awaiting_approval');
  const { approval } = await stage.holdfast.client.detail(taskId, ANN);
  expect(approval).toMatchObject({ callId: 'hotel#1', roles: ['boss'] });
  expect(await stage.holdfast.client.decide(taskId, BOSS, { kind: 'reject' })).toMatchObject({
    code: 'rejected',
  });
  const answer = await stage.ended(taskId);
  expect(answer).toMatchObject({
    status: 'completed',
    effect: 'applied',
    result: { hotel: 'approval_rejected' },
  });
  expect(book.log).toEqual(['book flight']);
});

it('a step waits for a person, and is performed once as approved [S4.1] approval', async () => {
  const taskId = await stage.start('optional_hotel');
  await until(async () => (await stage.status(taskId)) === 'awaiting_approval');
  const { action, approval } = await stage.holdfast.client.get(taskId, BOSS);
  expect([action, approval?.action]).toEqual(['optional_hotel', 'book_expensive']);
  expect(await stage.holdfast.client.decide(taskId, BOSS, { kind: 'approve' })).toMatchObject({
    code: 'approved',
  });
  expect(await stage.ended(taskId)).toMatchObject({ status: 'completed', result: { hotel: 'booked' } });
  expect(book.log).toEqual(['book flight', 'book hotel']);
});

it('a step whose arguments an approver edited is undone like any other [S4.2, S6.3] approval', async () => {
  const taskId = await stage.start('hotel_then_car');
  await until(async () => (await stage.status(taskId)) === 'awaiting_approval');
  const edit = { kind: 'edit', arguments: { name: 'hostel' } } as const;
  expect(await stage.holdfast.client.decide(taskId, BOSS, edit)).toMatchObject({ code: 'edited' });
  const answer = await stage.ended(taskId);
  expect(answer).toMatchObject({ status: 'failed', effect: 'rolled_back', error: { code: 'sold_out' } });
  expect(book.log).toEqual(['book hostel', 'cancel hostel']);
});

it('what it asks at once is all shown, each by its own policy, and decided one by one [S4.1] [M2.3] approval', async () => {
  const taskId = await stage.start('two_words');
  const shown = async () => {
    const { approval, otherApprovals = [] } = await stage.holdfast.client.get(taskId, ANN);
    return [approval, ...otherApprovals].map(
      (each) =>
        each && [
          each.callId,
          (each.view['arguments'] as { view?: object } | undefined)?.view,
          each.mayAnswerOverMcp,
          each.action,
        ],
    );
  };
  const [budget, date] = [
    ['budget#1', { asks: 'budget' }, false, 'holdfast_approval'],
    ['date#1', { asks: 'date' }, true, 'holdfast_approval'],
  ];
  await until(async () => (await shown()).length === 2);
  expect(await shown()).toEqual([budget, date]);
  const approve = (callId: string) => stage.holdfast.client.decide(taskId, BOSS, { kind: 'approve', callId });
  expect(await approve('date#1')).toMatchObject({ code: 'approved' });
  expect(await shown()).toEqual([budget]);
  expect(await approve('budget#1')).toMatchObject({ code: 'approved' });
  expect(await stage.ended(taskId)).toMatchObject({ status: 'completed', result: 'both were given' });
});

it('the same key meets the same procedure, and is answered from its row once it has ended [S1.5]', async () => {
  const call = { action: 'trip', args: {}, key: 'twice', principal: ANN };
  const first = await stage.holdfast.client.start(call);
  const answer = await stage.ended(first.taskId);
  const again = await stage.holdfast.client.start(call);
  expect(again).toMatchObject({ taskId: first.taskId, replayed: true, result: answer.result as object });
  expect(book.log).toHaveLength(3);
  await expect(stage.holdfast.client.start({ ...call, args: { fail: ['car'] } })).rejects.toMatchObject({
    code: 'idempotency_conflict',
  });
});

it('a part that fails is undone by itself, and the rest goes on without it [S6.3] permanent', async () => {
  const taskId = await stage.start('with_child', { fail: true });
  const answer = await stage.ended(taskId);
  expect(answer).toMatchObject({
    status: 'completed',
    effect: 'applied',
    result: { failed: 'part', cause: 'permanent_failure' },
  });
  expect(book.log).toEqual([
    'book flight',
    'book flight',
    'book hotel',
    'cancel hotel',
    'cancel flight',
    'book train',
  ]);
});

it('a part that comes through hands its result on, and is undone with the rest [S6.3]', async () => {
  const taskId = await stage.start('with_child', { fail: false });
  expect(await stage.ended(taskId)).toMatchObject({ status: 'completed', effect: 'applied' });
  expect(book.log).toEqual(['book flight', 'book flight', 'book hotel', 'book car']);
});

it('interrupted, it begins no step until it is resumed; what is under way finishes [S7.2] interrupt', async () => {
  let release!: () => void;
  book.gates.set('flight', new Promise<void>((resolve) => (release = resolve)));
  const taskId = await stage.start('trip');
  await until(() => stage.hasStep(taskId, 'flight', 'running'));
  expect(await stage.holdfast.client.interrupt(taskId, ANN)).toMatchObject({ code: 'requested' });
  release();
  await until(() => stage.hasStep(taskId, 'flight', 'completed'));
  expect(await stage.holdfast.client.get(taskId, ANN)).toMatchObject({
    interrupted: true,
    status: 'running',
  });
  expect(book.log).toEqual(['book flight']);
  expect(await stage.holdfast.client.resume(taskId, ANN)).toMatchObject({ code: 'requested' });
  expect(await stage.ended(taskId)).toMatchObject({ status: 'completed' });
  expect(book.log).toEqual(['book flight', 'book hotel', 'book car']);
});
