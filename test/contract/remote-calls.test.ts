// S8.4: the lifecycle of control calls about other servers' tasks, every call gated by hand and every clock moved by it.
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ActionFailure } from '../../src/contract/handlers.ts';
import type { RemoteStatus } from '../../src/contract/remote-server.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { RemoteCalls } from '../../src/remote/remote-calls.ts';
import type { RemoteCallAnswer } from '../../src/task/remote.ts';
import { deferred } from '../support/deferred.ts';
import { GatedRemoteServer } from '../support/gated-remote-server.ts';
import { HandDrivenClock } from '../support/hand-driven-clock.ts';
import * as fixture from './ledger-fixture.ts';
import type { Place } from './ledger-fixture.ts';

const LEASE_MS = 120_000;
const THIRD_MS = LEASE_MS / 3;
const DRAIN_MS = 10_000;
const NEVER = new AbortController().signal;
const COMPLETED: RemoteStatus = {
  kind: 'completed',
  result: { content: [], structuredContent: { files: 3 } },
};

/** One worker process, as far as control calls go. */
class Worker {
  readonly clock = new HandDrivenClock();
  readonly server: GatedRemoteServer;
  readonly ledger: Ledger;
  readonly calls: RemoteCalls;

  constructor(
    ledger: Ledger,
    server: GatedRemoteServer,
    bounds: { callsMax?: number; callMs?: number } = {},
  ) {
    this.server = server;
    this.ledger = ledger;
    this.calls = new RemoteCalls({
      ledger,
      servers: (name) => (name === 'depot' ? server : undefined),
      worker: 'the-same-name',
      clock: this.clock,
      bounds: { leaseMs: LEASE_MS, drainMs: DRAIN_MS, callMs: 900_000, ...bounds },
    });
  }

  poll = ({ operationId }: fixture.Work, stop = NEVER): Promise<RemoteCallAnswer> =>
    this.calls.poll(operationId, true, stop);
  cancel = ({ operationId }: fixture.Work, stop = NEVER): Promise<RemoteCallAnswer> =>
    this.calls.cancel(operationId, stop);
}

/** How far ahead the clock of a process is, for whatever is done on its behalf. */
const skew = new AsyncLocalStorage<number>();
const realNow = Date.now;
beforeAll(() => {
  Date.now = () => realNow() + (skew.getStore() ?? 0);
});
afterAll(() => {
  Date.now = realNow;
});

/** Counts the questions that the ledger has not answered yet. */
function counted(ledger: Ledger, asking: { count: number }): Ledger {
  const count = (name: string, method: unknown): [string, unknown] => {
    if (typeof method !== 'function') return [name, method];
    return [
      name,
      (...given: unknown[]): unknown => {
        const answer = (method as (...all: unknown[]) => unknown)(...given);
        if (!(answer instanceof Promise)) return answer;
        asking.count += 1;
        return answer.finally(() => (asking.count -= 1));
      },
    ];
  };
  const methods = Object.entries(ledger).map(([name, method]) => count(name, method));
  return Object.fromEntries(methods) as unknown as Ledger;
}

