// Thirty days of a procedure on a server that skips time (S3.6, case 28).
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { newBook, useBook } from '../support/book-actions.ts';
import type { Book } from '../support/book-actions.ts';
import { BOSS, ProcedureStage, until } from '../support/procedure-stage.ts';

let book: Book;
let stage: ProcedureStage;
beforeAll(async () => {
  stage = await ProcedureStage.open();
});
afterAll(() => stage?.holdfast.close());
beforeEach(() => {
  book = useBook(newBook());
});

test('thirty days of reminders: an approval stays open, and the decision at their end counts once [S3.6, S4.4, case 28] approval', async () => {
  const taskId = await stage.start('tour', { stops: 2, fail: true });
  await until(async () => (await stage.status(taskId)) === 'awaiting_approval');
  await stage.holdfast.skip('30d');
  const answered = { kind: 'approve', decisionId: 'the-one' } as const;
  const first = await stage.holdfast.client.decide(taskId, BOSS, answered);
  expect(first).toMatchObject({ accepted: true });
  expect(await stage.ended(taskId)).toMatchObject({ status: 'failed', effect: 'rolled_back' });
  expect(book.log).toEqual(['book stop 1', 'book stop 2', 'cancel stop 2', 'cancel stop 1']);
}, 180_000);

test('a loop without end restarts: what it booked on the first day is undone on the last [S1.2, S3.6, case 28]', async () => {
  // 35 rounds of ten times two hours.
  const taskId = await stage.start('long_patrol', { left: 34 });
  const answer = await stage.ended(taskId);
  expect(answer).toMatchObject({ status: 'failed', effect: 'rolled_back', cause: 'procedure_failed' });
  expect(book.log).toEqual(['book post', 'cancel post']);
}, 90_000);

test('a procedure past its run deadline begins nothing more and undoes what it committed [S5.3, S6.3] timeout', async () => {
  const taskId = await stage.start('long_patrol', { left: 40 });
  const answer = await stage.ended(taskId);
  expect(answer).toMatchObject({ status: 'failed', effect: 'rolled_back', cause: 'deadline_exceeded' });
  expect(book.log).toEqual(['book post', 'cancel post']);
}, 90_000);
