// S6.2: a rollback is an operation of its own, and moves with its parent.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rollbackOperationId } from '../../src/contract/ids.ts';
import * as fixture from './ledger-fixture.ts';
import type { Place } from './ledger-fixture.ts';

describe.each(fixture.STORES)('rollbacks on %s', (kind) => {
  let place: Place;
  beforeAll(async () => {
    place = await fixture.openPlace(kind);
  });
  afterAll(() => place.close());

  /** An operation whose effect was not as promised. */
  async function mismatch(): Promise<fixture.Work> {
    const work = await fixture.reserved(place.ledger);
    const claim = await fixture.claimed(place.ledger, work);
    await place.ledger.mismatched(claim, fixture.RESULT, 'no', fixture.alertAbout(work, 'verify_failed'));
    return work;
  }

  const rollbackRow = (work: fixture.Work) =>
    fixture.rowOf(place.ledger, { operationId: rollbackOperationId(work.operationId) });

  test('[S6.2] the rollback gets its own row, with intent, under its own operation id', async () => {
    const work = await mismatch();
    const answer = await place.ledger.claimRollback(fixture.rollbackRequest(work, 2));
    expect(answer).toMatchObject({
      kind: 'granted',
      claim: { operationId: rollbackOperationId(work.operationId), attempt: 2, generation: 1 },
      parent: { state: 'rolling_back', result: fixture.RESULT },
    });
    expect(await rollbackRow(work)).toMatchObject({
      state: 'in_flight',
      parentOperationId: work.operationId,
      taskId: work.taskId,
      executions: 1,
      end: null,
    });
    expect(await place.ledger.findByTask(work.taskId)).toMatchObject({ operationId: work.operationId });
  });

  test('[S6.2] done, it rolls the parent back and records the end of both', async () => {
    const work = await mismatch();
    const claim = await fixture.rollbackClaimed(place.ledger, work, 2);
    const end = fixture.ROLLED_BACK;
    const done = await place.ledger.finishRollback(claim, work.operationId, 'a fee of 2 EUR', end);
    expect(done).toMatchObject({ kind: 'written', row: { state: 'committed' } });
    expect(await fixture.rowOf(place.ledger, work)).toMatchObject({ state: 'rolled_back', end });
    expect(await rollbackRow(work)).toMatchObject({
      result: { kind: 'inline', value: { remains: 'a fee of 2 EUR' } },
      end,
    });
    expect(await place.ledger.finishRollback(claim, work.operationId, null, end)).toMatchObject({
      kind: 'written',
    });
    const again = await place.ledger.claimRollback(fixture.rollbackRequest(work, 3));
    expect(again).toMatchObject({ kind: 'done', row: { state: 'committed' } });
  });

  test('[S7.4] a committed operation whose task still runs can be rolled back', async () => {
    const work = await fixture.reserved(place.ledger);
    const claim = await fixture.claimed(place.ledger, work);
    await place.ledger.commit(claim, fixture.RESULT, { verified: true, how: 'executed', end: null });
    expect(
      await place.ledger.claimRollback(fixture.rollbackRequest(work, 2, { reason: 'cancelled' })),
    ).toMatchObject({ kind: 'granted' });
    expect(await fixture.rowOf(place.ledger, work)).toMatchObject({ state: 'rolling_back', attempt: 2 });
  });

  test('[S6.2] a committed operation whose task has ended can’t', async () => {
    const work = await fixture.reserved(place.ledger);
    const claim = await fixture.claimed(place.ledger, work);
    await place.ledger.commit(claim, fixture.RESULT, {
      verified: true,
      how: 'executed',
      end: fixture.COMPLETED,
    });
    expect(await place.ledger.claimRollback(fixture.rollbackRequest(work, 2))).toMatchObject({
      kind: 'closed',
      row: { state: 'committed' },
    });
  });

  test('[S6.2] released, it is claimed by the next attempt, not by an older one', async () => {
    const work = await mismatch();
    const claim = await fixture.rollbackClaimed(place.ledger, work, 2);
    expect(await place.ledger.releaseRollback(claim, fixture.NOT_SENT)).toMatchObject({
      kind: 'written',
      row: { state: 'released', failure: fixture.NOT_SENT },
    });
    expect(await fixture.rowOf(place.ledger, work)).toMatchObject({ state: 'rolling_back' });
    expect(await place.ledger.claimRollback(fixture.rollbackRequest(work, 1))).toEqual({
      kind: 'stale',
      rowAttempt: 2,
    });
    expect(await place.ledger.claimRollback(fixture.rollbackRequest(work, 3))).toMatchObject({
      kind: 'granted',
      claim: { attempt: 3, generation: 2 },
    });
  });

  test('[S2.3] an equal attempt of a rollback is busy until its claim has passed', async () => {
    const work = await mismatch();
    await fixture.rollbackClaimed(place.ledger, work, 2);
    expect(await place.ledger.claimRollback(fixture.rollbackRequest(work, 2))).toMatchObject({
      kind: 'busy',
    });
    await place.pass(30_001);
    expect(await place.ledger.claimRollback(fixture.rollbackRequest(work, 2))).toMatchObject({
      kind: 'granted',
      claim: { generation: 2 },
    });
  });

  test('[S2.7] what a rollback taken over reports is stale and changes nothing', async () => {
    const work = await mismatch();
    const old = await fixture.rollbackClaimed(place.ledger, work, 2);
    await fixture.rollbackClaimed(place.ledger, work, 3);
    const before = [await fixture.rowOf(place.ledger, work), await rollbackRow(work)];
    const alert = fixture.alertAbout(work, 'rollback_failed');
    for (const answer of [
      await place.ledger.finishRollback(old, work.operationId, null, fixture.ROLLED_BACK),
      await place.ledger.releaseRollback(old, fixture.NOT_SENT),
      await place.ledger.rollbackAttention(old, work.operationId, fixture.IN_DOUBT, alert),
    ]) {
      expect(answer).toMatchObject({ kind: 'stale' });
    }
    expect([await fixture.rowOf(place.ledger, work), await rollbackRow(work)]).toEqual(before);
  });

  test('[S6.2] one that can’t finish puts both rows into attention, with one alert', async () => {
    const work = await mismatch();
    const claim = await fixture.rollbackClaimed(place.ledger, work, 2);
    const alert = fixture.alertAbout(work, 'rollback_failed');
    await place.ledger.rollbackAttention(claim, work.operationId, fixture.IN_DOUBT, alert);
    await place.ledger.rollbackAttention(claim, work.operationId, fixture.IN_DOUBT, alert);
    const about = { state: 'attention', attentionAbout: 'rollback', failure: fixture.IN_DOUBT };
    expect(await fixture.rowOf(place.ledger, work)).toMatchObject(about);
    expect(await rollbackRow(work)).toMatchObject(about);
    expect(await place.ledger.alerts({ tenant: 'acme', taskId: work.taskId })).toMatchObject([
      { type: 'rollback_failed' },
      { type: 'verify_failed' },
    ]);
    expect(await place.ledger.claimRollback(fixture.rollbackRequest(work, 9))).toMatchObject({
      kind: 'closed',
    });
  });

  test.each([
    ['not_applied', 'rolled_back', 'committed'],
    ['applied', 'applied', 'released'],
    ['abandoned', 'abandoned', 'abandoned'],
  ] as const)(
    '[S3.5] resolved as %s, the operation is %s and its rollback %s',
    async (as, state, rollback) => {
      const work = await mismatch();
      const claim = await fixture.rollbackClaimed(place.ledger, work, 2);
      await place.ledger.rollbackAttention(
        claim,
        work.operationId,
        fixture.IN_DOUBT,
        fixture.alertAbout(work),
      );
      const end = as === 'applied' ? null : as === 'abandoned' ? fixture.ABANDONED : fixture.ROLLED_BACK;
      const request = { ...work, attempt: 2, resolution: { as, by: 'eve' }, end, notes: [] };
      expect(await place.ledger.resolve(request)).toMatchObject({ kind: 'written', row: { state, end } });
      expect(await rollbackRow(work)).toMatchObject({ state: rollback, attentionAbout: null });
      expect(await place.ledger.resolve(request)).toMatchObject({ kind: 'notInAttention' });
    },
  );

  test('[S6.2] while a rollback runs the operation’s own attempts can write nothing', async () => {
    const work = await fixture.reserved(place.ledger);
    const claim = await fixture.claimed(place.ledger, work, 1);
    await place.ledger.commit(claim, fixture.RESULT, { verified: true, how: 'executed', end: null });
    await fixture.rollbackClaimed(place.ledger, work, 2);
    const alert = fixture.alertAbout(work);
    expect(await place.ledger.raiseAttention(claim, fixture.IN_DOUBT, alert)).toMatchObject({
      kind: 'stale',
    });
    expect(await place.ledger.claim(fixture.claimRequest(work, 5))).toMatchObject({ kind: 'closed' });
    expect(
      await place.ledger.closeTask({ ...work, attempt: 9, end: fixture.CANCELLED, notes: [] }),
    ).toMatchObject({
      kind: 'inFlight',
    });
  });

  test('[S6.2] a rollback claimed by the very attempt that found the mismatch voids that attempt’s claim', async () => {
    const work = await fixture.reserved(place.ledger);
    const claim = await fixture.claimed(place.ledger, work, 1);
    const alert = fixture.alertAbout(work, 'verify_failed');
    await place.ledger.mismatched(claim, fixture.RESULT, 'no', alert);
    await fixture.rollbackClaimed(place.ledger, work, 1);
    expect(await place.ledger.raiseAttention(claim, fixture.IN_DOUBT, alert)).toMatchObject({
      kind: 'stale',
    });
    expect(await place.ledger.mismatched(claim, fixture.RESULT, 'no', alert)).toMatchObject({
      kind: 'stale',
    });
  });

  test('[S3.8] a recovered task takes the rollback over, and the old one can’t finish it', async () => {
    const work = await mismatch();
    const old = await fixture.rollbackClaimed(place.ledger, work, 7);
    const recovered = await place.ledger.recover(work.operationId, work.taskId);
    expect(recovered).toMatchObject({
      kind: 'recovery',
      row: { state: 'rolling_back', ordinal: 2, attempt: 0 },
    });
    expect(await place.ledger.finishRollback(old, work.operationId, null, fixture.ROLLED_BACK)).toMatchObject(
      { kind: 'stale' },
    );
    const next = { ...work, taskId: recovered.row.taskId, ordinal: 2 };
    expect(await place.ledger.claimRollback(fixture.rollbackRequest(next, 1))).toMatchObject({
      kind: 'granted',
      claim: { ordinal: 2, attempt: 1, taskId: recovered.row.taskId },
    });
  });
});
