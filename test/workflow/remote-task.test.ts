/** M8.4, S8.4: a task of ours whose request another server goes on with, from the call to its end, on a real engine. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestHoldfast, openTestServer } from '../../src/testing/index.ts';
import type { TestHoldfast, TestServer } from '../../src/testing/index.ts';
import type { TaskState } from '../../src/task/state.ts';
import { openRequests } from '../../src/task/remote-state.ts';
import { detailedTask } from '../../src/gateway/tasks/wire-task.ts';
import type { JsonObject } from '../../src/task/json.ts';
import { RemoteDepot } from '../support/remote-depot.ts';

const ann = { tenant: 'local', subject: 'ann', roles: [] };
const DONE = { kind: 'completed', result: { structuredContent: { files: 3 } } } as const;

/** A task's id follows from its key, and the server is one for all tests. */
let keys = 0;
let server: TestServer;
beforeAll(async () => {
  server = await openTestServer('local');
});
afterAll(() => server.close());

async function staged(
  more: NonNullable<Parameters<RemoteDepot['action']>[0]>,
  play: (holdfast: TestHoldfast, depot: RemoteDepot, taskId: string) => Promise<void>,
): Promise<void> {
  const depot = new RemoteDepot();
  const holdfast = await createTestHoldfast({
    actions: [depot.action(more)],
    remotes: (name) => (name === 'depot' ? depot : undefined),
    server,
  });
  try {
    const { taskId } = await holdfast.client.start({
      ...{ action: 'archive', args: { folder: 'a' }, key: `k-${(keys += 1)}`, principal: ann },
    });
    await play(holdfast, depot, taskId);
  } finally {
    await holdfast.close();
  }
}

/** Each question has a bound of its own: one that meets no poller would hang for long. */
const stateOf = (holdfast: TestHoldfast, taskId: string): Promise<TaskState> =>
  holdfast.temporal.withDeadline(Date.now() + 3_000, () =>
    holdfast.temporal.workflow.getHandle(taskId).query<TaskState>('task'),
  );
const phaseOf = async (holdfast: TestHoldfast, taskId: string) =>
  (await stateOf(holdfast, taskId).catch(() => null))?.phase;
const WAIT = { timeout: 30_000, interval: 50 };

async function watched(holdfast: TestHoldfast, taskId: string): Promise<void> {
  await expect
    .poll(() => phaseOf(holdfast, taskId), WAIT)
    .toMatchObject({ kind: 'remote', seen: { kind: 'working' } });
}

test('[M8.4] it is watched until it has completed; its result is ours, and the tool was called once', () =>
  staged({}, async (holdfast, depot, taskId) => {
    await watched(holdfast, taskId);
    expect(await holdfast.client.get(taskId, ann)).toMatchObject({ status: 'running', effect: null });
    depot.set(DONE);
    const answer = await holdfast.client.wait(taskId, ann, { timeoutMs: 30_000 });
    expect(answer).toMatchObject({ status: 'completed', effect: 'applied', result: { files: 3 } });
    expect(depot.asked).toMatchObject({ submit: 1, cancel: 0 });
  }));

test('[M8.4][S5.3] the run deadline does not shoot down what is under way', () =>
  staged({ deadlines: { run: '2s', attempt: '1s' } }, async (holdfast, depot, taskId) => {
    await watched(holdfast, taskId);
    const began = depot.asked.status;
    await expect.poll(() => depot.asked.status, WAIT).toBeGreaterThan(began + 3);
    depot.set(DONE);
    const answer = await holdfast.client.wait(taskId, ann, { timeoutMs: 30_000 });
    expect(answer).toMatchObject({ status: 'completed', result: { files: 3 } });
  }));

