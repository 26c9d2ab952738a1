// S8.4 on both stores: who may make a control call about another server's task, and whose outcome is written.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LIMITS } from '../../src/contract/limits.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import type { RemoteCall, RemoteCallOutcome, RemoteClaim } from '../../src/ledger/remote-tasks.ts';
import * as fixture from './ledger-fixture.ts';
import type { Place } from './ledger-fixture.ts';

const LEASE_MS = 120_000;
const HANDLE = { server: 'depot', tool: 'archive', taskId: 'r-1', pollIntervalMs: 5_000, ttlMs: null };
const WORKING: RemoteCallOutcome = { kind: 'seen', seen: { kind: 'working' }, result: null, dueInMs: 5_000 };
const DONE: RemoteCallOutcome = {
  kind: 'seen',
  seen: { kind: 'completed' },
  result: { kind: 'inline', value: { content: [] } },
  dueInMs: 0,
};
const FAILED: RemoteCallOutcome = { kind: 'failed', message: 'no route', dueInMs: 0, alertAt: 3 };

describe.each(fixture.STORES)('tasks of other servers on %s', (kind) => {
  let place: Place;
  let ledger: Ledger;
  beforeEach(async () => {
    place = await fixture.openPlace(kind);
    ({ ledger } = place);
  });
  afterEach(() => place.close());

  async function registered(handle: Partial<typeof HANDLE> | { ttlMs: number } = {}): Promise<fixture.Work> {
    const work = await fixture.reserved(ledger);
    const claim = await fixture.claimed(ledger, work);
    const task = { handle: { ...HANDLE, ...handle }, inDoubtBefore: false };
    const answer = await ledger.registerRemoteTask(claim, task);
    assert(answer.kind === 'registered', `expected registered, got ${answer.kind}`);
    return work;
  }

  const ask = (
    { operationId }: fixture.Work,
    call: RemoteCall,
    worker = 'worker-a',
    on: Ledger = ledger,
    keys: string[] = [],
  ) => on.claimRemoteCall({ operationId, call, worker, leaseMs: LEASE_MS, keys });

  async function granted(work: fixture.Work, call: RemoteCall, worker?: string): Promise<RemoteClaim> {
    const answer = await ask(work, call, worker);
    assert(answer.kind === 'granted', `expected granted, got ${answer.kind}`);
    return answer.claim;
  }

  const row = async ({ operationId }: fixture.Work) => {
    const found = await ledger.findRemoteTask(operationId);
    assert(found !== null);
    return found;
  };

  test('[S8.4] a task is registered under the claim its execution had, once, and told in the audit', async () => {
    const work = await fixture.reserved(ledger);
    const claim = await fixture.claimed(ledger, work);
    const task = { handle: HANDLE, inDoubtBefore: false };
    expect((await ledger.registerRemoteTask(claim, task)).kind).toBe('registered');
    expect((await ledger.registerRemoteTask(claim, task)).kind).toBe('known');
    const second = { ...task, handle: { ...HANDLE, taskId: 'r-2' } };
    expect((await ledger.registerRemoteTask(claim, second)).kind).toBe('another');
    await fixture.claimed(ledger, work, 2);
    const late = await ledger.registerRemoteTask(claim, second);
    expect(late.kind).toBe('stale');
    expect(await row(work)).toMatchObject({ handle: HANDLE, phase: 'working', seen: null, failures: 0 });
    expect((await fixture.auditTypes(ledger, work)).filter((type) => type === 'remote.started')).toHaveLength(
      1,
    );
  });

  test('[S8.4] one control call at a time, whoever asks, until its outcome is written', async () => {
    const work = await registered();
    const claim = await granted(work, 'poll');
    expect(await ask(work, 'poll', 'worker-b')).toMatchObject({ kind: 'busy' });
    expect(await ask(work, 'poll', 'worker-a')).toMatchObject({ kind: 'busy' });
    expect((await ledger.settleRemoteCall(claim, WORKING)).kind).toBe('written');
    expect(await ask(work, 'poll', 'worker-b')).toMatchObject({ kind: 'not_due' });
    await place.pass(5_000);
    expect((await ask(work, 'poll', 'worker-b')).kind).toBe('granted');
  });

  test('[S8.4] of many claims made at once from two processes, one is granted', async () => {
    const work = await registered();
    const other = await place.another();
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        ask(work, 'poll', `worker-${index}`, index % 2 === 0 ? ledger : other),
      ),
    );
    const kinds = answers.map((answer) => answer.kind);
    expect(kinds.filter((each) => each === 'granted')).toHaveLength(1);
    expect(kinds.filter((each) => each === 'busy')).toHaveLength(11);
  });

  test('[S8.4] a lease that passed may be claimed; whoever held it writes, renews and gives back nothing, under an equal name too', async () => {
    const work = await registered();
    const paused = await granted(work, 'poll', 'worker-a');
    await place.pass(LEASE_MS + 1);
    expect(await ledger.renewRemoteCall(paused, LEASE_MS)).toBe(false);
    const successor = await granted(work, 'poll', 'worker-a');
    const before = await row(work);
    for (const outcome of [DONE, FAILED])
      expect((await ledger.settleRemoteCall(paused, outcome)).kind).toBe('fence_stale');
    expect(await ledger.renewRemoteCall(paused, LEASE_MS)).toBe(false);
    expect(await ledger.releaseRemoteCall(paused)).toBe(false);
    expect(await row(work)).toEqual(before);
    expect((await ledger.settleRemoteCall(successor, WORKING)).kind).toBe('written');
  });

  test('[S8.3] a write under the token but another sequence changes nothing', async () => {
    const work = await registered();
    const claim = await granted(work, 'poll');
    expect((await ledger.settleRemoteCall({ ...claim, seq: claim.seq + 1 }, DONE)).kind).toBe('fence_stale');
    expect((await ledger.settleRemoteCall({ ...claim, token: 'forged' }, DONE)).kind).toBe('fence_stale');
    expect((await row(work)).phase).toBe('working');
  });

  test('[S8.4] a renewal touches the lease alone, and never shortens it', async () => {
    const work = await registered();
    const claim = await granted(work, 'poll');
    const before = await row(work);
    expect(await ledger.renewRemoteCall(claim, 1)).toBe(true);
    expect(await row(work)).toEqual(before);
    expect(await ledger.renewRemoteCall(claim, LEASE_MS * 3)).toBe(true);
    const after = await row(work);
    expect(after.claim?.leaseUntil).toBeGreaterThan(before.claim?.leaseUntil ?? Infinity);
    expect({ ...after, claim: null }).toEqual({ ...before, claim: null });
    await place.pass(LEASE_MS * 2);
    expect(await ledger.renewRemoteCall(claim, LEASE_MS)).toBe(true);
  });

  test('[S8.4] a renewal is refused for another worker, another kind of call, and a task that ended', async () => {
    const work = await registered();
    const claim = await granted(work, 'poll');
    expect(await ledger.renewRemoteCall({ ...claim, worker: 'worker-b' }, LEASE_MS)).toBe(false);
    expect(await ledger.renewRemoteCall({ ...claim, call: 'cancel' }, LEASE_MS)).toBe(false);
    await ledger.settleRemoteCall(claim, DONE);
    expect(await ledger.renewRemoteCall(claim, LEASE_MS)).toBe(false);
    expect(await ask(work, 'poll')).toMatchObject({ kind: 'ended', row: { result: DONE.result } });
    expect(await ask(work, 'cancel')).toMatchObject({ kind: 'ended' });
  });

  test('[S8.4] a cancel supersedes polling: none is claimed or renewed until it was sent', async () => {
    const work = await registered();
    const poll = await granted(work, 'poll');
    await ledger.askRemoteCancel(work.operationId);
    expect(await ledger.renewRemoteCall(poll, LEASE_MS)).toBe(false);
    expect(await ask(work, 'poll')).toEqual({ kind: 'superseded' });
    expect(await ask(work, 'cancel')).toMatchObject({ kind: 'busy' });
    expect(await ledger.releaseRemoteCall(poll)).toBe(true);
    const cancel = await granted(work, 'cancel');
    await ledger.settleRemoteCall(cancel, { kind: 'cancel_sent', dueInMs: 0 });
    expect(await ask(work, 'cancel')).toMatchObject({ kind: 'done' });
    expect((await ask(work, 'poll')).kind).toBe('granted');
  });

  test.each(['poll', 'answer'] as const)(
    '[S8.4] a call (%s) that was under way when a cancel was asked for, and fails then, is no try of the cancel: that goes first',
    async (call) => {
      const work = await registered();
      const answer = await ask(work, call, 'worker-a', ledger, ['name']);
      assert(answer.kind === 'granted');
      await ledger.askRemoteCancel(work.operationId);
      await ledger.settleRemoteCall(answer.claim, FAILED);
      expect(await row(work)).toMatchObject({ phase: 'cancelling', failures: 0, lastError: 'no route' });
      expect(await ask(work, 'poll')).toEqual({ kind: 'superseded' });
      await ledger.settleRemoteCall(await granted(work, 'cancel'), FAILED);
      expect((await ask(work, 'poll')).kind).toBe('granted');
    },
  );

  test('[S8.4] a cancel that is not taken for long is told to a person, once, though the server answers polls', async () => {
    const work = await registered();
    await ledger.askRemoteCancel(work.operationId);
    const types = async () =>
      (await ledger.alerts({ tenant: fixture.PRINCIPAL.tenant, taskId: work.taskId })).map(
        ({ type }) => type,
      );
    const tried = async () => {
      await ledger.settleRemoteCall(await granted(work, 'cancel'), FAILED);
      await ledger.settleRemoteCall(await granted(work, 'poll'), { ...WORKING, dueInMs: 0 });
    };
    await tried();
    await place.pass(LIMITS.remoteCancelMs.value - 60_000);
    await tried();
    expect(await types()).toEqual([]);
    await place.pass(60_000);
    await tried();
    expect(await types()).toEqual(['remote_cancel_late']);
    await tried();
    await ledger.settleRemoteCall(await granted(work, 'cancel'), { kind: 'cancel_sent', dueInMs: 0 });
    expect(await types()).toEqual(['remote_cancel_late']);
  });

  test('[S8.4] a cancel asked for again leaves the one under way alone: another worker gets no claim', async () => {
    const work = await registered();
    await ledger.askRemoteCancel(work.operationId);
    const slow = await granted(work, 'cancel', 'worker-a');
    const before = await row(work);
    await place.pass(1_000);
    await ledger.askRemoteCancel(work.operationId);
    expect(await ask(work, 'cancel', 'worker-b')).toMatchObject({ kind: 'busy' });
    expect({ ...(await row(work)), claim: null }).toMatchObject({
      cancelRequestedAt: expect.any(Number) as number,
      phase: 'cancelling',
      seq: before.seq,
    });
    expect(await ledger.renewRemoteCall(slow, LEASE_MS)).toBe(true);
    expect((await ledger.settleRemoteCall(slow, { kind: 'cancel_sent', dueInMs: 0 })).kind).toBe('written');
    expect(await ask(work, 'cancel', 'worker-b')).toMatchObject({ kind: 'done' });
    const told = await fixture.auditTypes(ledger, work);
    expect(told.filter((type) => type.startsWith('remote.cancel'))).toEqual([
      'remote.cancel_requested',
      'remote.cancel_sent',
    ]);
  });

  test('[S8.4] what was given back counts for nothing; what failed counts, and a person hears of it once', async () => {
    const work = await registered();
    const stopped = await granted(work, 'poll');
    const before = await row(work);
    expect(await ledger.releaseRemoteCall(stopped)).toBe(true);
    expect(await row(work)).toEqual({ ...before, claim: null });
    for (let count = 1; count <= 5; count += 1) {
      await ledger.settleRemoteCall(await granted(work, 'poll'), FAILED);
      expect(await row(work)).toMatchObject({ failures: count, lastError: 'no route', phase: 'working' });
    }
    const alerts = await ledger.alerts({ tenant: fixture.PRINCIPAL.tenant, taskId: work.taskId });
    expect(alerts.map(({ type }) => type)).toEqual(['remote_unreachable']);
    await ledger.settleRemoteCall(await granted(work, 'poll'), WORKING);
    expect(await row(work)).toMatchObject({ failures: 0, lastError: null });
  });

  test('[S8.4] the outcome sent again under the same token is written once', async () => {
    const work = await registered();
    const claim = await granted(work, 'poll');
    await ledger.settleRemoteCall(claim, FAILED);
    expect((await ledger.settleRemoteCall(claim, FAILED)).kind).toBe('written');
    expect(await row(work)).toMatchObject({ failures: 1, seq: claim.seq + 1 });
  });

  test('[M8.4] the next poll comes the sooner the nearer the end of the server’s promise', async () => {
    const work = await registered({ ttlMs: 60_000 });
    const far = { ...WORKING, dueInMs: 300_000 } as const;
    await ledger.settleRemoteCall(await granted(work, 'poll'), far);
    const first = await row(work);
    expect(first.pollDueAt).toBeLessThanOrEqual((first.ttlUntil ?? 0) - 29_000);
    await place.pass(59_000);
    await ledger.settleRemoteCall(await granted(work, 'poll'), far);
    const last = await row(work);
    expect(last.pollDueAt).toBeLessThan(last.updatedAt + 2_000);
  });

  test('[M8.4] a key is answered once, and the answer is no other call’s', async () => {
    const work = await registered();
    const keys = ['address'];
    const answer = await ask(work, 'answer', 'worker-a', ledger, keys);
    assert(answer.kind === 'granted');
    await ledger.settleRemoteCall(answer.claim, { kind: 'answered', keys, dueInMs: 0 });
    expect(await ask(work, 'answer', 'worker-b', ledger, keys)).toMatchObject({ kind: 'done' });
    expect((await ask(work, 'answer', 'worker-b', ledger, ['name'])).kind).toBe('granted');
  });

  test('[M8.4] the remote task of a later execution takes the place of one that ended', async () => {
    const work = await registered();
    await ledger.settleRemoteCall(await granted(work, 'poll'), {
      kind: 'seen',
      seen: { kind: 'failed', message: 'disk full' },
      result: null,
      dueInMs: 0,
    });
    const claim = await fixture.claimed(ledger, work, 2);
    const again = { handle: { ...HANDLE, taskId: 'r-2' }, inDoubtBefore: true };
    expect((await ledger.registerRemoteTask(claim, again)).kind).toBe('registered');
    expect(await row(work)).toMatchObject({ handle: { taskId: 'r-2' }, phase: 'working', seen: null });
  });
});

