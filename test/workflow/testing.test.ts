import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ActionFailure, defineAction, implementAction } from '../../src/index.ts';
import { createTestHoldfast, openTestServer } from '../../src/testing/index.ts';
import type { TestServer } from '../../src/testing/index.ts';

const ann = { tenant: 'local', subject: 'ann', roles: [] };
const DAY_MS = 86_400_000;

/** A target that says "tomorrow" twice before it does what it is asked. */
function slowTarget() {
  let calls = 0;
  const action = implementAction(
    defineAction({
      name: 'post',
      version: 1,
      description: 'posts a letter',
      effect: 'conditional',
      input: z.object({ to: z.string() }),
      output: z.object({ to: z.string() }),
      rollback: { kind: 'outOfBand' },
      verify: { none: 'nobody answers' },
      deadlines: { run: '30d' },
    }),
    {
      execute: async ({ to }, { operationId }) => {
        calls += 1;
        if (calls <= 2) throw ActionFailure.rateLimited(`${operationId}: tomorrow`, DAY_MS);
        return { to };
      },
    },
  );
  return { action, calls: () => calls };
}

describe('a test Holdfast on a server that skips time', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await openTestServer('time-skipping');
  });
  afterAll(() => server.close());

  test('waits for days of retries in moments, and its ledger agrees about the time', async () => {
    const target = slowTarget();
    const holdfast = await createTestHoldfast({ actions: [target.action], server });
    try {
      const began = await holdfast.ledger.now();
      const { taskId } = await holdfast.client.start({
        action: 'post',
        args: { to: 'bob' },
        key: 'letter-1',
        principal: ann,
      });
      const answer = await holdfast.client.wait(taskId, ann, { timeoutMs: 30_000 });
      expect(answer).toMatchObject({ status: 'completed', effect: 'applied', result: { to: 'bob' } });
      expect(target.calls()).toBe(3);
      const row = await holdfast.ledger.findByTask(taskId);
      expect((row?.updatedAt ?? 0) - began).toBeGreaterThanOrEqual(2 * DAY_MS);
      expect(answer.updatedAt - answer.createdAt).toBeGreaterThanOrEqual(2 * DAY_MS);
    } finally {
      await holdfast.close();
    }
  });

  test('skips what it is told to skip, and takes no work until it is told to', async () => {
    const target = slowTarget();
    const holdfast = await createTestHoldfast({ actions: [target.action], server, worker: false });
    try {
      const before = await holdfast.ledger.now();
      await holdfast.skip('7d');
      expect((await holdfast.ledger.now()) - before).toBeGreaterThanOrEqual(7 * DAY_MS);
      await holdfast.client.start({ action: 'post', args: { to: 'bob' }, key: 'letter-2', principal: ann });
      expect(target.calls()).toBe(0);
      await holdfast.startWorker();
      await expect.poll(() => target.calls()).toBe(1);
      await holdfast.skip('25h');
      await expect.poll(() => target.calls()).toBe(2);
    } finally {
      await holdfast.close();
    }
  });
});

test('a test Holdfast without anything said brings its own server and leaves nothing behind', async () => {
  const target = slowTarget();
  const holdfast = await createTestHoldfast({ actions: [target.action] });
  const { taskId } = await holdfast.client.start({ action: 'post', args: { to: 'eve' }, principal: ann });
  expect(await holdfast.client.get(taskId, ann)).toMatchObject({ action: 'post', autoRetry: false });
  await holdfast.close();
  await expect(holdfast.temporal.workflow.getHandle(taskId).describe()).rejects.toThrow();
});
