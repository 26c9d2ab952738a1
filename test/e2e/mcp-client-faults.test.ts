/**
 * `holdfast/mcp-client` on a network that breaks, in front of everything as it is deployed: the gateway, Temporal, a worker
 * in a process of its own, and a target whose own count says how often something took effect.
 */
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { HoldfastClient } from '../../src/client/index.ts';
import { createGateway, toolOf } from '../../src/gateway/index.ts';
import type { Gateway } from '../../src/gateway/index.ts';
import { McpClient } from '../../src/mcp-client/index.ts';
import type { CallOutcome } from '../../src/mcp-client/index.ts';
import { faultActions } from '../support/fault-actions.ts';
import { FAULTS, startFaultProxy } from '../support/fault-proxy.ts';
import type { FaultProxy } from '../support/fault-proxy.ts';
import { FaultSystem, PRINCIPAL, unique } from '../support/fault-system.ts';
import { faultyStdio } from '../support/faulty-stdio.ts';
import type { FaultyStdio, StdioFault } from '../support/faulty-stdio.ts';
import { COMMAND, environment } from '../support/holdfast-command.ts';

let system: FaultSystem;
let holdfast: HoldfastClient;
let taskQueue: string;

beforeAll(async () => {
  system = await FaultSystem.open();
  taskQueue = unique('mcp-client');
  const store = await system.store('sqlite');
  holdfast = await system.client(store, taskQueue);
  await system.worker(store, { taskQueue }).ready();
});
afterAll(() => system.close());

const valueOf = (outcome: CallOutcome) =>
  outcome.kind === 'completed' ? outcome.result.structuredContent?.value : outcome;

/** Effects of the work. */
async function effectsOf<T>(work: () => Promise<T>): Promise<{ outcome: T; effects: number }> {
  const before = await system.target.total();
  const outcome = await work();
  return { outcome, effects: (await system.target.total()) - before };
}

describe('over HTTP', () => {
  let gateway: Gateway;
  let port: number;
  let proxy: FaultProxy;
  let client: McpClient;

  const serve = async (at: number): Promise<string> => {
    const tools = faultActions({ withSecrets: false }).map(({ contract }) => toolOf(contract));
    gateway = createGateway({ client: holdfast, tools, auth: { kind: 'loopback', principal: PRINCIPAL } });
    const http = await gateway.serveHttp({ port: at });
    ({ port } = http);
    return `${http.url}/mcp`;
  };
  beforeEach(async () => {
    proxy = await startFaultProxy(await serve(0));
    client = await McpClient.connect({ server: { url: proxy.url } });
    await client.tools();
  });
  afterEach(async () => {
    await client.close();
    await proxy.close();
    await gateway.close();
  });
  const callsOf = (tool: string) =>
    proxy.of('tools/call').filter(({ message }) => message.params?.name === tool);

  describe.each(FAULTS)('the connection drops %s', (fault) => {
    it('a conditional call takes effect once and is answered, sent again under its own key [M6.3]', async () => {
      const value = unique('v');
      proxy.breakNext('tools/call', fault, fault);
      proxy.breakNext('tasks/get', fault);
      const { outcome, effects } = await effectsOf(() => client.call('target_conditional', { value }));
      expect([valueOf(outcome), effects]).toEqual([value, 1]);
      const calls = callsOf('target_conditional');
      expect(calls).toHaveLength(3);
      const keyOf = (meta: unknown) => (meta as Record<string, unknown>)['holdfast/idempotencyKey'];
      expect(new Set(calls.map(({ message }) => keyOf(message.params?._meta))).size).toBe(1);
      expect(new Set(calls.map(({ message }) => message.id)).size).toBe(3);
    });

    it('an unsafe call leaves once, and is found under its key if it arrived, else reported unknown with what to ask [M6.3] [M1.5]', async () => {
      const value = unique('v');
      proxy.breakNext('tools/call', fault);
      const { outcome, effects } = await effectsOf(() =>
        client.call('target_unsafe', { value }, { key: value }),
      );
      expect(callsOf('target_unsafe')).toHaveLength(1);
      if (fault === 'before the request') {
        expect(outcome).toMatchObject({ kind: 'unknown', reason: 'lost', taskId: null, key: value });
        expect((outcome as { ask: string }).ask).toContain(value);
        expect(effects).toBe(0);
      } else {
        expect([valueOf(outcome), effects]).toEqual([value, 1]);
      }
    });

    it('an unsafe call whose task is known is reconciled by reading the task [M6.3]', async () => {
      const value = unique('held');
      await system.target.setMode({ kind: 'hold', gate: value, when: 'beforeApply' }, { times: 1 });
      proxy.breakNext('tasks/get', fault, fault, fault);
      const { outcome, effects } = await effectsOf(async () => {
        const call = client.call('target_unsafe', { value });
        await system.target.reached(value);
        await expect.poll(() => proxy.of('tasks/get').length, { timeout: 20_000 }).toBeGreaterThan(3);
        await system.target.release(value);
        return call;
      });
      expect([valueOf(outcome), effects]).toEqual([value, 1]);
      expect(callsOf('target_unsafe')).toHaveLength(1);
    });

    it('a safe call answers what is there [M6.3]', async () => {
      const value = unique('v');
      const put = await client.call('target_conditional', { value });
      const { resourceId = null } = put.kind === 'completed' ? (put.result.structuredContent ?? {}) : {};
      proxy.breakNext('tools/call', fault, fault);
      const read = await client.call('target_safe', { resourceId });
      expect(read).toMatchObject({
        kind: 'completed',
        result: { structuredContent: { found: true, value } },
      });
      expect(callsOf('target_safe')).toHaveLength(3);
    });
  });

  it('the gateway goes away in the midst of calls and comes back at its address: one effect each, and the answers [M6.3] [case 29]', async () => {
    const values = ['conditional', 'unsafe'].map(unique);
    for (const gate of values)
      await system.target.setMode({ kind: 'hold', gate, when: 'afterApply' }, { times: 1 });
    const [kept, careful] = values as [string, string];
    const { outcome, effects } = await effectsOf(async () => {
      // One after the other, so that each holds at the gate named after it.
      const first = client.call('target_conditional', { value: kept });
      await system.target.reached(careful);
      const second = client.call('target_unsafe', { value: careful });
      await system.target.reached(kept);
      await expect.poll(() => proxy.of('tasks/get').length, { timeout: 20_000 }).toBeGreaterThan(1);
      await gateway.close();
      for (const gate of values) await system.target.release(gate);
      proxy.target(await serve(port));
      return Promise.all([first, second]);
    });
    expect([outcome.map(valueOf), effects]).toEqual([values, 2]);
    expect([callsOf('target_conditional').length, callsOf('target_unsafe').length]).toEqual([1, 1]);
  });

  it('an unsafe call that the target itself left in doubt is unknown with its task, and completed once a person has said so [M6.3] [M1.5]', async () => {
    const value = unique('v');
    await system.target.setMode({ kind: 'applyThenDrop' }, { times: 1 });
    const { outcome, effects } = await effectsOf(() => client.call('target_unsafe', { value }));
    expect(outcome).toMatchObject({ kind: 'unknown', reason: 'in_doubt' });
    const taskId = outcome.taskId ?? '';
    const { operationId } = await holdfast.get(taskId, PRINCIPAL);
    const { resourceId } = (await (await fetch(`${system.target.url}/operations/${operationId}`)).json()) as {
      resourceId: string;
    };
    await holdfast.resolve(taskId, PRINCIPAL, { as: 'applied', result: { resourceId, value } });
    // Accepted is not yet carried out: until then the task still waits for its person.
    await expect
      .poll(async () => (await holdfast.get(taskId, PRINCIPAL)).status, { timeout: 20_000 })
      .toBe('completed');
    expect(valueOf(await client.task(taskId).wait())).toBe(value);
    expect([effects, callsOf('target_unsafe').length]).toEqual([1, 1]);
  });
});

