/** Workflow `lease` (S8.2) on the real server, and what only a skipped clock can show. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import proto from '@temporalio/proto'; // CommonJS whose names Node can't see
import { LeaseStage } from '../support/lease-stage.ts';
import type { LeaseUnderTest } from '../support/lease-stage.ts';

const WAIT = { timeout: 20_000, interval: 50 };
const LONG_MS = 3_600_000;
const WAITERS = 1_000;
const { EventType } = proto.temporal.api.enums.v1;

let stage: LeaseStage;
beforeAll(async () => {
  stage = await LeaseStage.open('local');
});
afterAll(() => stage.close());

/** Runs of the lease's workflow, by the chain that continue-as-new left. */
async function runsOf(lease: LeaseUnderTest): Promise<number> {
  const { client } = stage.server.env;
  let count = 0;
  for (let runId: string | undefined = (await lease.handle.describe()).runId; runId; count += 1) {
    const { events } = await client.workflow.getHandle(lease.id, runId).fetchHistory();
    runId = events?.[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId ?? undefined;
  }
  return count;
}

describe('1,000 who wait for one resource', () => {
  test(
    'get it in the order of their asking, none lost over continue-as-new [S8.2]',
    { timeout: 240_000 },
    async () => {
      const lease = stage.resource();
      const [holder, owner] = [await stage.owner({ releases: false }), await stage.owner({ releases: true })];
      await lease.acquire({ taskId: holder.taskId, request: 1, leaseMs: LONG_MS });
      await expect.poll(holder.grants, WAIT).toHaveLength(1);
      const steps = Array.from({ length: WAITERS }, (_, index) => `s${index}`);
      for (const step of steps)
        await lease.acquire({ taskId: owner.taskId, step, request: 1, leaseMs: LONG_MS });
      await expect.poll(async () => (await lease.state()).queue.length, WAIT).toBe(WAITERS);
      const [first] = await holder.grants();
      await lease.release({ taskId: holder.taskId, request: 1, fence: first?.fence ?? 0 });
      const told = async () => (await owner.grants()).length;
      await expect.poll(told, { timeout: 200_000, interval: 1_000 }).toBe(WAITERS);
      const grants = await owner.grants();
      expect(grants.map(({ step }) => step)).toEqual(steps);
      const fences = [first?.fence ?? 0, ...grants.map(({ fence }) => fence)];
      expect(fences.every((fence, index) => index === 0 || fence > (fences[index - 1] ?? 0))).toBe(true);
      expect(await runsOf(lease)).toBeGreaterThan(1);
      await expect.poll(async () => (await lease.state()).holder, WAIT).toBeNull();
    },
  );
});

describe('a holder', () => {
  test('that dies without a word loses it by the timer; the next gets it under a higher fence [S8.2]', async () => {
    const lease = stage.resource();
    const [dead, next] = [await stage.owner({ releases: false }), await stage.owner({ releases: false })];
    await lease.acquire({ taskId: dead.taskId, request: 1, leaseMs: 1_000 });
    await lease.acquire({ taskId: next.taskId, request: 1, leaseMs: LONG_MS });
    await expect.poll(next.grants, WAIT).toHaveLength(1);
    const [[before], [after]] = [await dead.grants(), await next.grants()];
    expect(after?.fence).toBeGreaterThan(before?.fence ?? Infinity);
    expect(after?.fence).toBeGreaterThanOrEqual(before?.until ?? Infinity);
  });

  test('whose workflow has ended is passed over [S8.2]', async () => {
    const lease = stage.resource();
    const [holder, gone, next] = [
      await stage.owner({ releases: false }),
      await stage.owner({ releases: false }),
      await stage.owner({ releases: false }),
    ];
    for (const { taskId } of [holder, gone, next])
      await lease.acquire({ taskId, request: 1, leaseMs: LONG_MS });
    await expect.poll(holder.grants, WAIT).toHaveLength(1);
    await gone.handle.terminate();
    await lease.release({ taskId: holder.taskId, request: 1 });
    await expect.poll(next.grants, WAIT).toHaveLength(1);
    expect((await lease.state()).holder?.taskId).toBe(next.taskId);
  });

  test('is left alone by a stale release, a repeated request and messages that are none; renewed it keeps its fence [S8.2][S8.5]', async () => {
    const lease = stage.resource();
    const [holder, next] = [await stage.owner({ releases: false }), await stage.owner({ releases: false })];
    const { taskId } = holder;
    await lease.acquire({ taskId, request: 1, leaseMs: LONG_MS });
    await lease.acquire({ taskId: next.taskId, request: 1, leaseMs: LONG_MS });
    await expect.poll(holder.grants, WAIT).toHaveLength(1);
    const { fence, until } = (await lease.state()).holder ?? { fence: 0, until: 0 };
    await lease.release({ taskId, request: 1, fence: fence - 1 });
    await lease.release({ taskId: 'somebody else', request: 1, fence });
    for (const junk of [undefined, null, 7, 'x', [], { taskId: '' }, { taskId, request: -1, leaseMs: 1 }]) {
      await lease.handle.signal('leaseAcquire', junk);
      await lease.handle.signal('leaseRelease', junk);
    }
    await lease.acquire({ taskId: next.taskId, request: 1, leaseMs: LONG_MS });
    await lease.renew({ taskId, request: 2, leaseMs: 1, holding: fence });
    await expect.poll(holder.grants, WAIT).toHaveLength(2);
    const state = await lease.state();
    expect(state.holder).toMatchObject({ taskId, request: 2, fence, until });
    expect(state.queue).toHaveLength(1);
    expect(await next.grants()).toEqual([]);
    await lease.release({ taskId, request: 2, fence });
    await expect.poll(next.grants, WAIT).toHaveLength(1);
  });
});

test('a cancel by the engine of the lease itself makes no second holder [S8.2]', async () => {
  const lease = stage.resource();
  const [holder, next] = [await stage.owner({ releases: false }), await stage.owner({ releases: false })];
  await lease.acquire({ taskId: holder.taskId, request: 1, leaseMs: LONG_MS });
  await expect.poll(holder.grants, WAIT).toHaveLength(1);
  await lease.handle.cancel();
  await expect
    .poll(async () => (await lease.handle.fetchHistory()).events?.at(-1)?.eventType, WAIT)
    .toBe(EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED);
  await lease.acquire({ taskId: next.taskId, request: 1, leaseMs: LONG_MS });
  await expect.poll(async () => (await lease.state()).queue, WAIT).toMatchObject([{ taskId: next.taskId }]);
  expect(await next.grants()).toEqual([]);
  await lease.release({ taskId: holder.taskId, request: 1 });
  await expect.poll(next.grants, WAIT).toHaveLength(1);
});

test('a lease that nobody wants ends; begun anew it grants under a higher fence [S8.2]', async () => {
  const skipping = await LeaseStage.open('time-skipping');
  try {
    const lease = skipping.resource();
    const owner = await skipping.owner({ releases: true });
    for (const request of [1, 2]) {
      await lease.acquire({ taskId: owner.taskId, request, leaseMs: 1_000 });
      await expect.poll(owner.grants, WAIT).toHaveLength(request);
      await expect.poll(async () => (await lease.state()).holder, WAIT).toBeNull();
      // Waiting for its result would skip on, by years, once it has one.
      await skipping.server.env.sleep('2m');
      await expect.poll(async () => (await lease.handle.describe()).status.name, WAIT).toBe('COMPLETED');
    }
    const [first, second] = await owner.grants();
    expect(second?.fence).toBeGreaterThan(first?.fence ?? Infinity);
  } finally {
    await skipping.close();
  }
});
