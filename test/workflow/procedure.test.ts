// Procedures on a whole Holdfast: real ledger, real workflow code, time-skipping server.
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { z } from 'zod';
import { defineProcedure } from '../../src/index.ts';
import type { ProcedureContract } from '../../src/index.ts';
import type { TaskAnswer } from '../../src/client/index.ts';
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
