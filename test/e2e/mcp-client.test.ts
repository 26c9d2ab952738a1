/** `holdfast/mcp-client` against the gateway over each transport and era, with tasks that the test moves by hand. */
import { readFileSync, writeFileSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createGateway } from '../../src/gateway/index.ts';
import type { Gateway } from '../../src/gateway/index.ts';
import { McpClient } from '../../src/mcp-client/index.ts';
import type { McpClientOptions, TaskReading } from '../../src/mcp-client/index.ts';
import { MCP_CLIENT_LIMITS } from '../../src/mcp-client/limits.ts';
import { drivenClient, drivenTools, LOCAL } from '../support/driven-gateway.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import type { FaultProxy } from '../support/fault-proxy.ts';
import { faultyStdio } from '../support/faulty-stdio.ts';
import type { FaultyStdio } from '../support/faulty-stdio.ts';
import { HandDrivenClock } from '../support/hand-driven-clock.ts';
import type { HandDrivenTaskClient } from '../support/hand-driven-task-client.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const soon = (check: () => void) => vi.waitFor(check, { timeout: 20_000 });

interface OverHttp {
  client: McpClient;
  proxy: FaultProxy;
  driven: HandDrivenTaskClient;
  gateway: () => Gateway;
  /** Another gateway before the same tasks, at once or when the answered function is called. */
  replace: () => Promise<{ start: () => Promise<void> }>;
}

async function overHttp(
  era: 'modern' | 'legacy',
  options: Partial<McpClientOptions> = {},
): Promise<OverHttp> {
  const driven = drivenClient();
  const open = async () => {
    const gateway = createGateway({
      client: driven,
      tools: drivenTools,
      auth: { kind: 'loopback', principal: LOCAL },
      limits: { inlineWaitMs: 0, progressIntervalMs: 0, drainMs: 0 },
    });
    return { gateway, url: `${(await gateway.serveHttp({ port: 0 })).url}/mcp` };
  };
  let served = await open();
  closers.push(() => served.gateway.close());
  const proxy = await startFaultProxy(served.url);
  closers.push(() => proxy.close());
  if (era === 'legacy') proxy.forget('server/discover');
  const client = await McpClient.connect({ server: { url: proxy.url }, ...options });
  closers.push(() => client.close());
  const replace = async () => {
    await served.gateway.close();
    return {
      start: async () => {
        served = await open();
        proxy.target(served.url);
      },
    };
  };
  return { client, proxy, driven, gateway: () => served.gateway, replace };
}

const stdioCommand = {
  command: process.execPath,
  args: [
    '--experimental-strip-types',
    '--disable-warning=ExperimentalWarning',
    join(import.meta.dirname, '../support/stdio-gateway.ts'),
    JSON.stringify({ inlineWaitMs: 0, progressIntervalMs: 0 }),
  ],
};

async function overStdio(
  options: Partial<McpClientOptions> = {},
): Promise<{ client: McpClient; stdio: FaultyStdio }> {
  const stdio = faultyStdio({ ...stdioCommand, env: { ...(process.env as Record<string, string>) } });
  const client = await McpClient.connect({ server: { open: stdio.open }, ...options });
  closers.push(() => client.close());
  return { client, stdio };
}