test('[S7.4][S8.4] a cancel is handed on once, however often it is asked for; how it ended is read', () =>
  staged({ effect: 'safe' }, async (holdfast, depot, taskId) => {
    await watched(holdfast, taskId);
    for (let times = 0; times < 3; times += 1) await holdfast.client.cancel(taskId, ann);
    const answer = await holdfast.client.wait(taskId, ann, { timeoutMs: 30_000 });
    expect(answer).toMatchObject({ status: 'cancelled', effect: 'none' });
    expect(depot.asked).toMatchObject({ submit: 1, cancel: 1 });
  }));

test('[S7.4] a cancel that comes too late there ends with what was done', () =>
  staged({}, async (holdfast, depot, taskId) => {
    depot.onCancel = DONE;
    await watched(holdfast, taskId);
    await holdfast.client.cancel(taskId, ann);
    const answer = await holdfast.client.wait(taskId, ann, { timeoutMs: 30_000 });
    expect(answer).toMatchObject({ status: 'completed', effect: 'applied', cancelRequested: true });
  }));

test('[S7.4] cancelled there proves nothing about an unsafe effect: a person is asked', () =>
  staged({}, async (holdfast, _depot, taskId) => {
    await watched(holdfast, taskId);
    await holdfast.client.cancel(taskId, ann);
    await expect.poll(() => phaseOf(holdfast, taskId), WAIT).toMatchObject({ kind: 'needs_attention' });
  }));

test('[S8.4] a server that takes no cancel is asked again, and polled between the tries', () =>
  staged({}, async (holdfast, depot, taskId) => {
    depot.onCancel = null;
    await watched(holdfast, taskId);
    await holdfast.client.cancel(taskId, ann);
    await expect.poll(() => depot.asked.cancel, WAIT).toBeGreaterThan(1);
    depot.set(DONE);
    const answer = await holdfast.client.wait(taskId, ann, { timeoutMs: 30_000 });
    expect(answer).toMatchObject({ status: 'completed' });
  }));

test('[M8.4] an answer that the server refuses for good opens its key again, and another one is taken', () =>
  staged({}, async (holdfast, depot, taskId) => {
    await watched(holdfast, taskId);
    depot.refuses = 1;
    depot.set({ kind: 'input_required', requests: { shelf: { method: 'elicitation/create', params: {} } } });
    await expect.poll(async () => openRequests(await stateOf(holdfast, taskId)), WAIT).toHaveLength(1);
    const [open] = openRequests(await stateOf(holdfast, taskId));
    const answer = (shelf: string) =>
      holdfast.client.answer(taskId, ann, { [open?.key ?? '']: { action: 'accept', content: { shelf } } });
    expect(await answer('no such')).toMatchObject({ accepted: true });
    await expect.poll(() => depot.refuses, WAIT).toBe(0);
    await expect.poll(async () => openRequests(await stateOf(holdfast, taskId)), WAIT).toHaveLength(1);
    expect(await answer('B4')).toMatchObject({ accepted: true });
    await expect
      .poll(() => depot.answers, WAIT)
      .toEqual([{ shelf: { action: 'accept', content: { shelf: 'B4' } } }]);
    depot.set(DONE);
    expect(await holdfast.client.wait(taskId, ann, { timeoutMs: 30_000 })).toMatchObject({
      status: 'completed',
    });
  }));

test('[S7.4] an answer that waits behind a cancel which is not taken keeps neither from being tried', () =>
  staged({}, async (holdfast, depot, taskId) => {
    await watched(holdfast, taskId);
    depot.onCancel = null;
    depot.set({ kind: 'input_required', requests: { shelf: { method: 'elicitation/create', params: {} } } });
    await expect.poll(async () => openRequests(await stateOf(holdfast, taskId)), WAIT).toHaveLength(1);
    const [open] = openRequests(await stateOf(holdfast, taskId));
    await holdfast.client.cancel(taskId, ann);
    await expect.poll(() => depot.asked.cancel, WAIT).toBeGreaterThan(0);
    expect(
      await holdfast.client.answer(taskId, ann, { [open?.key ?? '']: { action: 'accept' } }),
    ).toMatchObject({ accepted: true });
    const tried = depot.asked.cancel;
    await expect.poll(() => depot.asked.cancel, WAIT).toBeGreaterThan(tried + 1);
    depot.onCancel = { kind: 'working' };
    await expect.poll(() => depot.asked.answer, WAIT).toBe(1);
    depot.set(DONE);
    const answer = await holdfast.client.wait(taskId, ann, { timeoutMs: 30_000 });
    expect(answer).toMatchObject({ status: 'completed' });
  }));

