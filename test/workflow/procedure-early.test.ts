// Decisions about steps that a procedure has not begun (S4.3), on a whole Holdfast.
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { fingerprintOf } from '../../src/contract/fingerprint.ts';
import { deferred } from '../support/deferred.ts';
import { newBook, useBook } from '../support/book-actions.ts';
import type { Book } from '../support/book-actions.ts';
import { ANN, BOSS, ProcedureStage, until } from '../support/procedure-stage.ts';

const HELD_MAX = 50;
const hotel = fingerprintOf('local', 'book_expensive', { name: 'hotel', fails: false });
const another = fingerprintOf('local', 'book_expensive', { name: 'palace', fails: false });

let stage: ProcedureStage;
let book: Book;
beforeAll(async () => {
  stage = await ProcedureStage.open();
});
afterAll(() => stage?.holdfast.close());
beforeEach(() => {
  book = useBook(newBook());
});

/** A procedure whose flight is being booked and whose hotel, which a person is asked about, has not begun. */
async function onItsFlight() {
  const gate = deferred();
  book.gates.set('flight', gate.promise);
  const taskId = await stage.start('optional_hotel');
  await until(() => stage.hasStep(taskId, 'flight', 'running'));
  const decide = (decision: object) =>
    stage.holdfast.client.decide(taskId, BOSS, { callId: 'hotel#1', ...decision } as never);
  return { taskId, decide, land: gate.resolve };
}

it('an approval is held with its fingerprint and applied when the step opens with that call [S4.3] approval', async () => {
  const { taskId, decide, land } = await onItsFlight();
  const answer = await decide({ kind: 'approve', fingerprint: hotel });
  expect(answer).toMatchObject({ accepted: true, code: 'held' });
  land();
  expect(await stage.ended(taskId)).toMatchObject({ status: 'completed', result: { hotel: 'booked' } });
  expect(book.log).toEqual(['book flight', 'book hotel']);
  const audit = await stage.holdfast.ledger.audit({ taskId });
  expect(audit.map(({ type }) => type)).toEqual(
    expect.arrayContaining(['decision_held', 'approval_opened', 'approval_decided']),
  );
});

it('one for another call is not applied: the approval stays open [S4.3, S4.1] approval', async () => {
  const { taskId, decide, land } = await onItsFlight();
  expect(await decide({ kind: 'approve', fingerprint: another })).toMatchObject({ code: 'held' });
  land();
  await until(async () => (await stage.status(taskId)) === 'awaiting_approval');
  expect(book.log).toEqual(['book flight']);
  expect(await decide({ kind: 'approve', fingerprint: hotel })).toMatchObject({ code: 'approved' });
  expect(await stage.ended(taskId)).toMatchObject({ result: { hotel: 'booked' } });
});

it('a rejection needs no fingerprint, an approval of arguments that nobody knows does [S4.3] approval', async () => {
  const { taskId, decide, land } = await onItsFlight();
  expect(await decide({ kind: 'approve' })).toMatchObject({ accepted: false, code: 'not_open' });
  expect(await decide({ kind: 'reject' })).toMatchObject({ accepted: true, code: 'held' });
  land();
  expect(await stage.ended(taskId)).toMatchObject({ result: { hotel: 'approval_rejected' } });
  expect(book.log).toEqual(['book flight']);
});

it('a bounded number is held; the same decisionId gets its first answer [S4.3] approval', async () => {
  const { taskId, decide, land } = await onItsFlight();
  const early = (n: number) =>
    decide({ kind: 'reject', callId: `room-${n}#1`, decisionId: `decision ${n}` }) as Promise<object>;
  for (let n = 1; n <= HELD_MAX; n += 1) expect(await early(n)).toMatchObject({ code: 'held' });
  const beyond = await early(HELD_MAX + 1);
  expect(beyond).toMatchObject({
    accepted: false,
    code: 'not_open',
    message: expect.stringContaining('no more') as string,
  });
  expect(await early(1)).toMatchObject({ accepted: true, code: 'held' });
  land();
  await until(async () => (await stage.status(taskId)) === 'awaiting_approval');
  expect(await decide({ kind: 'approve' })).toMatchObject({ code: 'approved' });
  expect(await stage.ended(taskId)).toMatchObject({ status: 'completed' });
});

it.each([
  ['a later approval than the first', { kind: 'reject', callId: 'hotel#2' }],
  ['an edit', { kind: 'edit', callId: 'hotel#1', arguments: { name: 'tent' } }],
  ['no step at all', { kind: 'reject', callId: 'ho tel#1' }],
])('%s is not held [S4.3] approval', async (_what, decision) => {
  const { taskId, decide, land } = await onItsFlight();
  expect(await decide(decision)).toMatchObject({ accepted: false, code: 'not_open' });
  await stage.holdfast.client.cancel(taskId, ANN);
  expect(await decide({ kind: 'reject' })).toMatchObject({ accepted: false, code: 'already_ended' });
  land();
  expect(await stage.ended(taskId)).toMatchObject({ status: 'cancelled' });
});
