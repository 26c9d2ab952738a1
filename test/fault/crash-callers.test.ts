/** Who calls is killed: a gateway before its answer, a client between its reservation and its start. The call comes again. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KEY_META } from '../../src/contract/wire-names.ts';
import { connect } from '../support/mcp-clients.ts';
import type { ToolAnswer } from '../support/mcp-clients.ts';
import type { CrashPoint } from '../support/child-messages.ts';
import type { TestChild } from '../support/child-process.ts';
import { FaultSystem, PRINCIPAL, outcomeOf, unique } from '../support/fault-system.ts';
import type { Store, StoreKind } from '../support/fault-system.ts';
import { DISPATCHED, INLINE, effectsOf, words } from './crash.ts';
import type { EffectClass } from './crash.ts';
import { recordTable, tableOf } from './crash-windows.ts';

const CLASSES: readonly EffectClass[] = [...DISPATCHED, ...INLINE.slice(1)];
const STORES: readonly StoreKind[] = ['sqlite', 'postgres'];

let system: FaultSystem;
beforeAll(async () => {
  system = await FaultSystem.open();
});
afterAll(() => system.close());

type Row = Record<string, string>;
const measured = new Map<string, Row>();
/** Both stores must say the same; the second asserts it. */
function measure(row: string, { name }: EffectClass, text: string): void {
  const cells = measured.get(row) ?? {};
  expect(cells[name] ?? text).toBe(text);
  measured.set(row, { ...cells, [name]: text });
}

async function callTool(
  gateway: TestChild,
  { action, args }: EffectClass,
  options: { key?: string; signal?: AbortSignal } = {},
): Promise<ToolAnswer> {
  const client = await connect('v2 modern', { transport: 'http', url: gateway.data['url'] ?? '' });
  const { key, signal } = options;
  return client.callTool(action, args, {
    ...(key !== undefined && { meta: { [KEY_META]: key } }),
    ...(signal && { signal }),
  });
}

/** A call whose gateway is about to die. The SDK's client would wait for a minute: `isOver` ends its patience. */
function lostCall(
  gateway: TestChild,
  effectClass: EffectClass,
  key?: string,
): { isOver: () => Promise<void> } {
  const patience = new AbortController();
  const call = callTool(gateway, effectClass, { ...(key !== undefined && { key }), signal: patience.signal });
  const rejected = expect(call).rejects.toThrow();
  return {
    isOver: () => {
      patience.abort();
      return rejected;
    },
  };
}

const taskOf = ({ _meta }: ToolAnswer) =>
  _meta?.['holdfast/task'] as { taskId: string; operationId: string; status: string; attached: boolean };

async function atWork(kind: StoreKind): Promise<{ store: Store; taskQueue: string; worker: TestChild }> {
  const store = await system.store(kind);
  const taskQueue = unique('callers');
  return { store, taskQueue, worker: await system.worker(store, { taskQueue }).ready() };
}

const gatewayAt = ({ store, taskQueue }: { store: Store; taskQueue: string }, stop?: CrashPoint) =>
  system
    .caller(store, { taskQueue, gateway: { blockingMs: 20_000 }, ...(stop && { stop: { point: stop } }) })
    .ready();

describe.each(STORES)('crash of a caller, on %s', (kind) => {
  test('[M1.2] [S1.5] [case 10] [mode 4] crash of the gateway before its answer: the same call meets the same task, one effect', async () => {
    const place = await atWork(kind);
    const first = await gatewayAt(place, 'before_answer');
    const calls = CLASSES.map((effectClass) => ({ effectClass, key: unique('key') }));
    const lost = calls.map(({ effectClass, key }) => lostCall(first, effectClass, key));
    const places = await first.reached(calls.length);
    await first.kill();
    await Promise.all(lost.map((call) => call.isOver()));
    const second = await gatewayAt(place);
    for (const { effectClass, key } of calls) {
      const answer = await callTool(second, effectClass, { key });
      const { taskId, operationId, status } = taskOf(answer);
      expect(places.map((each) => each.taskId)).toContain(taskId);
      const effects = await effectsOf(system, place.store, effectClass, operationId);
      expect({ effects, status, isError: answer.isError ?? false }).toEqual({
        effects: effectClass.name.startsWith('safe') ? 0 : 1,
        status: 'completed',
        isError: false,
      });
      measure('gateway, before its answer', effectClass, words([{ effects, status }]));
    }
    await Promise.all([second.kill(), place.worker.kill()]);
  });

  test('[M1.4] [case 10] crash of the gateway while a keyless call is open: the call, repeated, attaches', async () => {
    const store = await system.store(kind);
    const taskQueue = unique('callers');
    const conditional = { name: 'conditional', action: 'target_conditional', args: { value: unique('v') } };
    const first = await gatewayAt({ store, taskQueue }, 'after_reserve');
    const lost = lostCall(first, conditional);
    const [begun] = await first.reached(1);
    await first.kill();
    await lost.isOver();
    const second = await gatewayAt({ store, taskQueue }, 'after_reserve');
    const again = callTool(second, conditional);
    const [met] = await second.reached(1);
    expect(met?.taskId).toBe(begun?.taskId);
    const worker = system.worker(store, { taskQueue });
    await Promise.all([second.order({ order: 'goOn' }), worker.ready()]);
    const { taskId, operationId, attached } = taskOf(await again);
    expect({ taskId, attached, effects: await system.target.count(operationId) }).toEqual({
      taskId: begun?.taskId,
      attached: true,
      effects: 1,
    });
    await Promise.all([second.kill(), worker.kill()]);
  });

  test('[S1.5] crash of a client between reservation and start: the same call, made elsewhere, starts the task', async () => {
    const place = await atWork(kind);
    const first = await system
      .caller(place.store, { taskQueue: place.taskQueue, stop: { point: 'after_reserve' } })
      .ready();
    const client = await system.client(place.store, place.taskQueue);
    const calls = CLASSES.map((effectClass) => ({ effectClass, key: unique('key') }));
    const lost = calls.map(({ effectClass: { action, args }, key }) =>
      first.order({ order: 'start', request: { action, args, key, principal: PRINCIPAL } }),
    );
    const places = await first.reached(calls.length);
    await Promise.all([first.kill(), ...lost.map((call) => expect(call).rejects.toThrow())]);
    for (const { effectClass, key } of calls) {
      const { action, args } = effectClass;
      const { taskId, operationId } = await client.start({ action, args, key, principal: PRINCIPAL });
      const { status } = await outcomeOf(client, taskId);
      expect(places.find((each) => each.operationId === operationId)).toMatchObject({ taskId });
      const effects = await effectsOf(system, place.store, effectClass, operationId);
      expect({ effects, status }).toEqual({
        effects: effectClass.name.startsWith('safe') ? 0 : 1,
        status: 'completed',
      });
      measure('client, between reservation and start', effectClass, words([{ effects, status }]));
    }
    await place.worker.kill();
  });
});

test('crash of callers: the measured table of docs/crash-windows.md', () => {
  const rows = [...measured].map(([row, cells]) => [row, ...CLASSES.map(({ name }) => cells[name] ?? '')]);
  recordTable('callers', tableOf(['killed', ...CLASSES.map(({ name }) => name)], rows));
});
