/** `subscriptions/listen` with `taskIds` (M2.5), through the SDK's own client over real transports. */
import { TaskStatusNotificationV2Schema } from '@modelcontextprotocol/ext-tasks/core/v2';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Gateway } from '../../src/gateway/index.ts';
import { drivenGateway } from '../support/driven-gateway.ts';
import { answerOf, post } from '../support/mcp-messages.ts';
import { connectTaskClient } from '../support/task-session.ts';
import type { TaskClientUnderTest } from '../support/task-session.ts';

const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';
const LIMITS = { inlineWaitMs: 0, listensMax: 3, listenTaskIdsMax: 4 };

describe.each(['http', 'stdio'] as const)('over %s, a client that listens to its tasks', (transport) => {
  let gateway: Gateway;
  let url: string;
  let client: TaskClientUnderTest;
  beforeEach(async () => {
    if (transport === 'stdio') {
      client = await connectTaskClient({ transport, limits: LIMITS });
      return;
    }
    gateway = drivenGateway({ limits: LIMITS }).gateway;
    url = `${(await gateway.serveHttp({ port: 0 })).url}/mcp`;
    client = await connectTaskClient({ transport, url });
  });
  afterEach(async () => {
    await client.close();
    if (transport === 'http') await gateway.close();
  });

  const call = (name: string, args: object = {}) => client.request('tools/call', { name, arguments: args });
  const start = async (to = 'bob') => String((await call('transfer', { to, amount: 5 })).result?.['taskId']);
  const get = async (taskId: string) => (await client.request('tasks/get', { taskId })).result ?? {};
  /** What came on subscriptions, in order. */
  const heard = () =>
    client.received.filter(
      ({ params }) => (params?._meta as Record<string, unknown> | undefined)?.[SUBSCRIPTION],
    );
  const tasks = () => heard().filter(({ method }) => method === 'notifications/tasks');
  const until = (check: () => void | Promise<void>) => vi.waitFor(check, { timeout: 20_000 });
  const listening = (count: number) =>
    until(async () =>
      expect((await call('listening')).result?.['structuredContent']).toEqual({ tasks: count }),
    );

  it('is acknowledged its own tasks, told where each stands, and then of each change up to the end [M2.5] [M2.6]', async () => {
    const taskId = await start();
    const { closed } = await client.listen({ taskIds: [taskId, 'task_unknown'] });
    await until(() => expect(tasks()).toHaveLength(1));
    await call('advance', { message: 'half way' });
    await until(() => expect(tasks()).toHaveLength(2));
    await call('release', { result: { receipt: 'r-1' } });
    expect(await closed).toBe('graceful');
    const [acknowledged, ...states] = heard();
    expect(acknowledged).toMatchObject({
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications: { taskIds: [taskId] } },
    });
    expect(states.map(({ params }) => params?.['statusMessage'])).toEqual([
      'running attempt 1',
      'half way',
      'completed',
    ]);
    for (const state of states) {
      expect(TaskStatusNotificationV2Schema.safeParse(state).error).toBeUndefined();
      expect(state.params?._meta).toMatchObject({ [SUBSCRIPTION]: 'listen:0', 'holdfast/task': { taskId } });
    }
    const { resultType: _resultType, _meta: _of, ...read } = await get(taskId);
    expect(states.at(-1)?.params).toMatchObject(read);
    const final = client.received.find(({ id }) => id === 'listen:0');
    expect(final).toMatchObject({
      result: { resultType: 'complete', _meta: { [SUBSCRIPTION]: 'listen:0' } },
    });
    await listening(0);
  });

  it('is told who decides where it can put no question to a person [M2.5] [M2.3]', async () => {
    const taskId = await start();
    await client.listen({ taskIds: [taskId] });
    await until(() => expect(tasks()).toHaveLength(1));
    await call('ask');
    await until(() =>
      expect(tasks().at(-1)?.params).toMatchObject({
        status: 'working',
        _meta: { 'holdfast/task': { status: 'awaiting_approval' } },
      }),
    );
  });

  it('may ask for the SDK’s own kinds in the same filter, of which this server declares none [M2.5]', async () => {
    const taskId = await start();
    const mixed = await client.listen({ taskIds: [taskId], toolsListChanged: true });
    await until(() => expect(tasks()).toHaveLength(1));
    expect(heard()[0]?.params).toMatchObject({ notifications: { taskIds: [taskId] } });
    const core = await client.listen({ toolsListChanged: true });
    expect(core.honoredFilter).toEqual({});
    if (transport === 'http') expect(await core.closed).toBe('graceful'); // the SDK's own: it ends what honours nothing
    await call('release', { result: null });
    expect(await mixed.closed).toBe('graceful');
    const discovered = await client.request('server/discover', {});
    expect(discovered.result?.['capabilities']).toMatchObject({ tools: { listChanged: false } });
  });

  it('and leaves frees its watch, hears no more, and cancels nothing [M2.5] [M5.1]', async () => {
    const taskId = await start();
    const subscription = await client.listen({ taskIds: [taskId] });
    await listening(1);
    await subscription.close();
    await listening(0);
    const before = tasks().length;
    await call('advance', { message: 'unheard' });
    expect(await get(taskId)).toMatchObject({
      status: 'working',
      statusMessage: 'unheard',
      _meta: { 'holdfast/task': { status: 'running' } },
    });
    expect(tasks()).toHaveLength(before);
    expect(client.received.some(({ id }) => id === 'listen:0')).toBe(false);
  });

  it('is told the end of its listen when the gateway shuts down; its task goes on [M2.5] [M5.4]', async () => {
    const taskId = await start();
    const { closed } = await client.listen({ taskIds: [taskId] });
    await until(() => expect(tasks()).toHaveLength(1));
    if (transport === 'http') await gateway.close();
    else process.kill(client.pid ?? 0, 'SIGTERM');
    expect(await closed).toBe('graceful');
    expect(tasks().at(-1)?.params).toMatchObject({ status: 'working' });
  });

  it('without the extension is refused; too many tasks or listens are refused with their bounds [M2.1] [M7.2]', async () => {
    const taskId = await start();
    const listen = (notifications: object, capabilities?: object) =>
      client.request('subscriptions/listen', { notifications }, capabilities);
    expect((await listen({ taskIds: [taskId] }, {})).error?.code).toBe(-32021);
    expect((await listen({ taskIds: ['1', '2', '3', '4', '5'] })).error?.code).toBe(-32602);
    expect((await listen({ taskIds: 'all' })).error?.code).toBe(-32602);
    for (let open = 0; open < LIMITS.listensMax; open += 1) await client.listen({ taskIds: [taskId] });
    expect((await listen({ taskIds: [taskId] })).error).toMatchObject({
      data: { code: 'too_many_listens', details: { listensMax: LIMITS.listensMax } },
    });
  });

  if (transport === 'http') {
    it('has its request checked like any other by the SDK: headers, envelope, extension [M2.5] [M2.1]', async () => {
      const message = { method: 'subscriptions/listen', params: { notifications: { taskIds: ['t'] } } };
      const refused = async (init: object, change: object = {}) => {
        const response = await post(url, { ...message, ...change }, init);
        return { status: response.status, code: (await answerOf(response)).error?.code };
      };
      expect(await refused({})).toEqual({ status: 400, code: -32021 });
      const declared = { capabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } };
      expect(await refused({ headers: { 'mcp-method': 'tools/call' } }, declared)).toEqual({
        status: 400,
        code: -32020,
      });
    });
  }
});
