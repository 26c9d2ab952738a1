// What a procedure undoes when several things stop at once, or it is interrupted: real ledger, real workflow code.
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { newBook, useBook } from '../support/book-actions.ts';
import type { Book } from '../support/book-actions.ts';
import { deferred } from '../support/deferred.ts';
import { ANN, ProcedureStage, until } from '../support/procedure-stage.ts';

let stage: ProcedureStage;
let book: Book;

beforeAll(async () => {
  stage = await ProcedureStage.open();
});
afterAll(() => stage?.holdfast.close());
beforeEach(() => {
  book = useBook(newBook());
});

/** Until it is opened. */
function hold(name: string): () => void {
  const gate = deferred();
  book.gates.set(name, gate.promise);
  return gate.resolve;
}

it('a cancel while a failed part waits for what is under way undoes that once [S6.3, S7.4]', async () => {
  const release = hold('sea room');
  const taskId = await stage.start('parts', { names: ['sea'] });
  await until(() => stage.hasStep(taskId, 'sea/car', 'failed'));
  expect(await stage.holdfast.client.cancel(taskId, ANN)).toMatchObject({ code: 'requested' });
  release();
  expect(await stage.ended(taskId)).toMatchObject({ status: 'cancelled', effect: 'rolled_back' });
  expect(book.log).toEqual(['book sea room', 'cancel sea room']);
});

it('two parts that fail at once are each undone once, one after the other [S6.3]', async () => {
  const releases = ['sea', 'lake'].map((name) => hold(`${name} room`));
  const taskId = await stage.start('parts', { names: ['sea', 'lake'] });
  for (const [index, name] of ['sea', 'lake'].entries()) {
    await until(() => stage.hasStep(taskId, `${name}/car`, 'failed'));
    releases[index]?.();
    if (index === 0) await until(() => book.log.includes('cancel sea room'));
  }
  const answer = await stage.ended(taskId);
  expect(answer).toMatchObject({ status: 'failed', effect: 'rolled_back', error: { code: 'sold_out' } });
  expect(book.log).toEqual(['book sea room', 'cancel sea room', 'book lake room', 'cancel lake room']);
});

it('one part is undone while another that failed waits its turn [S6.3]', async () => {
  const [release, failLake] = [hold('cancel sea room'), hold('lake car')];
  const taskId = await stage.start('parts', { names: ['sea', 'lake'] });
  await until(async () => (await stage.events(taskId)).includes('rollback_scheduled sea/room'));
  failLake();
  await until(() => stage.hasStep(taskId, 'lake/car', 'failed'));
  await until(() => stage.hasStep(taskId, 'lake/room', 'completed'));
  const isLakeUndone = (await stage.events(taskId)).includes('rollback_scheduled lake/room');
  release();
  expect(await stage.ended(taskId)).toMatchObject({ status: 'failed', effect: 'rolled_back' });
  expect(isLakeUndone).toBe(false);
  expect(book.log.filter((entry) => entry.startsWith('cancel'))).toEqual([
    'cancel sea room',
    'cancel lake room',
  ]);
});

it('code that returned without waiting for a part ends once that is undone [S6.3]', async () => {
  const release = hold('sea room');
  const taskId = await stage.start('parts', { names: ['sea'], unawaited: true });
  await until(() => stage.hasStep(taskId, 'sea/car', 'failed'));
  release();
  const answer = await stage.ended(taskId);
  expect(answer).toMatchObject({ status: 'completed', effect: 'none', result: { isAwaited: false } });
  expect(book.log).toEqual(['book sea room', 'cancel sea room']);
});

it('interrupted, a cancel undoes nothing until it is resumed [S7.2, S6.3] interrupt', async () => {
  const taskId = await stage.start('optional_hotel');
  await until(async () => (await stage.status(taskId)) === 'awaiting_approval');
  await stage.holdfast.client.interrupt(taskId, ANN);
  await stage.holdfast.client.cancel(taskId, ANN);
  await until(async () => (await stage.events(taskId)).includes('undo_requested flight'));
  // What is begun with it stands right behind it.
  expect(await stage.events(taskId)).not.toContain('rollback_scheduled flight');
  expect(await stage.holdfast.client.get(taskId, ANN)).toMatchObject({ interrupted: true });
  expect(book.log).toEqual(['book flight']);
  await stage.holdfast.client.resume(taskId, ANN);
  expect(await stage.ended(taskId)).toMatchObject({ status: 'cancelled', effect: 'rolled_back' });
  expect(book.log).toEqual(['book flight', 'cancel flight']);
});

it('interrupted while it is undone, it undoes what is under way and nothing after it until it is resumed [S7.2, S6.3] interrupt', async () => {
  const release = hold('cancel hotel');
  const taskId = await stage.start('trip', { fail: ['car'] });
  await until(async () => (await stage.events(taskId)).includes('rollback_scheduled hotel'));
  await stage.holdfast.client.interrupt(taskId, ANN);
  release();
  await until(async () => (await stage.events(taskId)).includes('undo_requested flight'));
  expect(await stage.events(taskId)).not.toContain('rollback_scheduled flight');
  expect(book.log).toEqual(['book flight', 'book hotel', 'cancel hotel']);
  await stage.holdfast.client.resume(taskId, ANN);
  expect(await stage.ended(taskId)).toMatchObject({ status: 'failed', effect: 'rolled_back' });
  expect(book.log).toEqual(['book flight', 'book hotel', 'cancel hotel', 'cancel flight']);
});
