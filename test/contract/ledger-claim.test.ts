// S2.3, S2.4: who may act, until when.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as fixture from './ledger-fixture.ts';
import type { Place } from './ledger-fixture.ts';

describe.each(fixture.STORES)('claims on %s', (kind) => {
  let place: Place;
  beforeAll(async () => {
    place = await fixture.openPlace(kind);
  });
  afterAll(() => place.close());

  test('[S2.3] the first claim commits the intent with the claim', async () => {
    const work = await fixture.reserved(place.ledger);
    const answer = await place.ledger.claim(fixture.claimRequest(work, 1));
    const now = await place.ledger.now();
    expect(answer).toMatchObject({
      kind: 'granted',
      claim: { ...work, attempt: 1, generation: 1 },
      before: { state: 'reserved', attempt: 0 },
    });
    const row = await fixture.rowOf(place.ledger, work);
    expect(row).toMatchObject({ state: 'in_flight', attempt: 1, generation: 1, executions: 1 });
    expect((row.attemptDeadline ?? 0) - now).toBeGreaterThan(5_000);
    expect((row.attemptDeadline ?? 0) - now).toBeLessThanOrEqual(10_000);
    expect(await place.ledger.attempts(work.operationId)).toMatchObject([
      { ordinal: 1, attempt: 1, generation: 1, executing: true, outcome: null, finishedAt: null },
    ]);
  });

  test('[S4.2] keeps an approver’s edit beside the request’s fingerprint', async () => {
    const work = await fixture.reserved(place.ledger);
    const before = await fixture.rowOf(place.ledger, work);
    const edited = { by: 'bob', callId: 'action#1', fingerprint: { sent: 'e-sent', input: 'e-input' } };
    const answer = await place.ledger.claim({ ...fixture.claimRequest(work, 1), edited });
    if (answer.kind !== 'granted') throw new Error(answer.kind);
    const { fingerprint, edited: kept } = await fixture.rowOf(place.ledger, work);
    expect([fingerprint, kept]).toEqual([before.fingerprint, edited]);
    const [claimed] = (await place.ledger.audit({ taskId: work.taskId })).slice(-1);
    expect(claimed).toMatchObject({ type: 'operation.claimed', data: { edited } });
    const unedited = await fixture.reserved(place.ledger);
    await place.ledger.claim(fixture.claimRequest(unedited, 1));
    expect((await fixture.rowOf(place.ledger, unedited)).edited).toBeNull();
  });

  test('[S2.3] a lower attempt is stale and learns the row’s', async () => {
    const work = await fixture.reserved(place.ledger);
    await fixture.claimed(place.ledger, work, 3);
    expect(await place.ledger.claim(fixture.claimRequest(work, 2))).toEqual({
      kind: 'stale',
      rowAttempt: 3,
      superseded: false,
    });
  });

  test('[S2.3] an equal attempt is busy until the claim has passed, then takes a new generation', async () => {
    const work = await fixture.reserved(place.ledger);
    await fixture.claimed(place.ledger, work, 1, { claimMs: 30_000 });
    const busy = await place.ledger.claim(fixture.claimRequest(work, 1));
    expect(busy).toMatchObject({ kind: 'busy' });
    expect(busy.kind === 'busy' && busy.retryAfterMs).toBeGreaterThan(20_000);
    expect(busy.kind === 'busy' && busy.retryAfterMs).toBeLessThanOrEqual(30_000);
    await place.pass(30_001);
    expect(await place.ledger.claim(fixture.claimRequest(work, 1))).toMatchObject({
      kind: 'granted',
      claim: { attempt: 1, generation: 2 },
      before: { state: 'in_flight', generation: 1 },
    });
  });

  test('[S2.3] a higher attempt takes over at once, and the older one is lost', async () => {
    const work = await fixture.reserved(place.ledger);
    const old = await fixture.claimed(place.ledger, work, 1);
    const taken = await place.ledger.claim(fixture.claimRequest(work, 2, { executing: false }));
    expect(taken).toMatchObject({
      kind: 'granted',
      claim: { attempt: 2, generation: 2 },
      before: { state: 'in_flight' },
    });
    expect(await place.ledger.owns(old)).toBe(false);
    expect(await place.ledger.renew(old, 30_000)).toBe(false);
    expect(await place.ledger.attempts(work.operationId)).toMatchObject([
      { attempt: 1, outcome: 'taken_over' },
      { attempt: 2, executing: false, outcome: null },
    ]);
  });

  test('[S2.4] what may have been sent is taken over to reconcile, whatever was asked for', async () => {
    const work = await fixture.reserved(place.ledger);
    await fixture.claimed(place.ledger, work, 1, { attemptMs: 60_000 });
    const before = await fixture.rowOf(place.ledger, work);
    const next = await fixture.claimed(place.ledger, work, 2, { executing: true, attemptMs: 1 });
    const row = await fixture.rowOf(place.ledger, work);
    expect(row).toMatchObject({ state: 'in_flight', executions: 1, attemptDeadline: before.attemptDeadline });
    expect(await place.ledger.intend(next, { claimMs: 30_000, attemptMs: 90_000 })).toMatchObject({
      kind: 'written',
      row: { state: 'in_flight', executions: 2 },
    });
    const attempts = await place.ledger.attempts(work.operationId);
    expect(attempts.map(({ executing }) => executing)).toEqual([true, true]);
  });

  test('[S2.4] an intent never brings the earlier execution’s deadline forward', async () => {
    const work = await fixture.reserved(place.ledger);
    await fixture.claimed(place.ledger, work, 1, { attemptMs: 60_000 });
    const before = await fixture.rowOf(place.ledger, work);
    const next = await fixture.claimed(place.ledger, work, 2, { executing: false });
    await place.ledger.intend(next, { claimMs: 1_000, attemptMs: 1_000 });
    expect((await fixture.rowOf(place.ledger, work)).attemptDeadline).toBe(before.attemptDeadline);
  });

  test('[S2.3] an applied row is claimed as it is', async () => {
    const work = await fixture.reserved(place.ledger);
    await place.ledger.storeApplied(await fixture.claimed(place.ledger, work), fixture.RESULT, 'executed');
    expect(await place.ledger.claim(fixture.claimRequest(work, 2))).toMatchObject({
      kind: 'granted',
      before: { state: 'applied', result: fixture.RESULT },
    });
    expect(await fixture.rowOf(place.ledger, work)).toMatchObject({
      state: 'applied',
      attempt: 2,
      executions: 1,
    });
  });

  test('[S2.4] a claim to reconcile on a row from which nothing was sent keeps its state, and is given back cleanly', async () => {
    const work = await fixture.reserved(place.ledger);
    const answer = await place.ledger.claim(fixture.claimRequest(work, 1, { executing: false }));
    expect(answer).toMatchObject({ kind: 'granted', before: { state: 'reserved' } });
    expect(await fixture.rowOf(place.ledger, work)).toMatchObject({
      state: 'reserved',
      executions: 0,
      attempt: 1,
    });
    const claim = answer.kind === 'granted' ? answer.claim : expect.unreachable();
    expect(await place.ledger.release(claim, fixture.NOT_SENT)).toMatchObject({
      kind: 'written',
      row: { state: 'released', claimedUntil: null, attemptDeadline: null },
    });
    expect(
      await place.ledger.closeTask({ ...work, attempt: 1, end: fixture.CANCELLED, notes: [] }),
    ).toMatchObject({
      kind: 'closed',
    });
  });

  test('[S2.4] a task that holds a claim without intent can be closed, and the claim is void', async () => {
    const work = await fixture.reserved(place.ledger);
    const claim = await fixture.claimed(place.ledger, work, 1, { executing: false });
    expect(
      await place.ledger.closeTask({ ...work, attempt: 1, end: fixture.CANCELLED, notes: [] }),
    ).toMatchObject({
      kind: 'closed',
      row: { state: 'reserved', end: fixture.CANCELLED },
    });
    expect(await place.ledger.intend(claim, { claimMs: 1_000, attemptMs: 1_000 })).toMatchObject({
      kind: 'stale',
    });
    expect(await place.ledger.owns(claim)).toBe(false);
    expect(await place.ledger.renew(claim, 1_000)).toBe(false);
  });

  test('[S2.5] a released row is claimed anew with intent', async () => {
    const work = await fixture.reserved(place.ledger);
    await place.ledger.release(await fixture.claimed(place.ledger, work), fixture.NOT_SENT);
    expect(await place.ledger.claim(fixture.claimRequest(work, 2))).toMatchObject({
      kind: 'granted',
      before: { state: 'released', failure: fixture.NOT_SENT },
    });
    expect(await fixture.rowOf(place.ledger, work)).toMatchObject({ state: 'in_flight', executions: 2 });
  });

  test('[S2.5] a claim given back can’t be used again', async () => {
    const work = await fixture.reserved(place.ledger);
    const claim = await fixture.claimed(place.ledger, work);
    await place.ledger.release(claim, fixture.NOT_SENT);
    expect(await place.ledger.intend(claim, { claimMs: 1_000, attemptMs: 1_000 })).toMatchObject({
      kind: 'stale',
    });
    expect(await place.ledger.renew(claim, 1_000)).toBe(false);
    const late = await place.ledger.commit(claim, fixture.RESULT, {
      verified: true,
      how: 'executed',
      end: null,
    });
    expect(late).toMatchObject({ kind: 'stale', row: { state: 'released' } });
  });

  test('[S2.3] a heartbeat extends the claim and never shortens it, without an audit entry', async () => {
    const work = await fixture.reserved(place.ledger);
    const claim = await fixture.claimed(place.ledger, work, 1, { claimMs: 5_000 });
    expect(await place.ledger.renew(claim, 60_000)).toBe(true);
    const { claimedUntil } = await fixture.rowOf(place.ledger, work);
    expect(claimedUntil).toBeGreaterThan(claim.claimedUntil);
    expect(await place.ledger.renew(claim, 1)).toBe(true);
    expect((await fixture.rowOf(place.ledger, work)).claimedUntil).toBe(claimedUntil);
    expect(await fixture.auditTypes(place.ledger, work)).toEqual(['operation.reserved', 'operation.claimed']);
  });

  test('[S2.5] a claim that ran out is owned again only once it was renewed before anyone took over', async () => {
    const work = await fixture.reserved(place.ledger);
    const claim = await fixture.claimed(place.ledger, work, 1, { claimMs: 5_000 });
    expect(await place.ledger.owns(claim)).toBe(true);
    await place.pass(5_001);
    expect(await place.ledger.owns(claim)).toBe(false);
    expect(await place.ledger.renew(claim, 5_000)).toBe(true);
    expect(await place.ledger.owns(claim)).toBe(true);
  });

  test('[S2.3] of many equal claims at one moment exactly one is granted', async () => {
    const other = await place.another();
    const work = await fixture.reserved(place.ledger);
    const answers = await Promise.all(
      Array.from({ length: 16 }, (_, index) =>
        (index % 2 ? other : place.ledger).claim(fixture.claimRequest(work, 1)),
      ),
    );
    expect(answers.filter((answer) => answer.kind === 'granted')).toHaveLength(1);
    expect(answers.filter((answer) => answer.kind === 'busy')).toHaveLength(15);
    expect(await fixture.rowOf(place.ledger, work)).toMatchObject({ generation: 1, executions: 1 });
  });

  test('[S2.3] of many attempts at one moment the highest holds the row, and generations never repeat', async () => {
    const other = await place.another();
    const work = await fixture.reserved(place.ledger);
    const numbers = [5, 1, 8, 3, 7, 2, 6, 4];
    const answers = await Promise.all(
      numbers.map((attempt, index) =>
        (index % 2 ? other : place.ledger).claim(fixture.claimRequest(work, attempt)),
      ),
    );
    const generations = answers.flatMap((answer) =>
      answer.kind === 'granted' ? [answer.claim.generation] : [],
    );
    expect(new Set(generations).size).toBe(generations.length);
    expect(await fixture.rowOf(place.ledger, work)).toMatchObject({ attempt: 8, executions: 1 });
  });

  test('[S2.3] no attempt claims what is decided', async () => {
    const decided = {
      committed: async (work: fixture.Work) => {
        const claim = await fixture.claimed(place.ledger, work);
        await place.ledger.commit(claim, fixture.RESULT, { verified: true, how: 'executed', end: null });
      },
      failed: async (work: fixture.Work) => {
        await place.ledger.fail(await fixture.claimed(place.ledger, work), fixture.NOT_SENT, fixture.FAILED);
      },
      attention: async (work: fixture.Work) => {
        const claim = await fixture.claimed(place.ledger, work);
        await place.ledger.raiseAttention(claim, fixture.IN_DOUBT, fixture.alertAbout(work));
      },
      rolling_back: async (work: fixture.Work) => {
        const claim = await fixture.claimed(place.ledger, work);
        await place.ledger.mismatched(
          claim,
          fixture.RESULT,
          'other',
          fixture.alertAbout(work, 'verify_failed'),
        );
      },
      reserved: async (work: fixture.Work) => {
        await place.ledger.closeTask({ ...work, attempt: 1, end: fixture.CANCELLED, notes: [] });
      },
    };
    for (const [state, decide] of Object.entries(decided)) {
      const work = await fixture.reserved(place.ledger);
      await decide(work);
      const answer = await place.ledger.claim(fixture.claimRequest(work, 50));
      expect(answer).toMatchObject({ kind: 'closed', row: { state } });
    }
  });

  test('[S8.5] a clock that steps back shortens no claim', async () => {
    const work = await fixture.reserved(place.ledger);
    const claim = await fixture.claimed(place.ledger, work, 1, { claimMs: 60_000 });
    await place.pass(-50_000);
    expect(await place.ledger.renew(claim, 30_000)).toBe(true);
    expect(await place.ledger.claim(fixture.claimRequest(work, 1))).toMatchObject({ kind: 'busy' });
    await place.pass(50_000);
    expect(await place.ledger.owns(claim)).toBe(true);
  });
});
