/** S3.6, S8.4: a watch whose history grows long goes on in a next run with all that it was told and has seen. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RemoteTaskHandle } from '../../src/contract/remote-server.ts';
import type { JsonObject } from '../../src/task/json.ts';
import { openRequests } from '../../src/task/remote-state.ts';
import type { TaskState } from '../../src/task/state.ts';
import { createTestHoldfast, openTestServer } from '../../src/testing/index.ts';
import type { TestHoldfast, TestServer } from '../../src/testing/index.ts';
import { RemoteDepot } from '../support/remote-depot.ts';

const ann = { tenant: 'local', subject: 'ann', roles: [] };
const DONE = { kind: 'completed', result: { structuredContent: { files: 3 } } } as const;
const WAIT = { timeout: 60_000, interval: 100 };
/** A run of the watch holds a call or two. */
const EVENTS_MAX = 12;

/** Remembers the order of its calls, and takes no answer and tells no status while it is told to fail. */
class FailingDepot extends RemoteDepot {
  readonly order: string[] = [];
  readonly failing = new Set<'status' | 'answer'>();

  override status(task: RemoteTaskHandle) {
    this.order.push('status');
    return this.failing.has('status') ? Promise.reject(new Error('unreachable')) : super.status(task);
  }

  override cancel(task: RemoteTaskHandle) {
    this.order.push('cancel');
    return super.cancel(task);
  }

  override answer(task: RemoteTaskHandle, responses: JsonObject) {
    this.order.push('answer');
    return this.failing.has('answer')
      ? Promise.reject(new Error('unreachable'))
      : super.answer(task, responses);
  }
}

let keys = 0;
let server: TestServer;
beforeAll(async () => {
  server = await openTestServer('local', { historyEventsMax: EVENTS_MAX });
});
afterAll(() => server.close());

interface Stage {
  holdfast: TestHoldfast;
  depot: FailingDepot;
  taskId: string;
  state(): Promise<TaskState>;
  /** Runs of the watch before the present one; only ever grows. */
  continuedTo(runs: number): Promise<void>;
}

async function staged(play: (stage: Stage) => Promise<void>): Promise<void> {
  const depot = new FailingDepot();
  const remotes = () => depot;
  const holdfast = await createTestHoldfast({ actions: [depot.action({ effect: 'safe' })], remotes, server });
  try {
    const call = { action: 'archive', args: { folder: 'a' }, key: `k-${(keys += 1)}`, principal: ann };
    const { taskId } = await holdfast.client.start(call);
    const state = () =>
      holdfast.temporal.withDeadline(Date.now() + 3_000, () =>
        holdfast.temporal.workflow.getHandle(taskId).query<TaskState>('task'),
      );
    const phase = async () => (await state().catch(() => null))?.phase;
    await expect.poll(phase, WAIT).toMatchObject({ kind: 'remote', seen: { kind: 'working' } });
    const { operationId } = await state();
    const watch = holdfast.temporal.workflow.getHandle(`${taskId}:remote:${operationId ?? ''}:1`);
    const seen = new Set<string>();
    const runs = async () => seen.add((await watch.describe()).runId).size;
    const continuedTo = async (more: number) => {
      seen.clear();
      await expect.poll(runs, WAIT).toBeGreaterThan(more);
    };
    await play({ holdfast, depot, taskId, state, continuedTo });
  } finally {
    await holdfast.close();
  }
}

test('[S3.6] [S7.4] [S8.4] a cancel that no run of it could hand on is tried by the next, polled between two tries, and goes out once', () =>
  staged(async ({ holdfast, depot, taskId, continuedTo }) => {
    depot.onCancel = null;
    await holdfast.client.cancel(taskId, ann);
    await expect.poll(() => depot.asked.cancel, WAIT).toBeGreaterThan(0);
    await continuedTo(3);
    const tried = depot.asked.cancel;
    await expect.poll(() => depot.asked.cancel, WAIT).toBeGreaterThan(tried);
    expect(depot.order.join(' ')).not.toContain('cancel cancel');
    depot.onCancel = { kind: 'working' };
    const before = depot.asked.cancel;
    await expect.poll(() => depot.asked.cancel, WAIT).toBe(before + 1);
    await continuedTo(2);
    expect(depot.asked.cancel).toBe(before + 1);
    depot.set({ kind: 'cancelled' });
    const answer = await holdfast.client.wait(taskId, ann, { timeoutMs: 60_000 });
    expect(answer).toMatchObject({ status: 'cancelled', effect: 'none' });
    expect(depot.asked).toMatchObject({ submit: 1, cancel: before + 1 });
  }));

test('[S3.6] [M8.4] failures are counted on in the next run, and what was answered reaches the server once', () =>
  staged(async ({ holdfast, depot, taskId, state, continuedTo }) => {
    const request = { method: 'elicitation/create', params: { message: 'Which shelf?' } };
    depot.set({ kind: 'input_required', requests: { shelf: request } });
    await expect.poll(async () => openRequests(await state()), WAIT).toHaveLength(1);
    depot.failing.add('answer');
    const [open] = openRequests(await state());
    await holdfast.client.answer(taskId, ann, { [open?.key ?? '']: { action: 'accept' } });
    await expect.poll(() => depot.order.filter((kind) => kind === 'answer').length, WAIT).toBeGreaterThan(0);
    await continuedTo(2);
    expect(depot.answers).toEqual([]);
    depot.failing.delete('answer');
    await expect.poll(() => depot.answers, WAIT).toEqual([{ shelf: { action: 'accept' } }]);
    depot.failing.add('status');
    const failures = async () => {
      const { phase } = await state();
      return phase.kind === 'remote' ? phase.failures : 0;
    };
    await expect.poll(failures, WAIT).toBe(1);
    await continuedTo(1);
    await expect.poll(failures, WAIT).toBeGreaterThan(1);
    depot.failing.clear();
    depot.set(DONE);
    expect(await holdfast.client.wait(taskId, ann, { timeoutMs: 60_000 })).toMatchObject({
      status: 'completed',
    });
    expect(depot.asked).toMatchObject({ submit: 1, cancel: 0 });
    expect(depot.answers).toHaveLength(1);
  }));
