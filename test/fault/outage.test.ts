/** The Temporal server is away for 20 s while calls come in: none that was acknowledged is lost (facts/temporal.md, 6). */
import { setTimeout as pass } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { HoldfastError } from '../../src/contract/error.ts';
import { FaultSystem, PRINCIPAL, outcomeOf, unique } from '../support/fault-system.ts';

const AWAY_MS = 20_000;
/** Callers that call one after another, as fast as they are answered. */
const CALLERS = 4;
/** Acknowledged before the server goes, so that it goes under load. */
const WARM_UP = 40;
/** Acknowledged after it came back. */
const COOL_DOWN = 20;
const ACTIONS = ['target_conditional', 'target_unsafe_lookup', 'target_inline'];

let system: FaultSystem;
beforeAll(async () => {
  system = await FaultSystem.open();
});
afterAll(() => system.close());

interface Call {
  action: string;
  key: string;
  taskId: string;
  operationId: string;
}

test(
  '[S1.5] [S2.11] crash of the engine for 20 s under load: no acknowledged call is lost, none takes place twice',
  { timeout: 240_000 },
  async () => {
    const store = await system.store('postgres');
    const taskQueue = unique('outage');
    await system.worker(store, { taskQueue }).ready();
    const client = await system.client(store, taskQueue);
    const acknowledged: Call[] = [];
    const refused: Omit<Call, 'taskId' | 'operationId'>[] = [];
    const waiting: { count: number; wake: () => void }[] = [];
    let isOver = false;

    const reached = (count: number) => new Promise<void>((wake) => waiting.push({ count, wake }));
    const call = async (action: string, key: string) => {
      try {
        const { taskId, operationId } = await client.start({
          action,
          args: { value: key },
          key,
          principal: PRINCIPAL,
        });
        acknowledged.push({ action, key, taskId, operationId });
      } catch (error) {
        expect(error).toBeInstanceOf(HoldfastError);
        expect(error).toMatchObject({ code: 'engine_unavailable', retryable: true });
        refused.push({ action, key });
      }
      for (const { count, wake } of waiting) if (acknowledged.length >= count) wake();
    };
    const callers = Array.from({ length: CALLERS }, async (_, caller) => {
      for (let turn = 0; !isOver; turn += 1)
        await call(ACTIONS[(caller + turn) % ACTIONS.length] ?? '', unique('load'));
    });

    await reached(WARM_UP);
    const { restart } = await system.killTemporal();
    const before = acknowledged.length;
    await pass(AWAY_MS); // the outage itself, not a wait for something
    await restart();
    await reached(acknowledged.length + COOL_DOWN);
    isOver = true;
    await Promise.all(callers);

    // A call that was told "unavailable" may be made again: same key, same task, at most one effect.
    for (const { action, key } of refused.splice(0)) await call(action, key);
    expect(refused).toEqual([]);
    const outcomes = await Promise.all(acknowledged.map(({ taskId }) => outcomeOf(client, taskId)));
    expect(outcomes.filter(({ status }) => status !== 'completed')).toEqual([]);
    const { applied } = await system.target.report();
    const counts = acknowledged.map(({ operationId }) => applied[operationId] ?? 0);
    expect(new Set(counts)).toEqual(new Set([1]));
    expect(before).toBeGreaterThanOrEqual(WARM_UP);
    expect(await store.ledger.verifyAudit()).toMatchObject({ ok: true });
  },
);