describe('a call that its caller gives up', () => {
  it('over HTTP of 2026-07-28 closes its response stream and POSTs no cancel; the gateway frees the wait [M5.5]', async () => {
    const { client, proxy, driven } = await overHttp('modern');
    const gone = new AbortController();
    const call = client.call('read_balance', { account: 'a' }, { signal: gone.signal });
    await soon(() => expect(driven.openWaits).toBe(1));
    gone.abort();
    expect(await call).toMatchObject({ kind: 'failed', effect: 'none', error: { code: 'no_answer' } });
    const [request] = proxy.of('tools/call');
    expect(await request?.closed).toBe('by the client');
    await soon(() => expect([driven.openWaits, driven.openTasks]).toEqual([0, 1]));
    expect(proxy.of('notifications/cancelled')).toEqual([]);
    expect(proxy.requests.filter(({ headers }) => headers['last-event-id'] !== undefined)).toEqual([]);
  });

  it('over HTTP of 2025-11-25 POSTs the cancel [M5.5]', async () => {
    const { client, proxy, driven } = await overHttp('legacy');
    const gone = new AbortController();
    const call = client.call('read_balance', { account: 'a' }, { signal: gone.signal });
    await soon(() => expect(driven.openWaits).toBe(1));
    gone.abort();
    expect(await call).toMatchObject({ kind: 'failed', effect: 'none' });
    await soon(() => expect(proxy.of('notifications/cancelled')).toHaveLength(1));
    const [request] = proxy.of('tools/call');
    expect(proxy.of('notifications/cancelled')[0]?.message.params).toMatchObject({
      requestId: request?.message.id,
    });
  });

  it('over stdio says so, and what still comes under its id is ignored [M5.5]', async () => {
    const { client, stdio } = await overStdio();
    const gone = new AbortController();
    const call = client.call('read_balance', { account: 'a' }, { signal: gone.signal });
    await soon(() => expect(stdio.sent.filter(({ method }) => method === 'tools/call')).toHaveLength(1));
    gone.abort();
    expect(await call).toMatchObject({ kind: 'failed', effect: 'none' });
    const request = stdio.sent.find(({ method }) => method === 'tools/call');
    await soon(() =>
      expect(stdio.sent.at(-1)).toMatchObject({
        method: 'notifications/cancelled',
        params: { requestId: request?.id },
      }),
    );
    expect(await client.call('open_tasks', {})).toMatchObject({ kind: 'completed' });
  });

  it('leaves its task alone, and names it [M5.3] [M6.3]', async () => {
    const { client, driven } = await overHttp('modern');
    const gone = new AbortController();
    const call = client.call('transfer', { to: 'bob', amount: 5 }, { signal: gone.signal, key: 'order-7' });
    await soon(() => expect(driven.openTasks).toBe(1));
    setImmediate(() => gone.abort());
    const outcome = await call;
    expect(outcome).toMatchObject({ kind: 'unknown', reason: 'abandoned', key: 'order-7' });
    expect(driven.cancels).toEqual([]);
    driven.complete({ receipt: 1 });
    const again = await client.call('transfer', { to: 'bob', amount: 5 }, { key: 'order-7' });
    expect(again).toMatchObject({ kind: 'completed', result: { structuredContent: { receipt: 1 } } });
    expect(driven.starts.filter(({ action }) => action === 'transfer').map(({ key }) => key)).toEqual([
      'order-7',
      'order-7',
    ]);
  });
});

describe.each(['modern', 'legacy'] as const)('tasks of a %s server', (era) => {
  it('are waited for, told about while they move, and asked to cancel [M6.3] [M2.4]', async () => {
    const { client, driven } = await overHttp(era);
    const told: string[] = [];
    const call = client.call(
      'transfer',
      { to: 'bob', amount: 5 },
      { onProgress: ({ message }) => void told.push(message) },
    );
    await soon(() => expect(driven.openTasks).toBe(1));
    driven.move({ statusMessage: 'half way' });
    await soon(() => expect(told.join()).toContain('half way'));
    const task = client.task(driven.lastTaskId);
    expect(await task.get()).toMatchObject({ status: 'running', outcome: null, hasEnded: false });
    await task.cancel();
    expect(driven.cancels).toHaveLength(1);
    driven.move({ status: 'cancelled', effect: 'none', cause: 'cancelled' });
    expect(await call).toMatchObject({ kind: 'failed', effect: 'none', error: { code: 'cancelled' } });
    await expect(client.task('task_99').get()).rejects.toThrow(/task not found|No such task/);
  });

  it('have their tools’ classes published, where the client has use for the tools [S5.1] [M6.3]', async () => {
    const { client } = await overHttp(era);
    const effects = Object.fromEntries(
      (await client.tools()).map(({ name, _meta }) => [name, _meta?.['holdfast/effect']]),
    );
    expect(effects).toMatchObject({ transfer: 'conditional', read_balance: 'safe' });
    if (era === 'legacy')
      expect(effects).toMatchObject({ task_get: 'safe', task_wait: 'safe', task_answer: 'unsafe' });
  });

  it('that need a person come back with the question, and its answer is passed on once, however often it gets lost [M2.3] [M6.3]', async () => {
    const { client, proxy, driven } = await overHttp(era, { answersInput: true });
    const call = client.call('transfer', { to: 'bob', amount: 5 });
    await soon(() => expect(driven.openTasks).toBe(1));
    await client.call('ask', {});
    const asked = await call;
    expect(asked).toMatchObject({ kind: 'input_needed', taskId: driven.lastTaskId });
    if (asked.kind !== 'input_needed') throw new Error('unreachable');
    expect(Object.keys(asked.requests)).toEqual(['action#1']);
    const task = client.task(driven.lastTaskId);
    // Lost before it was heard it is sent again, once the task was read and still asks; lost afterwards it is not.
    if (era === 'modern') proxy.breakNext('tasks/update', 'before the request', 'after the request');
    else proxy.breakNext('tools/call', 'before the request', null, 'after the request');
    await task.answer({ 'action#1': { action: 'accept', content: { decision: 'approve' } } });
    const answers = proxy.requests.filter(
      ({ message }) => message.method === 'tasks/update' || message.params?.name === 'task_answer',
    );
    expect(answers.map(({ wasForwarded }) => wasForwarded)).toEqual([false, true]);
    expect(driven.decisions.map(({ decision }) => decision.kind)).toEqual(['approve']);
    driven.complete('done');
    expect(await task.wait()).toMatchObject({ kind: 'completed' });
  });
});

