/** A process as its configuration opens it: worker and client on one native connection, migrated, and closed again. */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { HoldfastClient } from '../../src/client/index.ts';
import { openTestServer } from '../../src/testing/index.ts';
import type { TestServer } from '../../src/testing/index.ts';
import { watchDeadlines } from '../support/deadlines.ts';
import { loadConfig, openHoldfast } from '../../worker/index.ts';
import type { Config } from '../../worker/index.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const ann = { tenant: 'local', subject: 'ann', roles: [] };

let server: TestServer;
let cwd: string;
let config: Config;
beforeAll(async () => {
  server = await openTestServer('local');
  cwd = mkdtempSync(join(tmpdir(), 'holdfast-runtime-'));
  writeFileSync(
    join(cwd, 'holdfast.config.ts'),
    `import { z } from '${ROOT}node_modules/zod/index.js';
     import { defineAction, defineConfig, implementAction } from '${ROOT}src/index.ts';
     const contract = defineAction({
       name: 'note', version: 1, description: 'keeps a note', effect: 'conditional', transactional: true,
       input: z.object({ text: z.string() }), output: z.object({ text: z.string() }),
       rollback: { kind: 'outOfBand' }, verify: { none: 'it commits or it does not' },
     });
     const note = implementAction(contract, {
       execute: async ({ text }, { tx }) => {
         await (tx as never as { insertInto(t: string): { values(v: object): { execute(): Promise<void> } } })
           .insertInto('note').values({ text }).execute();
         return { text };
       },
     });
     export default defineConfig({
       actions: [note],
       setup: async (db) => { await db.schema.createTable('note').ifNotExists().addColumn('text', 'text').execute(); },
     });`,
  );
});
afterAll(async () => {
  await server.close();
  rmSync(cwd, { recursive: true, force: true });
});
beforeEach(async () => {
  const { host } = new URL(`http://${server.env.address}`);
  config = await loadConfig({
    cwd,
    env: { TEMPORAL_ADDRESS: host, HOLDFAST_TASK_QUEUE: `q-${randomUUID()}`, HOLDFAST_LOG_LEVEL: 'fatal' },
  });
});

const call = () => ({ action: 'note', args: { text: 'hello' }, key: randomUUID(), principal: ann });

describe('a process with a worker', () => {
  test('runs the setup, starts eagerly, finishes the task, is ready, and closes in order', async () => {
    const holdfast = await openHoldfast({ config, worker: true, migrate: true });
    try {
      const { taskId } = await holdfast.client.start(call());
      const answer = await holdfast.client.wait(taskId, ann, { timeoutMs: 20_000 });
      expect(answer).toMatchObject({ status: 'completed', effect: 'applied', result: { text: 'hello' } });
      expect(await holdfast.check()).toEqual({ engine: true, ledger: true, worker: true });
      expect(holdfast.worker?.health()).toMatchObject({ isTakingWork: true, activitiesRunning: 0 });
    } finally {
      await holdfast.close();
    }
    expect(holdfast.worker?.health().isTakingWork).toBe(false);
    await holdfast.close();
  });

  test('answers stale within its deadline of 1.5 s on its native connection too, once its worker has stopped [M2.2]', async () => {
    const holdfast = await openHoldfast({ config, worker: true, migrate: true });
    try {
      await holdfast.worker?.stop();
      expect((await holdfast.check()).worker).toBe(false);
      const { taskId } = await holdfast.client.start(call());
      const longestMs = watchDeadlines();
      expect(await holdfast.client.get(taskId, ann)).toMatchObject({ stale: true, status: 'proposed' });
      expect(longestMs()).toBeGreaterThan(0);
      expect(longestMs()).toBeLessThanOrEqual(1_500);
      const waited = await holdfast.client.wait(taskId, ann, { timeoutMs: 300 });
      expect(waited.stale).toBe(true);
      expect(await holdfast.client.cancel(taskId, ann)).toMatchObject({ accepted: true, code: 'requested' });
    } finally {
      await holdfast.close();
    }
  });
});

describe('a process without a worker', () => {
  test('refuses a ledger that nobody migrated, and leaves nothing open', async () => {
    const fresh = { ...config, databaseUrl: `sqlite:${join(cwd, `${randomUUID()}.db`)}` };
    await expect(openHoldfast({ config: fresh })).rejects.toMatchObject({ code: 'ledger_unsuitable' });
  });

  test('meets what another started, and reads it', async () => {
    const one = await openHoldfast({ config, worker: true, migrate: true });
    const other = await openHoldfast({ config });
    try {
      const request = call();
      const [a, b] = await Promise.all([one.client.start(request), other.client.start(request)]);
      expect(a.taskId).toBe(b.taskId);
      expect(await other.client.wait(b.taskId, ann, { timeoutMs: 20_000 })).toMatchObject({
        status: 'completed',
      });
      expect(other.worker).toBeNull();
    } finally {
      await other.close();
      await one.close();
    }
  });
});

describe('without Temporal', () => {
  test('opening says engine_unavailable and names the address', async () => {
    const temporal = { ...config.temporal, connectionOptions: { address: '127.0.0.1:9' } };
    const opening = openHoldfast({ config: { ...config, temporal }, migrate: true });
    await expect(opening).rejects.toMatchObject({
      code: 'engine_unavailable',
      details: { address: '127.0.0.1:9' },
    });
  });

  test('a call fails as retryable within its bound, and the same call succeeds later under the same key [S1.5]', async () => {
    const holdfast = await openHoldfast({ config, worker: true, migrate: true });
    const connection = Connection.lazy({ address: '127.0.0.1:9' });
    try {
      const cutOff = new HoldfastClient({
        temporal: new Client({ connection }),
        ledger: holdfast.ledger,
        actions: config.actions,
        taskQueue: config.taskQueue,
        startDeadlineMs: 1_000,
      });
      const request = call();
      const longestMs = watchDeadlines();
      await expect(cutOff.start(request)).rejects.toMatchObject({
        code: 'engine_unavailable',
        retryable: true,
      });
      expect(longestMs()).toBeGreaterThan(0);
      expect(longestMs()).toBeLessThanOrEqual(1_000);
      const { taskId } = await holdfast.client.start(request);
      expect(await holdfast.client.wait(taskId, ann, { timeoutMs: 20_000 })).toMatchObject({
        status: 'completed',
      });
      expect(await cutOff.start(request)).toMatchObject({ replayed: true });
    } finally {
      await connection.close();
      await holdfast.close();
    }
  });
});