describe('two pollers whose clocks are ten minutes apart', () => {
  let place: Place;
  beforeEach(async () => {
    place = await fixture.openPlace('postgres');
  });
  afterEach(() => place.close());

  test('[S8.5] [case 35] the database decides: neither polls nor cancels beside the other', async () => {
    const { ledger } = place;
    const work = await fixture.reserved(ledger);
    const claim = await fixture.claimed(ledger, work);
    await ledger.registerRemoteTask(claim, { handle: HANDLE, inDoubtBefore: false });
    const fast = await place.another();
    const { operationId } = work;
    const real = Date.now;
    const at = async <T>(aheadMs: number, act: () => Promise<T>): Promise<T> => {
      Date.now = () => real() + aheadMs;
      try {
        return await act();
      } finally {
        Date.now = real;
      }
    };
    const call = (on: Ledger, kind: RemoteCall, worker: string) =>
      on.claimRemoteCall({ operationId, call: kind, worker, leaseMs: LEASE_MS });
    const first = await at(-300_000, () => call(ledger, 'poll', 'slow'));
    assert(first.kind === 'granted');
    expect(await at(300_000, () => call(fast, 'poll', 'fast'))).toMatchObject({ kind: 'busy' });
    expect(await at(-300_000, () => ledger.renewRemoteCall(first.claim, LEASE_MS))).toBe(true);
    expect(await at(300_000, () => call(fast, 'poll', 'fast'))).toMatchObject({ kind: 'busy' });
    await ledger.releaseRemoteCall(first.claim);
    await ledger.askRemoteCancel(operationId);
    expect((await at(300_000, () => call(fast, 'cancel', 'fast'))).kind).toBe('granted');
    expect(await at(-300_000, () => call(ledger, 'cancel', 'slow'))).toMatchObject({ kind: 'busy' });
  });
});