test('[M8.4] what it asks for is ours to answer: open keys only, each forwarded once', () =>
  staged({}, async (holdfast, depot, taskId) => {
    await watched(holdfast, taskId);
    const request = { method: 'elicitation/create', params: { message: 'Which shelf?' } };
    depot.set({ kind: 'input_required', requests: { shelf: request }, message: 'needs a shelf' });
    await expect.poll(async () => openRequests(await stateOf(holdfast, taskId)), WAIT).toHaveLength(1);
    const [open] = openRequests(await stateOf(holdfast, taskId));
    expect(open).toMatchObject({ remoteKey: 'shelf', request });
    const answer = (answers: JsonObject) => holdfast.client.answer(taskId, ann, answers);
    const shown = await holdfast.client.get(taskId, ann);
    expect(shown.remote).toMatchObject({ server: 'depot', requests: { [open?.key ?? '']: request } });
    expect(shown.statusMessage).toContain('At work at depot: needs a shelf.');
    expect(detailedTask(shown, { principal: ann, canElicit: true })).toMatchObject({
      status: 'input_required',
      inputRequests: { [open?.key ?? '']: request },
    });
    expect(detailedTask(shown, { principal: ann, canElicit: false }).status).toBe('working');
    expect(await answer({ shelf: 1, other: 2 })).toMatchObject({ accepted: false, code: 'not_open' });
    const given = { [open?.key ?? '']: { action: 'accept', content: { shelf: 'B4' } }, other: 2 };
    expect(await answer(given)).toMatchObject({ accepted: true });
    expect(await answer(given)).toMatchObject({ accepted: false, code: 'not_open' });
    await expect.poll(() => depot.asked.answer, WAIT).toBe(1);
    expect(depot.answers).toEqual([{ shelf: { action: 'accept', content: { shelf: 'B4' } } }]);
    await expect
      .poll(() => phaseOf(holdfast, taskId), WAIT)
      .toMatchObject({ seen: { kind: 'working' }, answered: ['shelf'], answers: {} });
    depot.set(DONE);
    await holdfast.client.wait(taskId, ann, { timeoutMs: 30_000 });
    const entries = await holdfast.client.audit(taskId, ann);
    expect(entries.map(({ type }) => type)).toContain('remote_answered');
    expect(JSON.stringify(entries)).not.toContain('B4');
  }));

test('[M8.4] forgotten by its server: nobody knows, and a person is asked', () =>
  staged({}, async (holdfast, depot, taskId) => {
    await watched(holdfast, taskId);
    depot.states.clear();
    await expect.poll(() => phaseOf(holdfast, taskId), WAIT).toMatchObject({ kind: 'needs_attention' });
    expect(depot.asked.submit).toBe(1);
  }));

test('[S8.4] a watch that an operator ended is begun anew, and nothing is sent again', () =>
  staged({}, async (holdfast, depot, taskId) => {
    await watched(holdfast, taskId);
    const { operationId } = await stateOf(holdfast, taskId);
    const child = (attempt: number) =>
      holdfast.temporal.workflow.getHandle(`${taskId}:remote:${operationId ?? ''}:${attempt}`);
    await child(1).terminate('by mistake');
    await expect
      .poll(() => phaseOf(holdfast, taskId), WAIT)
      .toMatchObject({ kind: 'remote', attempt: 2, seen: { kind: 'working' } });
    depot.set(DONE);
    const answer = await holdfast.client.wait(taskId, ann, { timeoutMs: 30_000 });
    expect(answer).toMatchObject({ status: 'completed' });
    expect(depot.asked.submit).toBe(1);
  }));