it('starts a server that is named by its command', async () => {
  const client = await McpClient.connect({ server: stdioCommand });
  closers.push(() => client.close());
  expect(await client.call('open_tasks', {})).toMatchObject({
    kind: 'completed',
    result: { structuredContent: { open: 0 } },
  });
});

describe('a watch', () => {
  it('outlives the gateway: its filter is restored with what is still open, what happened meanwhile is read, and no state is told twice [M6.3] [mode 12]', async () => {
    const { client, proxy, driven, replace } = await overHttp('modern');
    for (const to of ['ann', 'bob']) driven.starts.push(await startTransfer(driven, to));
    const [ann, bob] = ['task_1', 'task_2'];
    const told: TaskReading[] = [];
    const watching = (async () => {
      for await (const reading of client.listen([ann, bob])) told.push(reading);
    })();
    const states = (taskId: string) =>
      told.filter((each) => each.taskId === taskId).map(({ statusMessage }) => statusMessage);
    await soon(() =>
      expect([states(ann), states(bob)]).toEqual([['running attempt 1'], ['running attempt 1']]),
    );
    driven.complete('ann is paid', ann);
    await soon(() => expect(states(ann)).toHaveLength(2));
    const listensBefore = proxy.of('subscriptions/listen').length;
    const { start } = await replace();
    driven.move({ statusMessage: 'while nobody was there' }, bob);
    await start();
    await soon(() => expect(states(bob)).toEqual(['running attempt 1', 'while nobody was there']));
    driven.complete('bob is paid', bob);
    await watching;
    expect([states(ann).at(-1), states(bob).at(-1)]).toEqual(['completed', 'completed']);
    expect(new Set(told.map((each) => `${each.taskId} ${each.statusMessage}`)).size).toBe(told.length);
    const filters = proxy
      .of('subscriptions/listen')
      .map(({ message }) => (message.params?.notifications as { taskIds: string[] }).taskIds);
    expect(filters[0]).toEqual([ann, bob]);
    for (const filter of filters.slice(listensBefore)) expect(filter).toEqual([bob]);
    const ids = proxy.requests.map(({ message }) => message.id).filter((id) => id !== undefined);
    expect(new Set(ids).size).toBe(ids.length);
    expect(proxy.requests.filter(({ headers }) => headers['last-event-id'] !== undefined)).toEqual([]);
  });

  it.each(['http', 'stdio'])(
    'over %s is pushed to: it hears of each state with its own clock standing still [M2.5] [M6.3]',
    async (transport) => {
      const clock = new HandDrivenClock();
      const { client } =
        transport === 'http' ? await overHttp('modern', { clock }) : await overStdio({ clock });
      const gone = new AbortController();
      const started = await client.call(
        'transfer',
        { to: 'ann', amount: 5 },
        { signal: gone.signal, onProgress: ({ progress }) => void (progress === null && gone.abort()) },
      );
      const told: string[] = [];
      const watching = (async () => {
        for await (const { statusMessage } of client.listen([started.taskId ?? ''])) told.push(statusMessage);
      })();
      await soon(() => expect(told).toHaveLength(1));
      for (const message of ['one', 'two', 'three']) {
        await client.call('advance', { message });
        await soon(() => expect(told.at(-1)).toBe(message));
      }
      await client.call('release', { result: 'done' });
      await watching;
      expect(told.slice(1)).toEqual(['one', 'two', 'three', 'completed']);
    },
  );

  it('ends with its signal and touches no task', async () => {
    const { client, driven } = await overHttp('modern');
    await startTransfer(driven, 'ann');
    const gone = new AbortController();
    const told: string[] = [];
    for await (const { taskId } of client.listen(['task_1'], { signal: gone.signal })) {
      told.push(taskId);
      gone.abort();
    }
    expect([told, driven.openTasks, driven.cancels]).toEqual([['task_1'], 1, []]);
  });
});

