/** Nothing but `@temporalio/client`: it starts the workflow, queries it and cancels it, by the persisted names alone. */
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FaultSystem, unique } from '../support/fault-system.ts';

let system: FaultSystem;
let connection: Connection;
let client: Client;
let taskQueue: string;
beforeAll(async () => {
  system = await FaultSystem.open();
  taskQueue = unique('bare');
  await system.worker(await system.store('sqlite'), { taskQueue }).ready();
  connection = await Connection.connect({ address: system.temporal.address });
  client = new Client({ connection });
});
afterAll(async () => {
  await connection.close();
  await system.close();
});

const start = (input: object, more: object = {}) => {
  const workflowId = unique('bare-task');
  const principal = { tenant: 'local', subject: 'bare', roles: [] };
  return client.workflow.start('action', {
    workflowId,
    taskQueue,
    args: [{ v: 1, action: 'target_conditional', input, principal, ...more }],
  });
};

test('[S4.8] a bare client starts the workflow, and its queries say what happened', async () => {
  const handle = await start({ value: 'v' }, { key: unique('key') });
  const outcome = await handle.result();
  expect(outcome).toMatchObject({
    taskId: handle.workflowId,
    status: 'completed',
    effect: 'applied',
    cause: 'committed',
  });
  expect(await system.target.count(outcome.operationId)).toBe(1);
  expect(await handle.query('task')).toMatchObject({
    taskId: handle.workflowId,
    operationId: outcome.operationId,
  });
  const events = await handle.query<{ type: string }[]>('events');
  expect(events.map(({ type }) => type)).toEqual([
    'task_started',
    'plan_scheduled',
    'planned',
    'attempt_scheduled',
    'attempt_finished',
    'task_ended',
  ]);
});

test('[S7.4] [S4.8] a bare signal `cancel` before anything was applied: cancelled, effect none', async () => {
  // Refused before applying, over and over: there is a retry to cancel.
  await system.target.setMode({ kind: 'refuse', status: 429, retryAfterSeconds: 600 }, { times: 1 });
  const handle = await start({ value: 'v' });
  const phase = async () => (await handle.query<{ phase: { kind: string; waiting?: string } }>('task')).phase;
  await expect.poll(phase, { timeout: 30_000 }).toMatchObject({ kind: 'ready', waiting: 'backoff' });
  await handle.signal('cancel', { by: 'bare' });
  const outcome = await handle.result();
  expect(outcome).toMatchObject({
    status: 'cancelled',
    effect: 'none',
    cause: 'cancelled',
    cancelRequested: true,
  });
  expect(await system.target.count(outcome.operationId)).toBe(0);
});

test('[S7.4] a bare signal `cancel` during the effect: it is left to finish, and the task completes', async () => {
  const gate = unique('gate');
  await system.target.setMode({ kind: 'hold', gate, when: 'afterApply' }, { times: 1 });
  const handle = await start({ value: 'v' });
  await system.target.reached(gate);
  await handle.signal('cancel');
  await system.target.release(gate);
  const outcome = await handle.result();
  expect(outcome).toMatchObject({ status: 'completed', effect: 'applied', cancelRequested: true });
  expect(await system.target.count(outcome.operationId)).toBe(1);
});

test('[S1.5] two bare tasks with one key: one effect, and the second is told whose it is', async () => {
  const key = unique('key');
  const gate = unique('gate');
  await system.target.setMode({ kind: 'hold', gate, when: 'afterApply' }, { times: 1 });
  const first = await start({ value: 'v' }, { key });
  await system.target.reached(gate);
  const second = await (await start({ value: 'v' }, { key })).result();
  expect(second).toMatchObject({
    status: 'failed',
    effect: 'none',
    cause: 'operation_in_progress',
    error: { details: { taskId: first.workflowId } },
  });
  await system.target.release(gate);
  const outcome = await first.result();
  const third = await (await start({ value: 'v' }, { key })).result();
  expect(third).toMatchObject({ status: 'completed', replayed: true, result: outcome.result });
  expect(await system.target.count(outcome.operationId)).toBe(1);
});
