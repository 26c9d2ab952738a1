/**
 * S7.5 on a worker as production starts it. Left to itself the SDK would hold heartbeats back for four fifths of their
 * timeout, here 48 s, and a cancel travels with the answer to one; the bound asserted is a loaded machine's, not the rule's.
 */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineAction } from '../../src/contract/define-action.ts';
import { implementAction } from '../../src/contract/implement-action.ts';
import { createTestHoldfast } from '../../src/testing/index.ts';
import { deferred } from '../support/deferred.ts';

const HEARD_WITHIN_MS = 15_000;
const PRINCIPAL = { tenant: 'local', subject: 'ann', roles: [] };

test('[S7.4] [S7.5] a handler under way hears of a cancel long before its heartbeat timeout', async () => {
  const begun = deferred<void>();
  const heard = deferred<number>();
  const contract = defineAction({
    name: 'read_slowly',
    version: 1,
    description: 'Reads until it is told to stop.',
    input: z.object({}),
    output: z.object({}),
    effect: 'safe',
    cancelAttempt: 'abort',
    deadlines: { attempt: '2m', heartbeat: '60s' },
    verify: { none: 'it never comes to an end' },
  });
  const action = implementAction(contract, {
    execute: (_input, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          heard.resolve(performance.now());
          reject(signal.reason as Error);
        });
        begun.resolve();
      }),
  });
  const holdfast = await createTestHoldfast({ actions: [action], server: 'local' });
  try {
    const { taskId } = await holdfast.client.start({ action: 'read_slowly', args: {}, principal: PRINCIPAL });
    await begun.promise;
    const handle = holdfast.temporal.workflow.getHandle(taskId);
    // The first heartbeat is never held back.
    await expect
      .poll(async () => (await handle.describe()).raw.pendingActivities?.[0]?.lastHeartbeatTime, {
        timeout: 30_000,
      })
      .toBeTruthy();
    const cancelledAt = performance.now();
    await holdfast.client.cancel(taskId, PRINCIPAL);
    expect((await heard.promise) - cancelledAt).toBeLessThan(HEARD_WITHIN_MS);
    const end = await holdfast.client.wait(taskId, PRINCIPAL, { timeoutMs: 30_000 });
    expect(end).toMatchObject({ status: 'cancelled', effect: 'none' });
  } finally {
    await holdfast.close();
  }
}, 120_000);