describe.each(fixture.STORES)('control calls over %s', (kind) => {
  let place: Place;
  let ledger: Ledger;
  let server: GatedRemoteServer;
  let a: Worker;
  let b: Worker;
  const asking = { count: 0 };
  beforeEach(async () => {
    place = await fixture.openPlace(kind);
    ledger = counted(place.ledger, asking);
    server = new GatedRemoteServer();
    a = new Worker(ledger, server);
    b = new Worker(ledger, server);
  });
  afterEach(() => place.close());

  let tasks = 0;
  async function remote(): Promise<fixture.Work> {
    const work = await fixture.reserved(ledger);
    const claim = await fixture.claimed(ledger, work);
    const handle = { server: 'depot', tool: 'archive', taskId: `r-${(tasks += 1)}` };
    await ledger.registerRemoteTask(claim, {
      handle: { ...handle, pollIntervalMs: 5_000, ttlMs: null },
      inDoubtBefore: false,
    });
    return work;
  }

  async function until(isSo: () => boolean): Promise<void> {
    const endsAt = performance.now() + 15_000;
    while (performance.now() < endsAt && !isSo()) await turn();
    assert(isSo(), 'it did not come to be so');
  }
  /** Until the ledger has answered whatever it was asked for. */
  async function quiet(): Promise<void> {
    for (let calm = 0; calm < 10; calm += 1) {
      await turn();
      if (asking.count > 0) calm = 0;
    }
  }
  /** Lets time pass for the database and for the given workers alike. */
  async function pass(ms: number, ...workers: Worker[]): Promise<void> {
    await place.pass(ms);
    for (const { clock } of workers) clock.pass(ms);
    await quiet();
  }
  const row = async ({ operationId }: fixture.Work) => {
    const found = await ledger.findRemoteTask(operationId);
    assert(found);
    return found;
  };
  async function asked(count: number): Promise<void> {
    await until(() => server.calls.length === count);
  }

  test('[S8.4] a poll that takes longer than the lease keeps it, and its result is written', async () => {
    const work = await remote();
    const polling = a.poll(work);
    await asked(1);
    for (let thirds = 0; thirds < 7; thirds += 1) {
      await pass(THIRD_MS, a);
      expect(await b.poll(work)).toMatchObject({ kind: 'wait', why: 'busy' });
    }
    server.call(0).answer(COMPLETED);
    expect(await polling).toMatchObject({ kind: 'facts', isEnded: true, seen: { kind: 'completed' } });
    expect(await row(work)).toMatchObject({
      result: { kind: 'inline', value: { content: [], structuredContent: { files: 3 } } },
    });
    expect(server.asked('status')).toBe(1);
  });

  test('[S8.4] a cancel that takes longer than the lease, asked for again meanwhile, is one remote cancel (field case 34)', async () => {
    const work = await remote();
    const cancelling = a.cancel(work);
    await asked(1);
    for (let thirds = 0; thirds < 5; thirds += 1) {
      await pass(THIRD_MS, a);
      expect(await a.cancel(work)).toMatchObject({ kind: 'wait' });
      expect(await b.cancel(work)).toMatchObject({ kind: 'wait', why: 'busy' });
      expect(await b.poll(work)).toMatchObject({ kind: 'wait', why: 'superseded' });
    }
    server.call(0).answer();
    expect(await cancelling).toMatchObject({ kind: 'facts', isCancelSent: true, isEnded: false });
    expect(await b.cancel(work)).toMatchObject({ kind: 'facts', isCancelSent: true });
    expect(server.asked('cancel')).toBe(1);
  });

  test('[S8.4] a cancel ends the local poll by the next renewal, and goes out when that has ended', async () => {
    const work = await remote();
    const polling = a.poll(work);
    await asked(1);
    expect(await b.cancel(work)).toMatchObject({ kind: 'wait', why: 'busy' });
    await pass(THIRD_MS, a, b);
    expect(server.call(0).signal.aborted).toBe(true);
    expect(await polling).toMatchObject({ kind: 'wait', why: 'lost' });
    await quiet();
    const cancelling = b.cancel(work);
    await asked(2);
    server.call(1).answer();
    expect(await cancelling).toMatchObject({ isCancelSent: true });
    expect(await row(work)).toMatchObject({ failures: 0, lastPolledAt: null });
  });

  test.each(['success', 'failure'] as const)(
    '[S8.4] a worker paused beyond its lease is overtaken: its late %s is discarded, though the owner has the same name',
    async (how) => {
      const work = await remote();
      server.isCooperative = false;
      const paused = a.poll(work);
      await asked(1);
      await pass(LEASE_MS + 1); // for the database alone: the worker's own clock stands still
      const polling = b.poll(work);
      await asked(2);
      server.call(1).answer({ kind: 'working', message: 'half way' });
      await polling;
      const before = await row(work);
      if (how === 'success') server.call(0).answer(COMPLETED);
      else server.call(0).fail(new Error('gone'));
      expect(await paused).toMatchObject({ kind: 'wait', why: 'lost' });
      expect(await row(work)).toEqual(before);
      expect(before).toMatchObject({ phase: 'working', failures: 0, seen: { message: 'half way' } });
    },
  );

  test('[S8.4] ownership lost in mid-call aborts the local call; status and diagnostics stay', async () => {
    const work = await remote();
    const polling = a.poll(work);
    await asked(1);
    await place.raw(`update remote_task set token = 'somebody' where operation_id = '${work.operationId}'`);
    const { seen, failures, lastError, seq } = await row(work);
    await pass(THIRD_MS, a);
    expect(server.call(0).signal.aborted).toBe(true);
    expect(await polling).toMatchObject({ kind: 'wait', why: 'lost' });
    expect(await row(work)).toMatchObject({ seen, failures, lastError, seq, phase: 'working' });
    expect(server.asked('cancel')).toBe(0);
  });

  test.each(['unavailable', 'hung'] as const)(
    '[S8.4] a renewal that is %s costs nothing once, and the call when the lease may have run out',
    async (how) => {
      const work = await remote();
      const away = { isAway: false };
      const renewRemoteCall: Ledger['renewRemoteCall'] = (...given) => {
        if (!away.isAway) return ledger.renewRemoteCall(...given);
        return how === 'hung' ? new Promise(() => undefined) : Promise.reject(new Error('away'));
      };
      const worker = new Worker({ ...ledger, renewRemoteCall }, server);
      const polling = worker.poll(work);
      await asked(1);
      away.isAway = true;
      await pass(THIRD_MS, worker);
      away.isAway = false;
      await pass(THIRD_MS, worker);
      expect(server.call(0).signal.aborted).toBe(false);
      away.isAway = true;
      await pass(THIRD_MS, worker);
      await pass(THIRD_MS, worker);
      expect(server.call(0).signal.aborted).toBe(false);
      await pass(THIRD_MS, worker);
      expect(server.call(0).signal.aborted).toBe(true);
      expect(await polling).toMatchObject({ kind: 'wait', why: 'lost' });
      expect(await row(work)).toMatchObject({ failures: 0, seen: null });
    },
  );

  test('[S8.4] a claim whose admission was delayed beyond its lease makes no call', async () => {
    const work = await remote();
    const gate = deferred();
    const delayed = new Worker(
      {
        ...ledger,
        claimRemoteCall: async (request) => {
          const answer = await ledger.claimRemoteCall(request);
          await gate.promise;
          return answer;
        },
      },
      server,
    );
    const late = delayed.poll(work);
    await quiet();
    await pass(LEASE_MS + 1, b);
    const polling = b.poll(work);
    await asked(1);
    gate.resolve();
    expect(await late).toMatchObject({ kind: 'wait', why: 'lost' });
    server.call(0).answer({ kind: 'working' });
    expect(await polling).toMatchObject({ kind: 'facts', isEnded: false });
    expect(server.calls).toHaveLength(1);
  });

  test('[S8.4] an admission that was delayed less extends the lease before the call', async () => {
    const work = await remote();
    const gate = deferred();
    const delayed = new Worker(
      {
        ...ledger,
        claimRemoteCall: async (request) => {
          const answer = await ledger.claimRemoteCall(request);
          await gate.promise;
          return answer;
        },
      },
      server,
    );
    const polling = delayed.poll(work);
    await quiet();
    await pass(LEASE_MS - 1_000, b);
    gate.resolve();
    await asked(1);
    await pass(THIRD_MS - 1, b);
    expect(await b.poll(work)).toMatchObject({ kind: 'wait', why: 'busy' });
    server.call(0).answer({ kind: 'working' });
    expect(await polling).toMatchObject({ kind: 'facts' });
  });

  test('[S8.4] what comes in after the remote task has ended changes nothing', async () => {
    const work = await remote();
    server.isCooperative = false;
    const paused = a.poll(work);
    await asked(1);
    await pass(LEASE_MS + 1);
    const polling = b.poll(work);
    await asked(2);
    server.call(1).answer(COMPLETED);
    await polling;
    const before = await row(work);
    server.call(0).answer({ kind: 'failed', message: 'not so' });
    await paused;
    expect(await row(work)).toEqual(before);
    expect(await a.cancel(work)).toMatchObject({ kind: 'facts', isEnded: true });
    expect(server.asked('cancel')).toBe(0);
  });

  test('[S8.4] an outcome that the ledger can not take yet is written later, the lease renewed until then', async () => {
    const work = await remote();
    const away = { isAway: true };
    const settleRemoteCall: Ledger['settleRemoteCall'] = (...given) =>
      away.isAway ? Promise.reject(new Error('away')) : ledger.settleRemoteCall(...given);
    const worker = new Worker({ ...ledger, settleRemoteCall }, server);
    const polling = worker.poll(work);
    await asked(1);
    server.call(0).answer(COMPLETED);
    for (let thirds = 0; thirds < 5; thirds += 1) await pass(THIRD_MS, worker);
    expect(await b.poll(work)).toMatchObject({ kind: 'wait', why: 'busy' });
    away.isAway = false;
    await pass(1_000, worker);
    expect(await polling).toMatchObject({ kind: 'facts', isEnded: true });
  });

  test('[S8.4] SIGTERM in mid-poll counts as no failure, cancels nothing, and another worker polls at once (field case 34)', async () => {
    const work = await remote();
    const polling = a.poll(work);
    await asked(1);
    const before = await row(work);
    a.calls.stop();
    expect(await polling).toMatchObject({ kind: 'wait', why: 'stopped' });
    expect(await row(work)).toEqual({ ...before, claim: null });
    expect(await a.poll(work)).toMatchObject({ kind: 'wait', why: 'stopped' });
    const next = b.poll(work);
    await asked(2);
    server.call(1).answer({ kind: 'working' });
    await next;
    expect(await row(work)).toMatchObject({ failures: 0 });
    expect(server.asked('cancel')).toBe(0);
  });

  test('[S8.4] a call that was stopped and answered all the same is written', async () => {
    const work = await remote();
    server.isCooperative = false;
    const stop = new AbortController();
    const polling = a.poll(work, stop.signal);
    await asked(1);
    stop.abort();
    server.call(0).answer(COMPLETED);
    expect(await polling).toMatchObject({ kind: 'facts', isEnded: true });
  });

  test('[S8.4] a call left behind keeps its slot until it settles, and its task is not called about again; others go on', async () => {
    const worker = new Worker(ledger, server, { callsMax: 2 });
    const [stuck, other] = [await remote(), await remote()];
    server.isCooperative = false;
    const stop = new AbortController();
    const polling = worker.poll(stuck, stop.signal);
    await asked(1);
    stop.abort();
    await pass(DRAIN_MS, worker);
    expect(await polling).toMatchObject({ kind: 'wait', why: 'left_behind' });
    await pass(LEASE_MS + 1, worker);
    expect(await worker.poll(stuck)).toMatchObject({ kind: 'wait', why: 'under_way' });
    for (let round = 1; round <= 2; round += 1) {
      const next = worker.poll(other);
      await asked(1 + round);
      server.call(-1).answer({ kind: 'working' });
      expect(await next).toMatchObject({ kind: 'facts' });
      await pass(6_000, worker);
    }
    server.call(0).answer(COMPLETED);
    await quiet();
    const again = worker.poll(stuck);
    await asked(4);
    expect(await row(stuck)).toMatchObject({ seen: null, failures: 0 });
    server.call(3).answer({ kind: 'working' });
    expect(await again).toMatchObject({ kind: 'facts', seen: { kind: 'working' } });
  });

  test('[S8.4] with all slots held by calls that do not settle, new ones wait until one does', async () => {
    const worker = new Worker(ledger, server, { callsMax: 2 });
    const [one, two, third] = [await remote(), await remote(), await remote()];
    server.isCooperative = false;
    const stop = new AbortController();
    const left = [worker.poll(one, stop.signal), worker.poll(two, stop.signal)];
    await asked(2);
    stop.abort();
    await pass(DRAIN_MS, worker);
    await Promise.all(left);
    const waiting = worker.poll(third);
    await pass(LEASE_MS, worker);
    expect(server.calls).toHaveLength(2);
    server.call(0).fail(new Error('at last'));
    await asked(3);
    server.call(2).answer({ kind: 'working' });
    expect(await waiting).toMatchObject({ kind: 'facts' });
  });

  test('[S8.4] few wait for a slot: whoever comes beyond is told to come again, and no claim is made for it', async () => {
    const worker = new Worker(ledger, server, { callsMax: 2 });
    const [one, two, third, fourth] = [await remote(), await remote(), await remote(), await remote()];
    const under = [worker.poll(one), worker.poll(two)];
    await asked(2);
    const waiting = worker.poll(third);
    const stop = new AbortController();
    const beyond = worker.poll(fourth, stop.signal);
    await quiet();
    stop.abort();
    expect(await beyond).toMatchObject({ kind: 'wait', why: 'under_way' });
    for (const index of [0, 1]) server.call(index).answer({ kind: 'working' });
    await asked(3);
    server.call(2).answer({ kind: 'working' });
    expect(await Promise.all([...under, waiting])).toMatchObject([
      { kind: 'facts' },
      { kind: 'facts' },
      { kind: 'facts' },
    ]);
    expect((await row(fourth)).claim).toBeNull();
  });

  test('[S8.4] a cancel does not wait behind polls: it takes the place of the last, and the next slot', async () => {
    const worker = new Worker(ledger, server, { callsMax: 5 });
    const polled = await Promise.all(Array.from({ length: 5 }, remote));
    const under = polled.map((work) => worker.poll(work));
    await asked(5);
    const [first, second, third, fourth] = [await remote(), await remote(), await remote(), await remote()];
    const waiting = [worker.poll(first), worker.poll(second)];
    await quiet();
    const cancelling = [worker.cancel(third), worker.cancel(fourth)];
    await quiet();
    expect(await Promise.all(waiting)).toMatchObject([
      { kind: 'wait', why: 'under_way' },
      { kind: 'wait', why: 'under_way' },
    ]);
    expect(await worker.cancel(await remote())).toMatchObject({ kind: 'wait', why: 'under_way' });
    server.call(0).answer({ kind: 'working' });
    await asked(6);
    expect(server.call(-1)).toMatchObject({ kind: 'cancel' });
    server.call(1).answer({ kind: 'working' });
    await asked(7);
    expect(server.asked('cancel')).toBe(2);
    for (const call of server.calls) call.answer({ kind: 'working' });
    await Promise.all([...under, ...cancelling]);
  });

  test('[S8.4] the wait for a slot ends with the shutdown, without a claim', async () => {
    const worker = new Worker(ledger, server, { callsMax: 1 });
    const [one, two] = [await remote(), await remote()];
    const polling = worker.poll(one);
    await asked(1);
    const waiting = worker.poll(two);
    worker.calls.stop();
    expect(await waiting).toMatchObject({ kind: 'wait', why: 'stopped' });
    expect(await polling).toMatchObject({ kind: 'wait', why: 'stopped' });
    expect((await row(two)).claim).toBeNull();
  });

  test('[S8.4] of two workers that scan the same tasks at once, each task is polled by one', async () => {
    const works = [await remote(), await remote(), await remote(), await remote(), await remote()];
    const scans = works.flatMap((work) => [a.poll(work), b.poll(work)]);
    await asked(works.length);
    await quiet();
    for (const call of server.calls) call.answer({ kind: 'working' });
    const kinds = (await Promise.all(scans)).map((answer) => answer.kind);
    expect(kinds.filter((each) => each === 'facts')).toHaveLength(works.length);
    expect(new Set(server.calls.map(({ task }) => task.taskId)).size).toBe(works.length);
  });

  // SQLite has no clock but that of each process, which all run on one host.
  test.runIf(kind === 'postgres')(
    '[S8.5] [case 35] of two pollers whose clocks are ten minutes apart, one polls and one cancels',
    async () => {
      const work = await remote();
      const slow = <T>(act: () => T): T => skew.run(-300_000, act);
      const fast = <T>(act: () => T): T => skew.run(300_000, act);
      b.clock.pass(600_000);
      const polling = slow(() => a.poll(work));
      await asked(1);
      for (let thirds = 0; thirds < 4; thirds += 1) {
        expect(await fast(() => b.poll(work))).toMatchObject({ kind: 'wait', why: 'busy' });
        await pass(THIRD_MS);
        slow(() => a.clock.pass(THIRD_MS));
        await quiet();
      }
      server.call(0).answer({ kind: 'working' });
      expect(await polling).toMatchObject({ kind: 'facts', isEnded: false });
      const cancelling = fast(() => b.cancel(work));
      await asked(2);
      for (let thirds = 0; thirds < 4; thirds += 1) {
        expect(await slow(() => a.cancel(work))).toMatchObject({ kind: 'wait', why: 'busy' });
        await pass(THIRD_MS);
        fast(() => b.clock.pass(THIRD_MS));
        await quiet();
      }
      server.call(1).answer();
      expect(await cancelling).toMatchObject({ isCancelSent: true });
      expect(await slow(() => a.cancel(work))).toMatchObject({ isCancelSent: true });
      expect([server.asked('status'), server.asked('cancel')]).toEqual([1, 1]);
    },
  );

  test('[S8.4] a call that outlasts its own deadline is aborted and counts as a failure', async () => {
    const worker = new Worker(ledger, server, { callMs: THIRD_MS * 4 });
    const work = await remote();
    const polling = worker.poll(work);
    await asked(1);
    for (let thirds = 0; thirds < 4; thirds += 1) await pass(THIRD_MS, worker);
    expect(await polling).toMatchObject({ kind: 'facts', failures: 1, isEnded: false });
  });

  test('[M8.4] failures are counted and space the polls out; Retry-After is obeyed; neither ends the task', async () => {
    const work = await remote();
    const waits: number[] = [];
    for (let count = 1; count <= 4; count += 1) {
      const polling = a.poll(work);
      await asked(count);
      server.call(-1).fail(count === 4 ? ActionFailure.rateLimited('later', 1_000_000) : new Error('503'));
      const answer = await polling;
      assert(answer.kind === 'facts');
      expect(answer).toMatchObject({ failures: count, isEnded: false });
      waits.push(Math.round(answer.dueInMs / 1_000));
      await pass(1_000_001, a);
    }
    expect(waits).toEqual([5, 10, 20, 1_000]);
  });

  test('[M8.4] the server’s poll interval is kept within bounds', async () => {
    const work = await remote();
    for (const [index, [asksForMs, seconds]] of (
      [
        [0, 1],
        [86_400_000, 300],
        [NaN, 1],
      ] as const
    ).entries()) {
      const polling = a.poll(work);
      await asked(index + 1);
      server.call(-1).answer({ kind: 'working', pollIntervalMs: asksForMs });
      const answer = await polling;
      assert(answer.kind === 'facts');
      expect(Math.round(answer.dueInMs / 1_000)).toBe(seconds);
      await pass(400_000, a);
    }
  });

  test('[M8.4] a key is forwarded once, by whichever worker', async () => {
    const work = await remote();
    const { operationId } = work;
    const first = a.calls.answer(operationId, { name: 'ada' }, NEVER);
    await asked(1);
    server.call(0).answer();
    expect(await first).toMatchObject({ kind: 'facts', answered: ['name'] });
    const second = b.calls.answer(operationId, { name: 'eve', city: 'ulm' }, NEVER);
    await asked(2);
    server.call(1).answer();
    await second;
    expect(server.calls.map(({ responses }) => responses)).toEqual([{ name: 'ada' }, { city: 'ulm' }]);
    expect(await a.calls.answer(operationId, { city: 'bonn' }, NEVER)).toMatchObject({ kind: 'facts' });
    expect(server.asked('answer')).toBe(2);
  });

  test('[M8.4] a large result is kept by reference; one that may hold secrets is not kept at all', async () => {
    const [large, secret] = [await remote(), await remote()];
    const result = { content: ['x'.repeat(300_000)] };
    const polling = a.poll(large);
    await asked(1);
    server.call(0).answer({ kind: 'completed', result });
    await polling;
    const kept = (await row(large)).result;
    assert(kept?.kind === 'reference');
    const text = await ledger.getPayload(fixture.PRINCIPAL.tenant, kept.sha256);
    expect(JSON.parse(text ?? 'null')).toEqual(result);
    const unkept = a.calls.poll(secret.operationId, false, NEVER);
    await asked(2);
    server.call(1).answer(COMPLETED);
    await unkept;
    expect(await row(secret)).toMatchObject({ phase: 'ended', seen: { kind: 'completed' }, result: null });
  });

  test('[M8.4] a worker without the server counts that as a failure of the call', async () => {
    const work = await remote();
    await place.raw(`update remote_task set server = 'elsewhere' where operation_id = '${work.operationId}'`);
    expect(await a.poll(work)).toMatchObject({
      kind: 'facts',
      failures: 1,
      lastError: 'This worker has no server elsewhere.',
    });
  });
});
