/** Tasks whose contract names a resource (S8): they wait their turn, hold it while they work, and give it back. */
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineProcedure } from '../../src/contract/index.ts';
import { leaseIdOf } from '../../src/contract/ids.ts';
import type { LeaseState } from '../../src/task/lease.ts';
import type { TaskState } from '../../src/task/state.ts';
import { createTestHoldfast } from '../../src/testing/create-test-holdfast.ts';
import type { TestHoldfast } from '../../src/testing/create-test-holdfast.ts';
import { deferred } from '../support/deferred.ts';
import { gates, jobs, printKept, printUndoable, undone } from '../support/print-actions.ts';

const principal = { tenant: 'local', subject: 'ann', roles: [] };
const WAIT = { timeout: 20_000, interval: 50 };

const pages = defineProcedure({
  name: 'print_pages',
  description: 'Prints two pages at once, as far as the printer allows.',
  input: z.object({ printer: z.string() }),
});

let holdfast: TestHoldfast;
beforeAll(async () => {
  const code = fileURLToPath(new URL('../support/procedures/printed.ts', import.meta.url));
  holdfast = await createTestHoldfast({
    server: 'local',
    actions: [printKept, printUndoable],
    procedures: { contracts: [pages], code },
  });
});
afterEach(() => {
  jobs.length = 0;
  gates.clear();
  undone.length = 0;
});
afterAll(() => holdfast.close());

const start = async (printer: string, page: string, action = 'print_kept') =>
  (await holdfast.client.start({ action, args: { printer, page }, key: randomUUID(), principal })).taskId;
const ended = (taskId: string) => holdfast.client.wait(taskId, principal, { timeoutMs: 60_000 });
const isAtWork = (page: string) => () => jobs.some((job) => job.page === page);
const leaseOf = async (printer: string): Promise<LeaseState> => {
  const handle = holdfast.temporal.workflow.getHandle(leaseIdOf('local', `printer/${printer}`));
  return (await handle.query<{ state: LeaseState }>('lease')).state;
};
const waiting = (printer: string) => async () => (await leaseOf(printer)).queue.length;
const eventsOf = async (taskId: string): Promise<string[]> =>
  (await holdfast.temporal.workflow.getHandle(taskId).query<{ type: string }[]>('events')).map(
    ({ type }) => type,
  );

function hold(page: string): () => void {
  const gate = deferred();
  gates.set(page, gate.promise);
  return () => gate.resolve();
}

