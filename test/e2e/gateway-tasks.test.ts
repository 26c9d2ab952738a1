/** The Tasks extension (M2), through its own client where that has a way, and raw where it has none. */
import { isCreateTaskResultV2, isDetailedTaskV2 } from '@modelcontextprotocol/ext-tasks/core/v2';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Gateway } from '../../src/gateway/index.ts';
import { drivenGateway } from '../support/driven-gateway.ts';
import { connectTaskClient } from '../support/task-session.ts';
import type { TaskClientUnderTest } from '../support/task-session.ts';

const AT_ONCE = { inlineWaitMs: 0, blockingMs: 30_000 };

describe.each(['http', 'stdio'] as const)('over %s, a client that declared Tasks', (transport) => {
  let gateway: Gateway;
  let client: TaskClientUnderTest;
  const open = async (limits: object) => {
    if (transport === 'stdio') return connectTaskClient({ transport, limits });
    gateway = drivenGateway({ limits }).gateway;
    return connectTaskClient({ transport, url: `${(await gateway.serveHttp({ port: 0 })).url}/mcp` });
  };
  beforeEach(async () => {
    client = await open(AT_ONCE);
  });
  afterEach(async () => {
    await client.close();
    if (transport === 'http') await gateway.close();
  });
  const call = (name: string, args: object = {}, capabilities?: object) =>
    client.request('tools/call', { name, arguments: args }, capabilities);
  const start = async (key?: string) =>
    (await call('transfer', { to: 'bob', amount: 5, ...(key && { idempotencyKey: key }) })).result ?? {};
  const get = async (taskId: unknown) => (await client.request('tasks/get', { taskId })).result ?? {};

  it('gets the task at once, in the wire’s exact shape, with Holdfast’s facts beside it [M2.1] [M1.5]', async () => {
    const created = await start('k1');
    expect(isCreateTaskResultV2(created)).toBe(true);
    expect(created).toMatchObject({
      resultType: 'task',
      status: 'working',
      ttlMs: null,
      statusMessage: 'running attempt 1',
      _meta: {
        'holdfast/task': { taskId: created.taskId, status: 'running', replayed: false, autoRetry: true },
      },
    });
    expect(created).not.toHaveProperty('result');
    expect(isDetailedTaskV2(await get(created.taskId))).toBe(true);
  });

  it('settles through the extension’s own session, which polls the task to its end [M2.2]', async () => {
    const execution = await client.session.callTool('transfer', { to: 'bob', amount: 5 });
    expect(execution.kind).toBe('task');
    const settled = execution.settle();
    await call('release', { result: { receipt: 'r-1' } });
    expect((await settled).outcome).toMatchObject({
      status: 'completed',
      result: { structuredContent: { receipt: 'r-1' } },
    });
  });

  it('gets the result itself when the task ends within inlineWaitMs [M2.1]', async () => {
    await client.close();
    if (transport === 'http') await gateway.close();
    client = await open({ inlineWaitMs: 20_000 });
    const pending = call('transfer', { to: 'bob', amount: 5 });
    await whenOpen();
    await call('release', { result: { receipt: 'r-1' } });
    expect((await pending).result).toMatchObject({
      resultType: 'complete',
      structuredContent: { receipt: 'r-1' },
    });
  });

  it('gets a safe call’s result directly, never a task [M2.1]', async () => {
    const pending = call('read_balance', { account: 'a' });
    await whenOpen();
    await call('release', { result: { balance: 7 } });
    expect((await pending).result).toMatchObject({
      resultType: 'complete',
      structuredContent: { balance: 7 },
    });
  });

  it('sees a domain failure as completed with isError, and what to do in it [M2.2]', async () => {
    const { taskId } = await start();
    await call('reject', { code: 'permanent_failure', message: 'account closed' });
    const task = await get(taskId);
    expect(isDetailedTaskV2(task)).toBe(true);
    expect(task).toMatchObject({
      resultType: 'complete',
      status: 'completed',
      result: {
        resultType: 'complete',
        isError: true,
        structuredContent: { error: { code: 'permanent_failure', message: 'account closed' } },
      },
    });
  });

  it('sees a task that needs a person as working, with words that say so [M2.2]', async () => {
    const { taskId } = await start();
    await call('lose');
    expect(await get(taskId)).toMatchObject({
      status: 'working',
      statusMessage: 'a person is alerted',
      _meta: { 'holdfast/task': { status: 'needs_attention' } },
    });
  });

  it('cancels with an acknowledgement, the same for a repeated and a late one [M2.4]', async () => {
    const { taskId } = await start();
    const cancel = async () => (await client.request('tasks/cancel', { taskId })).result;
    const acknowledged = await cancel();
    expect(acknowledged).toMatchObject({ resultType: 'complete' });
    expect(await cancel()).toEqual(acknowledged);
    expect(await get(taskId)).toMatchObject({
      status: 'working',
      _meta: { 'holdfast/task': { cancelRequested: true } },
    });
    await call('release', { result: null });
    expect(await cancel()).toEqual(acknowledged);
    expect(await get(taskId)).toMatchObject({ status: 'completed' });
  });

  it('has updates with unknown keys acknowledged and ignored [M2.3]', async () => {
    const { taskId } = await start();
    const update = (params: object) => client.request('tasks/update', { taskId, ...params });
    expect(
      (await update({ inputResponses: { nobody: { action: 'accept' }, asked: 7 } })).error,
    ).toBeUndefined();
    expect((await update({})).error?.code).toBe(-32602);
    expect(await get(taskId)).toMatchObject({ status: 'working' });
  });

  it('finds unknown task ids not found, whatever it asks [M2.6]', async () => {
    for (const method of ['tasks/get', 'tasks/cancel', 'tasks/update']) {
      const { error } = await client.request(method, { taskId: 'task_unknown', inputResponses: {} });
      expect(error).toMatchObject({ code: -32602, message: 'task not found' });
    }
  });

  it('is not shown the task tools, which are for the others [M3.2]', async () => {
    const names = async (capabilities?: object) =>
      ((await client.request('tools/list', {}, capabilities)).result?.tools as { name: string }[]).map(
        ({ name }) => name,
      );
    expect(await names()).not.toContain('task_get');
    expect(await names({})).toContain('task_get');
  });

  it('and forgets to declare it on one request is treated as any other there [M2.1]', async () => {
    const { taskId } = await start();
    expect((await client.request('tasks/get', { taskId }, {})).error).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } },
    });
    const pending = call('transfer', { to: 'eve', amount: 1 }, {});
    await whenOpen(2);
    await call('release', { result: 'blocked until now' });
    expect((await pending).result).toMatchObject({
      resultType: 'complete',
      content: [{ text: 'blocked until now' }],
    });
  });

  /** Until `count` tasks are open, asked of the gateway's own client. */
  const whenOpen = (count = 1) =>
    vi.waitFor(
      async () => expect((await call('open_tasks')).result?.structuredContent).toEqual({ open: count }),
      { timeout: 20_000 },
    );
});
