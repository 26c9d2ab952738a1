/**
 * A worker killed or stopped in the middle of a status request about another server's task (S8.4): a standby goes on with
 * the watch. The oracle is what the other server counts.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { HoldfastClient } from '../../src/client/index.ts';
import { endAllChildren } from '../support/child-process.ts';
import { FaultSystem, PRINCIPAL, outcomeOf, unique } from '../support/fault-system.ts';
import type { StoreKind } from '../support/fault-system.ts';
import { httpDepotAction, startHttpDepot } from '../support/http-depot.ts';
import type { HttpDepot } from '../support/http-depot.ts';

const STORES: readonly StoreKind[] = ['sqlite', 'postgres'];
const WAIT = { timeout: 60_000, interval: 100 };
const SCRIPT = 'remote-worker-process.ts';

let system: FaultSystem;
const depots: HttpDepot[] = [];
beforeAll(async () => {
  system = await FaultSystem.open();
});
afterEach(async () => {
  await endAllChildren();
  await Promise.all(depots.splice(0).map((depot) => depot.close()));
});
afterAll(() => system.close());

/** A task whose worker stands in mid-poll, and a worker that stands by. */
async function inMidPoll(kind: StoreKind, options: { isWhole?: boolean } = {}) {
  const at = await startHttpDepot();
  depots.push(at);
  process.env['HOLDFAST_DEPOT_URL'] = at.url;
  const store = await system.store(kind);
  const taskQueue = unique('remote');
  const [worker, standby] = await Promise.all([
    system.worker(store, { ...options, taskQueue }, SCRIPT).ready(),
    system.worker(store, options, SCRIPT).ready(),
  ]);
  const client = new HoldfastClient({
    ...{ temporal: await system.engine(), ledger: store.ledger, actions: [httpDepotAction], taskQueue },
    hmacKey: null,
  });
  const call = { action: 'archive', args: { folder: 'a' }, key: unique('key'), principal: PRINCIPAL };
  const { taskId } = await client.start(call);
  await expect.poll(() => at.depot.asked.status, WAIT).toBeGreaterThan(0);
  at.hold('status');
  await expect.poll(() => at.held, WAIT).toBe(1);
  const standIn = () => standby.order({ order: 'run', taskQueue });
  return { at, depot: at.depot, ledger: store.ledger, client, taskId, worker, standIn };
}

/** A task whose worker is dead in mid-poll, and a worker that stands by. */
async function killedInMidPoll(kind: StoreKind) {
  const { at, worker, ...rest } = await inMidPoll(kind);
  await worker.kill();
  at.letGo();
  return { ...rest, statusBefore: at.depot.asked.status };
}

describe.each(STORES)('a worker killed in the middle of a poll, on %s', (kind) => {
  test('[S8.4] [S2.3] crash in mid-poll: a standby polls on to the end, and nothing is submitted again', async () => {
    const { depot, client, taskId, standIn, statusBefore } = await killedInMidPoll(kind);
    await standIn();
    await expect.poll(() => depot.asked.status, WAIT).toBeGreaterThan(statusBefore);
    depot.set({ kind: 'completed', result: { structuredContent: { files: 3 } } });
    expect(await outcomeOf(client, taskId)).toMatchObject({ status: 'completed', result: { files: 3 } });
    expect(depot.asked).toMatchObject({ submit: 1, cancel: 0 });
  });

  test('[S8.4] [S7.4] crash in mid-poll: a cancel asked for while nobody is there goes out once', async () => {
    const { depot, client, taskId, standIn } = await killedInMidPoll(kind);
    for (let times = 0; times < 3; times += 1) await client.cancel(taskId, PRINCIPAL);
    // Taken, and not over yet: only what the ledger knows keeps it from being sent again.
    depot.onCancel = { kind: 'working' };
    await standIn();
    await expect.poll(() => depot.asked.cancel, WAIT).toBe(1);
    const { status } = depot.asked;
    await expect.poll(() => depot.asked.status, WAIT).toBeGreaterThan(status + 2);
    depot.set({ kind: 'cancelled' });
    expect(await outcomeOf(client, taskId)).toMatchObject({ status: 'cancelled', effect: 'none' });
    expect(depot.asked).toMatchObject({ submit: 1, cancel: 1 });
  });
});

describe.each(STORES)('a worker told to stop in the middle of a poll, on %s', (kind) => {
  test('[S8.4] [case 34] SIGTERM in mid-poll: no failure, no claim, nothing cancelled, and a standby polls before any lease has passed', async () => {
    const { at, depot, ledger, client, taskId, worker, standIn } = await inMidPoll(kind, { isWhole: true });
    const { operationId } = await client.get(taskId, PRINCIPAL);
    const row = () => ledger.findRemoteTask(operationId);
    const before = await row();
    expect(before).toMatchObject({ failures: 0, claim: { call: 'poll' } });
    worker.signal('SIGTERM');
    expect(await worker.ended()).toBe(0);
    expect(await row()).toEqual({ ...before, claim: null });
    at.letGo();
    const { status } = depot.asked;
    await standIn();
    await expect.poll(() => depot.asked.status, WAIT).toBeGreaterThan(status);
    depot.set({ kind: 'completed', result: { structuredContent: { files: 3 } } });
    expect(await outcomeOf(client, taskId)).toMatchObject({ status: 'completed', result: { files: 3 } });
    expect(depot.asked).toMatchObject({ submit: 1, cancel: 0 });
  });
});