describe('tasks on one resource', () => {
  test('run one at a time, in the order of their asking, each under a higher fence [S8.1][S8.2]', async () => {
    const release = hold('first');
    const first = await start('a', 'first');
    await expect.poll(isAtWork('first'), WAIT).toBe(true);
    const others = ['second', 'third', 'fourth'];
    const taskIds = [first];
    for (const [index, page] of others.entries()) {
      taskIds.push(await start('a', page));
      await expect.poll(waiting('a'), WAIT).toBe(index + 1);
    }
    const elsewhere = await start('b', 'elsewhere');
    expect((await ended(elsewhere)).status).toBe('completed');
    const { statusMessage, status } = await holdfast.client.get(taskIds[1] ?? '', principal);
    expect([status, statusMessage]).toEqual(['running', expect.stringContaining('Waiting for printer/a')]);
    release();
    for (const taskId of taskIds) expect((await ended(taskId)).status).toBe('completed');
    const done = jobs.filter(({ printer }) => printer === 'a');
    expect(done.map(({ page }) => page)).toEqual(['first', ...others]);
    const fences = done.map(({ fence }) => fence);
    expect(fences).toEqual([...fences].sort((one, other) => one - other));
    expect(new Set(fences).size).toBe(4);
    await expect.poll(async () => (await leaseOf('a')).holder, WAIT).toBeNull();
    expect(await eventsOf(first)).toEqual([
      'task_started',
      'lease_requested',
      'lease_granted',
      'attempt_scheduled',
      'attempt_finished',
      'lease_released',
      'task_ended',
    ]);
  });

  test('cancelled while it waits: nothing was done, and its place is given up [S7.4][S8.2]', async () => {
    const release = hold('long');
    const holder = await start('c', 'long');
    await expect.poll(isAtWork('long'), WAIT).toBe(true);
    const waiter = await start('c', 'never');
    await expect.poll(waiting('c'), WAIT).toBe(1);
    await holdfast.client.cancel(waiter, principal);
    expect(await ended(waiter)).toMatchObject({ status: 'cancelled', effect: 'none' });
    await expect.poll(waiting('c'), WAIT).toBe(0);
    release();
    expect((await ended(holder)).status).toBe('completed');
    expect(jobs.map(({ page }) => page)).toEqual(['long']);
  });

  test('interrupted while it waits: it leaves the queue, and asks anew once resumed [S7.2][S8.2]', async () => {
    const release = hold('held');
    const holder = await start('d', 'held');
    await expect.poll(isAtWork('held'), WAIT).toBe(true);
    const waiter = await start('d', 'later');
    await expect.poll(waiting('d'), WAIT).toBe(1);
    await holdfast.client.interrupt(waiter, principal);
    await expect.poll(waiting('d'), WAIT).toBe(0);
    release();
    expect((await ended(holder)).status).toBe('completed');
    expect(isAtWork('later')()).toBe(false);
    await holdfast.client.resume(waiter, principal);
    expect((await ended(waiter)).status).toBe('completed');
  });

  test('undoing holds the resource too, under no lower fence [S6.2][S8.2]', async () => {
    const release = hold('undone');
    const taskId = await start('e', 'undone', 'print_undoable');
    await expect.poll(isAtWork('undone'), WAIT).toBe(true);
    await holdfast.client.cancel(taskId, principal);
    release();
    expect(await ended(taskId)).toMatchObject({ status: 'cancelled', effect: 'rolled_back' });
    expect(undone).toHaveLength(1);
    expect(undone[0]).toBeGreaterThanOrEqual(jobs[0]?.fence ?? Infinity);
    await expect.poll(async () => (await leaseOf('e')).holder, WAIT).toBeNull();
  });

  test('one whose workflow is ended from outside while it waits is passed over [S8.2]', async () => {
    const release = hold('holder');
    const holder = await start('f', 'holder');
    await expect.poll(isAtWork('holder'), WAIT).toBe(true);
    const [gone, next] = [await start('f', 'gone'), await start('f', 'next')];
    await expect.poll(waiting('f'), WAIT).toBe(2);
    await holdfast.temporal.workflow.getHandle(gone).terminate();
    release();
    for (const taskId of [holder, next]) expect((await ended(taskId)).status).toBe('completed');
    expect(jobs.map(({ page }) => page)).toEqual(['holder', 'next']);
  });

  test('a grant that nobody asked for is given back [S8.2]', async () => {
    const release = hold('asked');
    const taskId = await start('g', 'asked');
    await expect.poll(isAtWork('asked'), WAIT).toBe(true);
    const lease = holdfast.temporal.workflow.getHandle(leaseIdOf('local', 'printer/unasked'));
    await holdfast.temporal.workflow.signalWithStart('lease', {
      workflowId: lease.workflowId,
      taskQueue: holdfast.taskQueue,
      args: [{ v: 1, tenant: 'local', resource: 'printer/unasked' }],
      signal: 'leaseAcquire',
      signalArgs: [{ taskId, request: 7, leaseMs: 3_600_000 }],
    });
    await expect.poll(async () => (await leaseOf('unasked')).fence, WAIT).toBeGreaterThan(0);
    await expect.poll(async () => (await leaseOf('unasked')).holder, WAIT).toBeNull();
    release();
    expect((await ended(taskId)).status).toBe('completed');
  });
});

describe('steps of a procedure on one resource', () => {
  test('run one at a time too, and the grant reaches the step that asked [S8.2]', async () => {
    const releases = [hold('left'), hold('right')];
    const { taskId } = await holdfast.client.start({
      action: 'print_pages',
      args: { printer: 'h' },
      key: randomUUID(),
      principal,
    });
    await expect.poll(waiting('h'), WAIT).toBe(1);
    await expect.poll(() => jobs.length, WAIT).toBe(1);
    for (const release of releases) release();
    expect(await ended(taskId)).toMatchObject({ status: 'completed' });
    expect(jobs.map(({ page }) => page).sort()).toEqual(['left', 'right']);
    expect(new Set(jobs.map(({ fence }) => fence)).size).toBe(2);
    await expect.poll(async () => (await leaseOf('h')).holder, WAIT).toBeNull();
    const state = await holdfast.temporal.workflow.getHandle(taskId).query<TaskState>('task');
    expect(state.steps?.map(({ status }) => status)).toEqual(['completed', 'completed']);
  });
});
