import { describe, expect, it, vi } from 'vitest';
import { callAction } from '../../src/gateway/call-tool.ts';
import type { Caller } from '../../src/gateway/caller.ts';
import { DEFAULT_LIMITS } from '../../src/gateway/limits.ts';
import { inRequest } from '../../src/gateway/open-request.ts';
import { toolOf } from '../../src/gateway/tool-spec.ts';
import { drivenClient, drivenTools, LOCAL, transfer } from '../support/driven-gateway.ts';
import { HandDrivenClock } from '../support/hand-driven-clock.ts';
import { callerWith, callParts } from '../support/past-the-sdk.ts';

function setUp(change: Partial<Caller> = {}) {
  const client = drivenClient();
  const clock = new HandDrivenClock();
  const leave = new AbortController();
  const shutdown = new AbortController();
  const parts = callParts({ client, clock, shutdown: shutdown.signal });
  const caller = callerWith({ signal: leave.signal, ...change });
  const call = (args: object = { to: 'bob', amount: 5 }, tool = toolOf(transfer)) =>
    inRequest(parts, caller, (request) => callAction(parts, tool, args, request));
  return {
    client,
    clock,
    leave,
    shutdown,
    call,
    waiting: () => vi.waitFor(() => expect(client.openWaits).toBe(1)),
  };
}
const readBalance = drivenTools.find(({ name }) => name === 'read_balance') ?? toolOf(transfer);

describe('a blocking call', () => {
  it('is started before anything is answered, with the key apart from the arguments [M1.2] [M1.3]', async () => {
    const { client, call } = setUp();
    const release = client.hold('start');
    const pending = call({ to: 'bob', amount: 5, idempotencyKey: 'k' });
    expect(client.starts).toHaveLength(0);
    release();
    await vi.waitFor(() =>
      expect(client.starts).toEqual([
        { action: 'transfer', args: { to: 'bob', amount: 5 }, key: 'k', principal: LOCAL },
      ]),
    );
    client.complete(null);
    await pending;
  });

  it('that took its whole time to start is handed its task at once: the caller’s patience began with the call [M3.1]', async () => {
    const { client, clock, call } = setUp();
    const release = client.hold('start');
    const pending = call();
    clock.pass(DEFAULT_LIMITS.blockingMs);
    release();
    expect(await pending).toMatchObject({ result: { structuredContent: { code: 'operation_in_progress' } } });
  });

  it('without a key attaches where the tool allows it, a safe one never [M1.4]', async () => {
    const { client, call } = setUp();
    client.immediate.set('transfer', () => ({ status: 'completed' }));
    client.immediate.set('read_balance', () => ({ status: 'completed' }));
    await call();
    await call({ to: 'b', amount: 1 }, { ...toolOf(transfer), attach: false });
    await call({ account: 'a' }, readBalance);
    expect(client.starts.map(({ attach }) => attach)).toEqual([true, false, false]);
  });

  it.each([
    [
      'starts anew where nothing was sent',
      { status: 'cancelled', effect: 'none', cause: 'cancelled' },
      'task_2',
    ],
    [
      'has its outcome where it took effect',
      { status: 'completed', effect: 'applied', cause: 'cancelled_after_commit' },
      'task_1',
    ],
  ] as const)(
    'that meets a task asked to cancel waits for its end and %s [M1.4]',
    async (_what, end, taskId) => {
      const { client, call, waiting } = setUp({ meta: { 'holdfast/idempotencyKey': 'k' } });
      const first = call();
      await waiting();
      await client.cancel('task_1', LOCAL);
      const again = call();
      await vi.waitFor(() => expect(client.openWaits).toBe(2));
      client.move(end, 'task_1');
      await first;
      if (taskId === 'task_2') {
        await waiting();
        client.complete({ receipt: 'r' }, 'task_2');
      }
      expect(await again).toMatchObject({
        result: { _meta: { 'holdfast/task': { taskId, status: 'completed' } } },
      });
    },
  );

  it('whose caller leaves frees its wait and cancels nothing [M5.3]', async () => {
    const { client, leave, call, waiting } = setUp();
    const pending = call();
    await waiting();
    leave.abort(new Error('gone'));
    await expect(pending).rejects.toThrow('gone');
    expect(client).toMatchObject({ openWaits: 0, cancels: [] });
  });

  it.each([
    ['of its own is cancelled', {}, {}, 1],
    ['under a key is not: it may be another’s too', { meta: { 'holdfast/idempotencyKey': 'k' } }, {}, 0],
    ['on legacy HTTP is not: there a disconnect is no cancel', { abortMeansCancel: () => false }, {}, 0],
    ['cut by our own shutdown is not', {}, { shutdown: true }, 0],
  ])(
    'that is safe and %s when its caller leaves [M5.3] [M5.1] [M5.4]',
    async (_what, caller, also, cancels) => {
      const { client, leave, shutdown, call, waiting } = setUp(caller);
      const pending = call({ account: 'a' }, readBalance);
      await waiting();
      if ('shutdown' in also) shutdown.abort();
      leave.abort(new Error('gone'));
      await expect(pending).rejects.toThrow('gone');
      expect(client.cancels).toHaveLength(cancels);
    },
  );

  it('that our shutdown meets answers with the task’s handle [M5.4]', async () => {
    const { shutdown, call, waiting } = setUp();
    const pending = call();
    await waiting();
    shutdown.abort();
    expect(await pending).toMatchObject({
      kind: 'result',
      result: { structuredContent: { code: 'operation_in_progress', task: { taskId: 'task_1' } } },
    });
  });

  it('never loses a started task: when waiting fails, its last known state is the answer, marked stale [M2.2]', async () => {
    const { client, call } = setUp();
    client.failNext('wait', new Error('connection reset'));
    expect(await call()).toMatchObject({
      kind: 'result',
      result: { structuredContent: { task: { taskId: 'task_1', stale: true } } },
    });
  });

  it('that attached says so in its answer, however the task ended [M1.5]', async () => {
    const { client, call, waiting } = setUp();
    const first = call();
    await waiting();
    const second = call();
    await vi.waitFor(() => expect(client.openWaits).toBe(2));
    client.complete({ receipt: 'r' });
    const attached = async (pending: ReturnType<typeof call>) =>
      (await pending).kind === 'result' &&
      ((await pending) as { result: { _meta: Record<string, unknown> } }).result._meta['holdfast/task'];
    expect(await attached(first)).toMatchObject({ attached: false });
    expect(await attached(second)).toMatchObject({ attached: true });
  });
});

describe('a call of a client that declared Tasks', () => {
  it('answers with the task while it is open, and with the result once it has ended [M2.1]', async () => {
    const { client, call } = setUp({ declaresTasks: true });
    const pending = call({ to: 'bob', amount: 5, idempotencyKey: 'k' });
    await vi.waitFor(() => expect(client.openWaits).toBe(1));
    client.move({ status: 'needs_attention' });
    expect(await pending).toMatchObject({ kind: 'task', answer: { taskId: 'task_1' } });
    client.complete({ receipt: 'r' });
    expect(await call({ to: 'bob', amount: 5, idempotencyKey: 'k' })).toMatchObject({
      kind: 'result',
      result: { structuredContent: { receipt: 'r' } },
    });
  });

  it('blocks for a safe action as for anyone [M2.1]', async () => {
    const { client, call, waiting } = setUp({ declaresTasks: true });
    const pending = call({ account: 'a' }, readBalance);
    await waiting();
    client.complete({ balance: 7 });
    expect(await pending).toMatchObject({ kind: 'result', result: { structuredContent: { balance: 7 } } });
  });
});
