/** The Temporal server is killed while attempts stand at one point each, and comes back with its data. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FaultSystem, PRINCIPAL, outcomeOf, unique } from '../support/fault-system.ts';
import { DISPATCHED, INLINE, POINTS, effectsOf, words } from './crash.ts';
import type { WorkerPoint } from './crash.ts';
import { recordTable, tableOf } from './crash-windows.ts';

const CLASSES = [...DISPATCHED, ...INLINE.slice(1)];
const AT: readonly WorkerPoint[] = ['after_intent', 'after_effect', 'after_commit'];

let system: FaultSystem;
beforeAll(async () => {
  system = await FaultSystem.open();
});
afterAll(() => system.close());

const rows: string[][] = [];

async function fates(
  point: WorkerPoint,
  whileAway: (worker: Awaited<ReturnType<typeof atPoint>>['worker']) => Promise<void>,
) {
  const { worker, started, client, store, taskQueue } = await atPoint(point);
  const { restart } = await system.killTemporal();
  await whileAway(worker);
  await restart();
  if (worker.hasEnded) await system.worker(store, { taskQueue }).ready();
  return Promise.all(
    started.map(async ({ effectClass, taskId }) => {
      const { operationId, status } = await outcomeOf(client, taskId);
      return { effectClass, status, effects: await effectsOf(system, store, effectClass, operationId) };
    }),
  );
}

async function atPoint(point: WorkerPoint) {
  const store = await system.store('sqlite');
  const taskQueue = unique('engine');
  const client = await system.client(store, taskQueue);
  const worker = await system.worker(store, { taskQueue, stop: { point } }).ready();
  const started = await Promise.all(
    CLASSES.map(async (effectClass) => {
      const { action, args } = effectClass;
      const { taskId } = await client.start({ action, args, key: unique('key'), principal: PRINCIPAL });
      return { effectClass, taskId };
    }),
  );
  await worker.reached(CLASSES.length);
  return { worker, started, client, store, taskQueue };
}

describe('crash of the Temporal server', () => {
  test.each(AT)(
    '[S2.11] crash of the engine at %s: its workers go on, no operation takes place twice',
    async (point) => {
      const ends = await fates(point, async (worker) => void (await worker.order({ order: 'goOn' })));
      for (const { effectClass, effects, status } of ends) {
        expect({ name: effectClass.name, effects, status }).toEqual({
          name: effectClass.name,
          effects: effectClass.name.startsWith('safe') ? 0 : 1,
          status: 'completed',
        });
      }
      rows.push([`server, worker goes on ${POINTS[point]}`, ...ends.map((end) => words([end]))]);
    },
  );

  test('[S2.11] crash of the engine and its worker at once, after the effect: no operation takes place twice', async () => {
    const ends = await fates('after_effect', (worker) => worker.kill());
    for (const { effectClass, effects, status } of ends) {
      expect({ name: effectClass.name, effects, status }).toEqual({
        name: effectClass.name,
        effects: effectClass.name.startsWith('safe') ? 0 : 1,
        status: effectClass.name === 'unsafe, can’t be asked' ? 'needs_attention' : 'completed',
      });
    }
    rows.push([`server and worker ${POINTS.after_effect}`, ...ends.map((end) => words([end]))]);
  });

  test('crash of the engine: the measured table of docs/crash-windows.md', () => {
    recordTable('engine', tableOf(['killed', ...CLASSES.map(({ name }) => name)], rows));
  });
});
