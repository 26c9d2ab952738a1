// S3.5, S3.8, interfaces.md "Closing": how a task's hold on its operation ends.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { taskIdOf } from '../../src/contract/ids.ts';
import * as fixture from './ledger-fixture.ts';
import type { Place } from './ledger-fixture.ts';

describe.each(fixture.STORES)('ends on %s', (kind) => {
  let place: Place;
  beforeAll(async () => {
    place = await fixture.openPlace(kind);
  });
  afterAll(() => place.close());

  const close = (work: fixture.Work, attempt: number) =>
    place.ledger.closeTask({ ...work, attempt, end: fixture.CANCELLED, notes: [] });

  test('[S3.8] closing raises the fence beyond every attempt the task scheduled', async () => {
    const work = await fixture.reserved(place.ledger);
    expect(await close(work, 4)).toMatchObject({
      kind: 'closed',
      row: { state: 'reserved', end: fixture.CANCELLED },
    });
    expect(await place.ledger.claim(fixture.claimRequest(work, 4))).toMatchObject({
      kind: 'stale',
      superseded: false,
    });
    expect(await place.ledger.claim(fixture.claimRequest(work, 99))).toMatchObject({ kind: 'closed' });
    expect(
      await place.ledger.refuse({ ...work, attempt: 99, notes: [] }, 'no', fixture.REFUSED),
    ).toMatchObject({
      kind: 'stale',
    });
  });

  test('[S3.8] closing twice keeps the first end and changes nothing', async () => {
    const work = await fixture.reserved(place.ledger);
    await close(work, 1);
    const before = await fixture.rowOf(place.ledger, work);
    const again = await place.ledger.closeTask({ ...work, attempt: 7, end: fixture.FAILED, notes: [] });
    expect(again).toEqual({ kind: 'closed', row: before });
  });

  test('[S3.8] what is in doubt is not closed', async () => {
    const flying = await fixture.reserved(place.ledger);
    await fixture.claimed(place.ledger, flying);
    const applied = await fixture.reserved(place.ledger);
    await place.ledger.storeApplied(await fixture.claimed(place.ledger, applied), fixture.RESULT, 'executed');
    for (const work of [flying, applied]) {
      const before = await fixture.rowOf(place.ledger, work);
      expect(await close(work, 9)).toEqual({ kind: 'inFlight', row: before });
      expect(await fixture.rowOf(place.ledger, work)).toEqual(before);
    }
  });

  test('[S3.8] a task that closes meets its own commit', async () => {
    const work = await fixture.reserved(place.ledger);
    const claim = await fixture.claimed(place.ledger, work);
    await place.ledger.commit(claim, fixture.RESULT, { verified: true, how: 'executed', end: null });
    expect(await close(work, 9)).toMatchObject({
      kind: 'committed',
      row: { result: fixture.RESULT, end: null },
    });
  });

  describe('resolved by a person', () => {
    async function inAttention(attempt = 1): Promise<fixture.Work> {
      const work = await fixture.reserved(place.ledger);
      const claim = await fixture.claimed(place.ledger, work, attempt);
      await place.ledger.raiseAttention(claim, fixture.IN_DOUBT, fixture.alertAbout(work));
      return work;
    }

    test('[S3.5] as applied with its result, the operation is applied and goes on to verify', async () => {
      const work = await inAttention();
      const resolution = { as: 'applied', by: 'eve', note: 'seen it', result: fixture.RESULT } as const;
      expect(
        await place.ledger.resolve({ ...work, attempt: 1, resolution, end: null, notes: [] }),
      ).toMatchObject({
        kind: 'written',
        row: { state: 'applied', result: fixture.RESULT, attentionAbout: null },
      });
      const claim = await fixture.claimed(place.ledger, work, 2, { executing: false });
      expect(
        await place.ledger.commit(claim, fixture.RESULT, {
          verified: true,
          how: 'looked_up',
          end: fixture.COMPLETED,
        }),
      ).toMatchObject({ kind: 'written' });
    });

    test('[S3.5] as not applied, the fence moves and the operation may be tried again', async () => {
      const work = await inAttention(3);
      const resolution = { as: 'not_applied', by: 'eve' } as const;
      expect(
        await place.ledger.resolve({ ...work, attempt: 3, resolution, end: null, notes: [] }),
      ).toMatchObject({
        kind: 'written',
        row: { state: 'released', attempt: 4, end: null },
      });
      expect(await place.ledger.claim(fixture.claimRequest(work, 3))).toMatchObject({
        kind: 'stale',
        rowAttempt: 4,
      });
      expect(await place.ledger.claim(fixture.claimRequest(work, 4))).toMatchObject({ kind: 'granted' });
    });

    test('[S3.5] as not applied past the deadline, the task ends with effect none and the key is free', async () => {
      const work = await inAttention();
      const resolution = { as: 'not_applied', by: 'eve' } as const;
      await place.ledger.resolve({ ...work, attempt: 1, resolution, end: fixture.CANCELLED, notes: [] });
      const row = await fixture.rowOf(place.ledger, work);
      expect(row).toMatchObject({ state: 'released', end: fixture.CANCELLED });
      const request = fixture.reservation(row.key, { fingerprint: row.fingerprint });
      expect(await place.ledger.reserve(request)).toMatchObject({ kind: 'fresh', ordinal: 2 });
    });

    test('[S3.5] as abandoned, the key is spent', async () => {
      const work = await inAttention();
      const resolution = { as: 'abandoned', by: 'eve', note: 'gave up' } as const;
      await place.ledger.resolve({ ...work, attempt: 1, resolution, end: fixture.ABANDONED, notes: [] });
      const row = await fixture.rowOf(place.ledger, work);
      expect(row).toMatchObject({ state: 'abandoned', end: fixture.ABANDONED });
      expect(await place.ledger.reserve(fixture.reservation(row.key))).toMatchObject({ kind: 'ended' });
    });

    test('[S10.4] the audit says who resolved it, and as what', async () => {
      const work = await inAttention();
      const resolution = { as: 'abandoned', by: 'eve', note: 'gave up' } as const;
      await place.ledger.resolve({ ...work, attempt: 1, resolution, end: fixture.ABANDONED, notes: [] });
      const entries = await place.ledger.audit(work);
      expect(entries.at(-1)).toMatchObject({
        type: 'operation.resolved',
        data: { as: 'abandoned', person: 'eve', note: 'gave up', from: 'attention', to: 'abandoned' },
      });
    });

    test('[S3.5] nothing else can be resolved, and nothing changes', async () => {
      const work = await fixture.reserved(place.ledger);
      const before = await fixture.rowOf(place.ledger, work);
      const resolution = { as: 'not_applied', by: 'eve' } as const;
      expect(await place.ledger.resolve({ ...work, attempt: 1, resolution, end: null, notes: [] })).toEqual({
        kind: 'notInAttention',
        row: before,
      });
    });
  });

  describe('after the engine closed the task', () => {
    test('[S3.8] nothing sent: it failed with effect none', async () => {
      const work = await fixture.reserved(place.ledger);
      expect(await place.ledger.recover(work.operationId, work.taskId)).toMatchObject({
        kind: 'ended',
        row: { state: 'reserved', end: { status: 'failed', effect: 'none', cause: 'engine_closed' } },
      });
      expect(await place.ledger.claim(fixture.claimRequest(work, 1))).toMatchObject({ kind: 'closed' });
    });

    test('[S3.8] in doubt: the next ordinal, once, whoever asks how often', async () => {
      const work = await fixture.reserved(place.ledger);
      const old = await fixture.claimed(place.ledger, work, 5, { attemptMs: 60_000 });
      const before = await fixture.rowOf(place.ledger, work);
      const other = await place.another();
      const answers = await Promise.all(
        [place.ledger, other, place.ledger, other].map((ledger) =>
          ledger.recover(work.operationId, work.taskId),
        ),
      );
      const taskId = taskIdOf(work.operationId, 2);
      for (const answer of answers) {
        expect(answer).toMatchObject({
          kind: 'recovery',
          row: { taskId, ordinal: 2, attempt: 0, state: 'in_flight' },
        });
      }
      const row = await fixture.rowOf(place.ledger, work);
      expect(row.attemptDeadline).toBe(before.attemptDeadline);
      expect(row.generation).toBe(before.generation + 1);
      expect(await place.ledger.owns(old)).toBe(false);
      expect(
        await place.ledger.claim(
          fixture.claimRequest({ ...work, taskId, ordinal: 2 }, 1, { executing: false }),
        ),
      ).toMatchObject({ kind: 'granted', before: { state: 'in_flight' } });
      expect(await fixture.auditTypes(place.ledger, work)).toEqual([
        'operation.reserved',
        'operation.claimed',
        'operation.left',
      ]);
      expect(await fixture.auditTypes(place.ledger, { taskId })).toEqual([
        'operation.recovered',
        'operation.claimed',
      ]);
    });

    test('[S3.8] committed without an end: it completed', async () => {
      const work = await fixture.reserved(place.ledger);
      const claim = await fixture.claimed(place.ledger, work);
      await place.ledger.commit(claim, fixture.RESULT, { verified: true, how: 'executed', end: null });
      expect(await place.ledger.recover(work.operationId, work.taskId)).toMatchObject({
        kind: 'ended',
        row: { state: 'committed', end: { status: 'completed', effect: 'applied' } },
      });
    });
  });

  test('[S7.4] the end of a committed task is recorded once, and of no other', async () => {
    const work = await fixture.reserved(place.ledger);
    const claim = await fixture.claimed(place.ledger, work);
    await place.ledger.recordEnd(work.taskId, fixture.COMPLETED);
    expect(await fixture.rowOf(place.ledger, work)).toMatchObject({ end: null });
    await place.ledger.commit(claim, fixture.RESULT, { verified: true, how: 'executed', end: null });
    await place.ledger.recordEnd(work.taskId, { ...fixture.COMPLETED, cancelRequested: true });
    await place.ledger.recordEnd(work.taskId, fixture.COMPLETED);
    expect(await fixture.rowOf(place.ledger, work)).toMatchObject({ end: { cancelRequested: true } });
    expect((await fixture.auditTypes(place.ledger, work)).at(-1)).toBe('operation.ended');
  });
});
