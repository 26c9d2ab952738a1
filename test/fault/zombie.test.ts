/**
 * Frozen workers (SIGSTOP): they keep what they were given and wake when everything is over. The fence keeps what they
 * do then from the world; the one window that no client closes is measured too (S2.11, docs/crash-windows.md).
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { endAllChildren } from '../support/child-process.ts';
import type { TestChild } from '../support/child-process.ts';
import { FaultSystem, PRINCIPAL, outcomeOf, unique } from '../support/fault-system.ts';
import type { StoreKind } from '../support/fault-system.ts';
import type { WorkerProcessOptions } from '../support/worker-options.ts';
import { words } from './crash.ts';
import { recordTable, tableOf } from './crash-windows.ts';

const STORES: readonly StoreKind[] = ['sqlite', 'postgres'];
/** Open polls of the frozen worker; each swallows one attempt. */
const POLLS = 3;
/** Lost attempts are paced with growing pauses. */
const SWALLOWED_MS = 30_000;
const LATE_MS = 20_000;

let system: FaultSystem;
beforeAll(async () => {
  system = await FaultSystem.open();
});
afterEach(() => endAllChildren());
afterAll(() => system.close());

const measured = new Map<string, string[]>();
function measure(where: string, effectClass: string, cells: string[]): void {
  const row = `${where}|${effectClass}`;
  expect(measured.get(row) ?? cells).toEqual(cells); // both stores agree
  measured.set(row, cells);
}

/** One process decides, another acts and gets frozen, a third stands by. */
async function setting(kind: StoreKind, ofFrozen: Partial<WorkerProcessOptions>) {
  const store = await system.store(kind);
  const taskQueue = unique('zombie');
  const [frozen, standby] = await Promise.all([
    system.worker(store, { taskQueue, takes: 'activities', ...ofFrozen }).ready(),
    system.worker(store, { takes: 'activities' }).ready(),
    system.worker(store, { taskQueue, takes: 'workflows' }).ready(),
  ]);
  const client = await system.client(store, taskQueue);
  const start = (action: string) =>
    client.start({ action, args: { value: 'v' }, key: unique('key'), principal: PRINCIPAL });
  const standIn = () => standby.order({ order: 'run', taskQueue });
  return { store, client, frozen, standby, start, standIn };
}

/** Bounded polling of the task's own state, which the process that decides tells. */
async function swallowed(taskId: string, count: number): Promise<void> {
  const lost = async () =>
    (await system.state(taskId)).attempts.filter(({ outcome }) => outcome === 'lost').length;
  await expect.poll(lost, { timeout: SWALLOWED_MS, interval: 200 }).toBe(count);
}

const requestsOf = async (operationId: string) =>
  (await system.target.requests({ endpoint: 'apply', operationId })).length;

async function wakes(frozen: TestChild, attempts: number): Promise<string[]> {
  frozen.thaw();
  return (await frozen.ran(attempts)).map(({ outcome }) => String(outcome));
}

