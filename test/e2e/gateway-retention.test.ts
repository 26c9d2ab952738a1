/** How long a task can be read: while it runs, however long, and after the engine has forgotten it. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { createGateway, toolOf } from '../../src/gateway/index.ts';
import { defineAction, implementAction } from '../../src/index.ts';
import { createTestHoldfast } from '../../src/testing/index.ts';
import type { TestHoldfastOptions } from '../../src/testing/index.ts';
import { TASKS_CAPABILITIES } from '../support/mcp-clients.ts';
import { answerOf, post } from '../support/mcp-messages.ts';

const PRINCIPAL = { tenant: 'local', subject: 'ann', roles: [] };
const parcel = implementAction(
  defineAction({
    name: 'send_parcel',
    version: 1,
    description: 'Sends a parcel once a person said so.',
    input: z.object({ to: z.string() }),
    output: z.object({ sentTo: z.string() }),
    effect: 'conditional',
    rollback: { kind: 'outOfBand' },
    verify: { none: 'a test' },
    approval: () => ({ requesterMayDecide: true }),
  }),
  { execute: async ({ to }, _context) => ({ sentTo: to }) },
);

const opened: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

async function newLedger(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-retention-'));
  opened.push(() => rm(folder, { recursive: true, force: true }));
  return `sqlite:${join(folder, 'ledger.db')}`;
}

/** A gateway and its client, on a Temporal server of their own. */
async function system(options: Pick<TestHoldfastOptions, 'store' | 'server' | 'worker'>) {
  const holdfast = await createTestHoldfast({ actions: [parcel], ...options });
  opened.push(() => holdfast.close());
  const gateway = createGateway({
    client: holdfast.client,
    tools: [toolOf(parcel.contract)],
    auth: { kind: 'loopback', principal: PRINCIPAL },
  });
  opened.push(() => gateway.close());
  const url = `${(await gateway.serveHttp({ port: 0 })).url}/mcp`;
  const send = async (method: string, params: Record<string, unknown>) => {
    const answer = await answerOf(await post(url, { method, params, capabilities: TASKS_CAPABILITIES }));
    if (answer.error) throw new Error(answer.error.message);
    return answer.result ?? {};
  };
  return { client: holdfast.client, send };
}

it('a task’s ttlMs never ends: it is read while it runs, when it has ended, and by an engine that has forgotten it [M2.7] [M2.2] [case 30]', async () => {
  const store = await newLedger();
  const { client, send } = await system({ store, server: 'local' });
  const created = await send('tools/call', {
    ...{ name: 'send_parcel', arguments: { to: 'bob' } },
    task: { ttl: 1 }, // 2025's wish for a short life, which 2026-07-28 no longer knows
  });
  const taskId = String(created.taskId);
  expect([created, await send('tasks/get', { taskId })]).toMatchObject([
    { resultType: 'task', ttlMs: null },
    { status: 'working', ttlMs: null },
  ]);
  await client.decide(taskId, PRINCIPAL, { kind: 'approve' });
  const ended = { status: 'completed', ttlMs: null, result: { structuredContent: { sentTo: 'bob' } } };
  await vi.waitFor(async () => expect(await send('tasks/get', { taskId })).toMatchObject(ended), {
    timeout: 20_000,
  });

  const later = await system({ store, server: 'time-skipping', worker: false });
  expect(await later.send('tasks/get', { taskId })).toMatchObject(ended);
  expect(await later.send('tasks/cancel', { taskId })).toMatchObject({ resultType: 'complete' });
  expect(await later.send('tasks/get', { taskId })).toMatchObject(ended);
  const unknown = { taskId: 'task_of_nobody', inputResponses: {} };
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel'])
    await expect(later.send(method, unknown)).rejects.toThrow('task not found');
});
