/**
 * A worker frozen (SIGSTOP) in the middle of its work, whose lease passed on meanwhile: its own task goes on under a new
 * fence, then another task gets the resource, and what wakes is refused by the target's store and by the ledger (S8.3).
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { endAllChildren } from '../support/child-process.ts';
import { FaultSystem, PRINCIPAL, outcomeOf, unique } from '../support/fault-system.ts';
import type { StoreKind } from '../support/fault-system.ts';
import { openFencedStore } from '../support/fenced-store.ts';
import type { FencedStore } from '../support/fenced-store.ts';

const STORES: readonly StoreKind[] = ['sqlite', 'postgres'];
const LATE_MS = 20_000;

let system: FaultSystem;
let fenced: FencedStore;
beforeAll(async () => {
  [system, fenced] = await Promise.all([FaultSystem.open(), openFencedStore()]);
  process.env['HOLDFAST_FENCED_URL'] = fenced.url;
});
afterEach(() => endAllChildren());
afterAll(async () => {
  fenced.close();
  await system.close();
});

describe.each(STORES)('a worker frozen with a lease, on %s', (kind) => {
  test('[S8.1] [S8.3] [S2.11] [case 34] crash by freezing: the lease passes on, and what wakes is refused by token although its owner is the same', async () => {
    const store = await system.store(kind);
    const taskQueue = unique('lease');
    const [frozen, standby] = await Promise.all([
      system
        .worker(store, {
          taskQueue,
          takes: 'activities',
          activitySlots: 1,
          stop: { point: 'before_sending' },
        })
        .ready(),
      system.worker(store, { takes: 'activities' }).ready(),
      system.worker(store, { taskQueue, takes: 'workflows' }).ready(),
    ]);
    const client = await system.client(store, taskQueue);
    const value = unique('printer');
    const start = () =>
      client.start({ action: 'target_leased', args: { value }, key: unique('key'), principal: PRINCIPAL });
    const first = await start();
    await frozen.reached(1);
    await frozen.freeze();
    await standby.order({ order: 'run', taskQueue });
    const second = await start();
    const [one, other] = [await outcomeOf(client, first.taskId), await outcomeOf(client, second.taskId)];
    expect([one.status, other.status]).toEqual(['completed', 'completed']);
    const { attempts, retriesSpent } = await system.state(first.taskId);
    expect(attempts.map(({ outcome }) => outcome)).toEqual(['lost', 'committed']);
    expect(retriesSpent).toBe(0);
    frozen.thaw();
    await frozen.order({ order: 'goOn' });
    await expect.poll(() => fenced.writes(value).length, { timeout: LATE_MS }).toBe(3);
    const writes = fenced.writes(value);
    const told = writes.map(({ operationId, isRefused }) => `${operationId} ${isRefused}`);
    // The frozen worker may have swallowed what asks for the lease anew: then it passed to the other task first.
    const both = [`${one.operationId} false`, `${other.operationId} false`];
    expect(told.slice(0, 2).sort()).toEqual(both.sort());
    expect(told[2]).toBe(`${one.operationId} true`);
    const late = writes[2]?.fence ?? Infinity;
    expect(writes.slice(0, 2).every(({ fence }) => fence > late)).toBe(true);
    const own = writes.find(
      ({ operationId, isRefused }) => operationId === one.operationId && !isRefused,
    )?.fence;
    const [ran] = await frozen.ran(1, ({ attempt, outcome }) => attempt === 1 && outcome !== null);
    expect(ran?.outcome).toBe('fenceStale');
    const claimed = (await store.ledger.audit({ taskId: first.taskId })).filter(
      ({ type }) => type === 'operation.claimed',
    );
    expect(claimed.map(({ data }) => data['lease'])).toEqual([
      { resource: value, fence: late },
      { resource: value, fence: own },
    ]);
    expect(await client.get(first.taskId, PRINCIPAL)).toMatchObject({
      status: 'completed',
      effect: 'applied',
    });
  });
});