describe.each(STORES)('a worker frozen by SIGSTOP, on %s', (kind) => {
  test('[S2.3] [S2.7] [S5.2] crash by freezing: its open polls swallow attempts; no retry is spent, and all of them wake to nothing', async () => {
    const { client, frozen, start, standIn } = await setting(kind, { activityPolls: POLLS });
    await frozen.freeze();
    const { taskId } = await start('target_unsafe');
    await swallowed(taskId, POLLS);
    await standIn();
    const { operationId, status } = await outcomeOf(client, taskId);
    expect(await system.state(taskId)).toMatchObject({ retriesSpent: 0, attempt: POLLS + 1 });
    expect(await requestsOf(operationId)).toBe(1);
    const outcomes = await wakes(frozen, POLLS);
    expect(outcomes.every((outcome) => outcome !== 'refused' && outcome !== 'unknown')).toBe(true);
    expect(await requestsOf(operationId)).toBe(1);
    const effects = await system.target.count(operationId);
    expect({ effects, status }).toEqual({ effects: 1, status: 'completed' });
    measure('idle, its open polls swallow attempts', 'unsafe, can’t be asked', [
      words([{ effects, status }]),
      'nothing',
    ]);
  });

  test('[S7.4] [S2.3] crash by freezing: attempts that wake after their task was cancelled claim nothing', async () => {
    const { client, frozen, start, standIn } = await setting(kind, { activityPolls: POLLS });
    await frozen.freeze();
    const { taskId } = await start('target_conditional');
    await swallowed(taskId, 2);
    await client.cancel(taskId, PRINCIPAL);
    await standIn();
    const { operationId, status, effect } = await outcomeOf(client, taskId);
    expect({ status, effect }).toEqual({ status: 'cancelled', effect: 'none' });
    await wakes(frozen, 2);
    const effects = await system.target.count(operationId);
    expect({ effects, requests: await requestsOf(operationId) }).toEqual({ effects: 0, requests: 0 });
    measure('idle, and its task is cancelled meanwhile', 'conditional', [
      words([{ effects, status }]),
      'nothing',
    ]);
  });

  test.each([
    ['conditional', 'target_conditional'],
    ['unsafe, can be asked', 'target_unsafe_lookup'],
  ])(
    '[S2.5] [S2.11] crash by freezing after the intent: %s, the one that wakes asks the ledger and sends nothing',
    async (name, action) => {
      const { client, frozen, start, standIn } = await setting(kind, { stop: { point: 'after_intent' } });
      const { taskId } = await start(action);
      await frozen.reached(1);
      await frozen.freeze();
      await standIn();
      const { operationId, status } = await outcomeOf(client, taskId);
      frozen.thaw();
      await frozen.order({ order: 'goOn' });
      const [late] = await frozen.ran(1, ({ attempt }) => attempt === 1);
      expect(late?.outcome).toBe('fenceStale');
      const effects = await system.target.count(operationId);
      expect({ effects, status, requests: await requestsOf(operationId) }).toEqual({
        effects: 1,
        status: 'completed',
        requests: 1,
      });
      measure('after the intent, before the last look at the ledger', name, [
        words([{ effects, status }]),
        'nothing',
      ]);
    },
  );

  test.each([
    {
      name: 'conditional',
      action: 'target_stubborn',
      effects: 1,
      told: 'a second request, which the target dedupes',
    },
    {
      name: 'unsafe, can be asked',
      action: 'target_stubborn_unsafe',
      effects: 2,
      told: 'a second effect; the alert `possible_duplicate`',
    },
  ])(
    '[S2.11] [S2.7] crash by freezing inside the handler, before its first byte: $name, what no client closes',
    async (cell) => {
      const { client, frozen, store, start, standIn } = await setting(kind, {
        stop: { point: 'before_sending' },
      });
      const { taskId } = await start(cell.action);
      await frozen.reached(1);
      await frozen.freeze();
      await standIn();
      const { operationId, status, result } = await outcomeOf(client, taskId);
      frozen.thaw();
      await frozen.order({ order: 'goOn' });
      // What woke sends, whatever its attempt was told meanwhile.
      await expect.poll(() => requestsOf(operationId), { timeout: LATE_MS }).toBe(2);
      const effects = await system.target.count(operationId);
      expect({ effects, status }).toEqual({ effects: cell.effects, status: 'completed' });
      // It changes no result; it is kept, and a person is told.
      const late = async () => (await store.ledger.find(operationId))?.lateOutcome;
      await expect.poll(late, { timeout: LATE_MS }).toMatchObject({ kind: 'applied' });
      expect(await client.get(taskId, PRINCIPAL)).toMatchObject({ status: 'completed', result });
      const alerts = await store.ledger.alerts({ tenant: PRINCIPAL.tenant, taskId });
      expect(alerts.map(({ type }) => type)).toEqual(['possible_duplicate']);
      measure('inside the handler, before its first byte', cell.name, [
        words([{ effects, status }]),
        cell.told,
      ]);
    },
  );
});

test('crash by freezing: the measured table of docs/crash-windows.md', () => {
  const rows = [...measured].map(([row, cells]) => [...row.split('|'), ...cells]);
  recordTable(
    'frozen',
    tableOf(['frozen', 'effect class', 'measured', 'what the one that woke brought about'], rows),
  );
});