describe('over stdio', () => {
  let stdio: FaultyStdio;
  let client: McpClient;
  beforeEach(async () => {
    const { url } = await system.store('sqlite');
    stdio = faultyStdio({
      command: COMMAND[0],
      args: [...COMMAND.slice(1), 'mcp'],
      cwd: system.folder,
      env: environment({
        ...system.target.env,
        HOLDFAST_CONFIG: fileURLToPath(new URL('../support/mcp-client.config.ts', import.meta.url)),
        HOLDFAST_DATABASE_URL: url,
        HOLDFAST_TASK_QUEUE: taskQueue,
        HOLDFAST_LOG_LEVEL: 'silent',
        TEMPORAL_ADDRESS: system.temporal.address,
        TEMPORAL_NAMESPACE: system.temporal.namespace,
      }) as Record<string, string>,
    });
    client = await McpClient.connect({ server: { open: stdio.open } });
    await client.tools();
  });
  afterEach(() => client.close());
  const calls = () => stdio.sent.filter(({ method }) => method === 'tools/call');

  const faults: StdioFault[] = [
    'killed before the request',
    'killed with the request on its way',
    'killed before its response arrives',
  ];
  it.each(faults)(
    'the server is %s: a conditional call takes effect once and is answered by the next process [M6.3]',
    async (fault) => {
      const value = unique('v');
      stdio.breakNext('tools/call', fault);
      const { outcome, effects } = await effectsOf(() => client.call('target_conditional', { value }));
      expect([valueOf(outcome), effects]).toEqual([value, 1]);
      const keys = calls().map(
        ({ params }) => (params?._meta as Record<string, unknown>)['holdfast/idempotencyKey'],
      );
      expect(new Set(keys).size).toBe(1);
    },
  );

  it.each(faults)(
    'the server is %s: an unsafe call leaves once, and the next process tells what became of it [M6.3]',
    async (fault) => {
      const value = unique('v');
      stdio.breakNext('tools/call', fault);
      const { outcome, effects } = await effectsOf(() => client.call('target_unsafe', { value }));
      const isFound = outcome.kind === 'completed';
      if (!isFound) expect(outcome).toMatchObject({ kind: 'unknown', reason: 'lost', taskId: null });
      const sent = calls().filter(({ params }) => params?.name === 'target_unsafe');
      expect(sent).toHaveLength(fault === 'killed before the request' ? 0 : 1);
      // With its response ready it has been carried out; before the request it can not have been.
      if (fault === 'killed before its response arrives') expect([isFound, effects]).toEqual([true, 1]);
      else if (fault === 'killed before the request') expect([isFound, effects]).toEqual([false, 0]);
      else expect(effects).toBeLessThanOrEqual(1);
      expect(await client.call('target_safe', { resourceId: 'none' })).toMatchObject({
        kind: 'completed',
        result: { structuredContent: { found: false } },
      });
    },
  );
});