async function startTransfer(driven: HandDrivenTaskClient, to: string) {
  const request = { action: 'transfer', args: { to, amount: 5 }, principal: LOCAL, key: to };
  await driven.start(request);
  return request;
}

describe('docs/mcp-client.md', () => {
  it('has an example that runs as it stands', async () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/mcp-client.md'), 'utf8');
    const example = /```ts\n(import [\s\S]*?)```/.exec(page)?.[1] ?? '';
    const folder = join(import.meta.dirname, '../../test-output/mcp-client-example');
    mkdirSync(folder, { recursive: true });
    closers.push(() => Promise.resolve(rmSync(folder, { recursive: true, force: true })));
    writeFileSync(join(folder, 'pay.ts'), example);
    const { pay } = (await import(/* @vite-ignore */ join(folder, 'pay.ts'))) as {
      pay: (url: string) => Promise<string>;
    };
    const { proxy, driven } = await overHttp('modern');
    const paying = pay(proxy.url);
    await soon(() => expect(driven.openTasks).toBe(1));
    driven.complete({ receipt: 'r-1' });
    expect(await paying).toBe('done in task task_1: {"receipt":"r-1"}');
    driven.immediate.set('transfer', () => ({
      ...{ status: 'failed' as const, effect: 'none' as const },
      error: { code: 'permanent_failure', message: 'no' },
    }));
    expect(driven.starts[0]).toMatchObject({ key: 'order-7', args: { to: 'bob', amount: 5 } });
  });
});

describe('the list of tools', () => {
  /** The SDK reads one of its own when it connects, under a number. */
  const readings = (proxy: FaultProxy) =>
    proxy.of('tools/list').filter(({ message }) => typeof message.id === 'string');

  it('is read once for first calls that come together', async () => {
    const { client, proxy } = await overHttp('modern');
    const calls = ['a', 'b', 'c'].map(() => client.call('open_tasks', {}));
    for (const outcome of await Promise.all(calls)) expect(outcome).toMatchObject({ kind: 'completed' });
    expect(readings(proxy)).toHaveLength(1);
  });

  it('is read by who still wants it when the call that began to read is given up', async () => {
    const { client, proxy } = await overHttp('modern');
    const gone = new AbortController();
    const first = client.call('open_tasks', {}, { signal: gone.signal });
    const second = client.call('open_tasks', {});
    gone.abort();
    expect(await first).toMatchObject({ kind: 'failed', effect: 'none' });
    expect(await second).toMatchObject({ kind: 'completed' });
    expect(proxy.of('tools/call')).toHaveLength(1);
  });

  it('is not read for every call of a tool that is not on it, and is again after a while', async () => {
    const clock = new HandDrivenClock();
    const { client, proxy } = await overHttp('modern', { clock });
    const callIt = () => client.call('no_such_tool', {});
    await callIt();
    await callIt();
    expect(readings(proxy)).toHaveLength(1);
    clock.pass(MCP_CLIENT_LIMITS.unlistedMs.value);
    await callIt();
    expect(readings(proxy)).toHaveLength(2);
  });
});
