/** A task belongs to its principal, not to the gateway or the session it was started through. */
import { createHash } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createGateway, toolOf } from '../../src/gateway/index.ts';
import { faultActions } from '../support/fault-actions.ts';
import { FaultSystem, PRINCIPAL, unique } from '../support/fault-system.ts';
import type { Store } from '../support/fault-system.ts';
import type { RpcResponse } from '../support/mcp-messages.ts';
import { connectTaskClient } from '../support/task-session.ts';
import type { TaskClientUnderTest } from '../support/task-session.ts';

let system: FaultSystem;
let store: Store;
const taskQueue = unique('killed');
beforeAll(async () => {
  system = await FaultSystem.open();
  store = await system.store('sqlite');
  await system.worker(store, { taskQueue }).ready();
});
afterAll(() => system.close());
const opened: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

const sha256 = (token: string) => createHash('sha256').update(token).digest('hex');

/** A gateway of this process; who has the token `ann` is who the other gateways call everybody. */
async function gatewayUrl(): Promise<string> {
  const gateway = createGateway({
    client: await system.client(store, taskQueue),
    tools: faultActions({ withSecrets: false }).map(({ contract }) => toolOf(contract)),
    auth: {
      kind: 'tokens',
      tokens: [
        { sha256: sha256('ann'), ...PRINCIPAL },
        { sha256: sha256('eve'), tenant: 'other', subject: PRINCIPAL.subject, roles: [] },
      ],
    },
  });
  opened.push(() => gateway.close());
  return `${(await gateway.serveHttp({ port: 0 })).url}/mcp`;
}

async function session(url: string, token?: string): Promise<TaskClientUnderTest> {
  const client = await connectTaskClient({ transport: 'http', url, ...(token && { token }) });
  opened.push(() => client.close());
  return client;
}

/** What each method says of a task. */
async function saidOf(client: TaskClientUnderTest, taskId: unknown) {
  const ask = async (method: string): Promise<RpcResponse> => {
    const { result, error } = await client.request(method, { taskId, inputResponses: {} });
    return { ...(result && { result }), ...(error && { error }) };
  };
  const [get, update, cancel] = [
    await ask('tasks/get'),
    await ask('tasks/update'),
    await ask('tasks/cancel'),
  ];
  return { get, update, cancel };
}

/** A call whose effect the target holds back until `release`. */
async function held(client: TaskClientUnderTest) {
  const value = unique('held');
  await system.target.setMode({ kind: 'hold', gate: value, when: 'beforeApply' }, { times: 1 });
  const called = await client.request('tools/call', { name: 'target_conditional', arguments: { value } });
  await system.target.reached(value);
  return { value, created: called.result ?? {}, release: () => system.target.release(value) };
}

const completed = async (client: TaskClientUnderTest, taskId: unknown) => {
  const get = async () => (await client.request('tasks/get', { taskId })).result ?? {};
  await expect.poll(get, { timeout: 30_000 }).toMatchObject({ status: 'completed' });
  return get();
};

describe('a task whose gateway is killed', () => {
  it('is read by the same principal in a new session, through another gateway, and by nobody else [case 29] [M2.6]', async () => {
    const first = await system.caller(store, { taskQueue, gateway: { blockingMs: 30_000 } }).ready();
    const { value, created, release } = await held(await session(first.data['url'] ?? ''));
    const { taskId } = created;
    await first.kill();
    await release();
    const url = await gatewayUrl();
    const ann = await session(url, 'ann');
    const task = await completed(ann, taskId);
    expect(task).toMatchObject({ result: { structuredContent: { value } } });
    const eve = await session(url, 'eve');
    const foreign = await saidOf(eve, taskId);
    const notFound = { error: { code: -32602, message: 'task not found' } };
    expect(foreign).toEqual({ get: notFound, update: notFound, cancel: notFound });
    expect(await saidOf(eve, 'task_unknown')).toEqual(foreign);
    const { closed } = await eve.listen({ taskIds: [taskId] });
    expect(await closed).toBe('graceful');
    expect(eve.received).toContainEqual(
      expect.objectContaining({
        method: 'notifications/subscriptions/acknowledged',
        params: expect.objectContaining({ notifications: { taskIds: [] } }) as object,
      }),
    );
  });
});
