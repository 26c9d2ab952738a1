// S2.2, S2.5 to S2.7, S2.9: what the holder of a claim reports.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Json } from '../../src/task/json.ts';
import type { StoredResult, TaskEnd } from '../../src/task/outcome.ts';
import * as fixture from './ledger-fixture.ts';
import type { Place } from './ledger-fixture.ts';

const COMMIT = { verified: true, how: 'executed', end: fixture.COMPLETED } as const;

describe.each(fixture.STORES)('reports on %s', (kind) => {
  let place: Place;
  beforeAll(async () => {
    place = await fixture.openPlace(kind);
  });
  afterAll(() => place.close());

  test('[S2.7] a commit keeps the result, records the end and ends the claim', async () => {
    const work = await fixture.reserved(place.ledger);
    const claim = await fixture.claimed(place.ledger, work);
    expect(await place.ledger.commit(claim, fixture.RESULT, COMMIT)).toMatchObject({ kind: 'written' });
    expect(await fixture.rowOf(place.ledger, work)).toMatchObject({
      state: 'committed',
      result: fixture.RESULT,
      end: fixture.COMPLETED,
      claimedUntil: null,
      attemptDeadline: null,
    });
    expect(await place.ledger.attempts(work.operationId)).toMatchObject([{ outcome: 'committed' }]);
    expect(await fixture.auditTypes(place.ledger, work)).toEqual([
      'operation.reserved',
      'operation.claimed',
      'operation.committed',
    ]);
  });

  test('[S2.7] a report under an older claim is stale and changes nothing', async () => {
    const work = await fixture.reserved(place.ledger);
    const old = await fixture.claimed(place.ledger, work, 1);
    await fixture.claimed(place.ledger, work, 2);
    const before = await fixture.rowOf(place.ledger, work);
    const audit = await place.ledger.audit(work);
    const { ledger } = place;
    const alert = fixture.alertAbout(work);
    for (const answer of [
      await ledger.commit(old, fixture.RESULT, COMMIT),
      await ledger.storeApplied(old, fixture.RESULT, 'executed'),
      await ledger.release(old, fixture.NOT_SENT),
      await ledger.fail(old, fixture.NOT_SENT, fixture.FAILED),
      await ledger.refuse({ claim: old }, 'no', fixture.REFUSED),
      await ledger.mismatched(old, fixture.RESULT, 'no', alert),
      await ledger.raiseAttention(old, fixture.IN_DOUBT, alert),
      await ledger.intend(old, { claimMs: 1_000, attemptMs: 1_000 }),
    ]) {
      expect(answer).toEqual({ kind: 'stale', row: before });
    }
    expect(await fixture.rowOf(ledger, work)).toEqual(before);
    expect(await ledger.audit(work)).toEqual(audit);
    expect(await ledger.alerts({ tenant: 'acme', taskId: work.taskId })).toEqual([]);
  });

  test('[S2.7] the same report again, its answer lost, is written and changes nothing', async () => {
    const { ledger } = place;
    const reports = {
      committed: (claim: Parameters<typeof ledger.commit>[0]) => ledger.commit(claim, fixture.RESULT, COMMIT),
      applied: (claim: Parameters<typeof ledger.commit>[0]) =>
        ledger.storeApplied(claim, fixture.RESULT, 'executed'),
      released: (claim: Parameters<typeof ledger.commit>[0]) => ledger.release(claim, fixture.NOT_SENT),
      refused: (claim: Parameters<typeof ledger.commit>[0]) =>
        ledger.refuse({ claim }, 'no', fixture.REFUSED),
      failed: (claim: Parameters<typeof ledger.commit>[0]) =>
        ledger.fail(claim, fixture.NOT_SENT, fixture.FAILED),
    };
    for (const [state, report] of Object.entries(reports)) {
      const work = await fixture.reserved(ledger);
      const claim = await fixture.claimed(ledger, work);
      await report(claim);
      const row = await fixture.rowOf(ledger, work);
      const audit = await ledger.audit(work);
      expect(await report(claim)).toEqual({ kind: 'written', row });
      expect(row.state).toBe(state);
      expect(await ledger.audit(work)).toEqual(audit);
    }
  });

  test('[S2.6] applied keeps the result until it is verified, and a later attempt commits it', async () => {
    const work = await fixture.reserved(place.ledger);
    await place.ledger.storeApplied(await fixture.claimed(place.ledger, work), fixture.RESULT, 'executed');
    expect(await fixture.rowOf(place.ledger, work)).toMatchObject({
      state: 'applied',
      result: fixture.RESULT,
    });
    const next = await fixture.claimed(place.ledger, work, 2, { executing: false });
    await place.ledger.commit(next, fixture.RESULT, { ...COMMIT, how: 'looked_up' });
    expect(await fixture.rowOf(place.ledger, work)).toMatchObject({ state: 'committed', executions: 1 });
  });

  test('[S2.2] a false precondition refuses without a claim, and the key may be used again', async () => {
    const work = await fixture.reserved(place.ledger);
    const answer = await place.ledger.refuse(
      { ...work, attempt: 1, notes: [] },
      'out of stock',
      fixture.REFUSED,
    );
    expect(answer).toMatchObject({
      kind: 'written',
      row: {
        state: 'refused',
        attempt: 1,
        executions: 0,
        end: fixture.REFUSED,
        failure: { code: 'precondition_failed', message: 'out of stock' },
      },
    });
    expect(await place.ledger.attempts(work.operationId)).toMatchObject([{ attempt: 1, outcome: 'refused' }]);
  });

  test('[S2.2] a refusal without a claim yields to a claim that runs', async () => {
    const work = await fixture.reserved(place.ledger);
    await fixture.claimed(place.ledger, work, 2, { executing: false });
    for (const attempt of [1, 2]) {
      const answer = await place.ledger.refuse({ ...work, attempt, notes: [] }, 'no', fixture.REFUSED);
      expect(answer).toMatchObject({ kind: 'stale', row: { state: 'reserved' } });
    }
    const later = await place.ledger.refuse({ ...work, attempt: 3, notes: [] }, 'no', fixture.REFUSED);
    expect(later).toMatchObject({ kind: 'written' });
  });

  test('[S2.2] what was sent is refused only under a claim of one’s own', async () => {
    const work = await fixture.reserved(place.ledger);
    await fixture.claimed(place.ledger, work, 1);
    expect(
      await place.ledger.refuse({ ...work, attempt: 9, notes: [] }, 'no', fixture.REFUSED),
    ).toMatchObject({
      kind: 'stale',
      row: { state: 'in_flight' },
    });
    const claim = await fixture.claimed(place.ledger, work, 2, { executing: false });
    expect(await place.ledger.refuse({ claim }, 'no', fixture.REFUSED)).toMatchObject({
      kind: 'written',
      row: { state: 'refused' },
    });
  });

  test('[S6.5] a mismatch and its alert are one transaction', async () => {
    const work = await fixture.reserved(place.ledger);
    const claim = await fixture.claimed(place.ledger, work);
    await place.ledger.mismatched(
      claim,
      fixture.RESULT,
      'stock was 3',
      fixture.alertAbout(work, 'verify_failed'),
    );
    expect(await fixture.rowOf(place.ledger, work)).toMatchObject({
      state: 'rolling_back',
      result: fixture.RESULT,
      failure: { code: 'verify_failed', message: 'stock was 3' },
    });
    expect(await place.ledger.alerts({ tenant: 'acme', taskId: work.taskId })).toMatchObject([
      { type: 'verify_failed', message: 'a person should look', sentAt: null },
    ]);
  });

  test('[S3.5] attention says whether it is about the effect or about the rollback', async () => {
    const effect = await fixture.reserved(place.ledger);
    const claim = await fixture.claimed(place.ledger, effect);
    await place.ledger.raiseAttention(claim, fixture.IN_DOUBT, fixture.alertAbout(effect), fixture.RESULT);
    expect(await fixture.rowOf(place.ledger, effect)).toMatchObject({
      state: 'attention',
      attentionAbout: 'effect',
      result: fixture.RESULT,
      failure: fixture.IN_DOUBT,
    });
    const rollback = await fixture.reserved(place.ledger);
    const other = await fixture.claimed(place.ledger, rollback);
    await place.ledger.mismatched(other, fixture.RESULT, 'no', fixture.alertAbout(rollback));
    await place.ledger.raiseAttention(other, fixture.IN_DOUBT, fixture.alertAbout(rollback));
    expect(await fixture.rowOf(place.ledger, rollback)).toMatchObject({
      state: 'attention',
      attentionAbout: 'rollback',
    });
  });

  test('[S2.7] a late outcome is kept, and alerts only if another execution may have had an effect', async () => {
    const { ledger } = place;
    const outcome = { kind: 'executed', result: { reservationId: 'r-1' } };

    const once = await fixture.reserved(ledger);
    const lonely = await fixture.claimed(ledger, once, 1);
    await fixture.claimed(ledger, once, 2, { executing: false });
    await ledger.recordLate(lonely, outcome, fixture.alertAbout(once, 'possible_duplicate'));
    expect(await fixture.rowOf(ledger, once)).toMatchObject({
      state: 'in_flight',
      lateOutcome: outcome,
      result: null,
    });
    expect(await ledger.alerts({ tenant: 'acme', taskId: once.taskId })).toEqual([]);

    const twice = await fixture.reserved(ledger);
    const first = await fixture.claimed(ledger, twice, 1);
    const second = await fixture.claimed(ledger, twice, 2, { executing: false });
    await ledger.intend(second, { claimMs: 30_000, attemptMs: 10_000 });
    await ledger.commit(second, fixture.RESULT, COMMIT);
    for (let times = 0; times < 2; times += 1) {
      await ledger.recordLate(first, outcome, fixture.alertAbout(twice, 'possible_duplicate'));
    }
    expect(await fixture.rowOf(ledger, twice)).toMatchObject({
      state: 'committed',
      result: fixture.RESULT,
      lateOutcome: outcome,
    });
    expect(await ledger.alerts({ tenant: 'acme', taskId: twice.taskId })).toMatchObject([
      { type: 'possible_duplicate' },
    ]);
    expect(await fixture.auditTypes(ledger, twice)).toEqual([
      'operation.reserved',
      'operation.claimed',
      'operation.claimed',
      'operation.intended',
      'operation.committed',
      'operation.late_outcome',
    ]);
  });

  describe('the outcome of an attempt in doubt, reported after a person was asked', () => {
    const LATE = { kind: 'applied', result: fixture.RESULT as unknown as Json } as const;
    const NOT_APPLIED = { as: 'not_applied', by: 'eve' } as const;
    let keys = 0;
    async function inAttention() {
      const { ledger } = place;
      const asked = { effect: 'unsafe', key: `late-${kind}-${(keys += 1)}` } as const;
      const work = await fixture.reserved(ledger, asked);
      const claim = await fixture.claimed(ledger, work);
      await ledger.raiseAttention(claim, fixture.IN_DOUBT, fixture.alertAbout(work));
      const late = (outcome: Json) =>
        ledger.recordLate(claim, outcome, fixture.alertAbout(work, 'possible_duplicate'));
      const deny = (end: TaskEnd | null = null) =>
        ledger.resolve({ ...work, attempt: 1, resolution: NOT_APPLIED, end, notes: [] });
      const alerts = async () =>
        (await ledger.alerts({ tenant: 'acme', taskId: work.taskId })).map(({ type, message }) => [
          type,
          message,
        ]);
      const again = () => ledger.reserve(fixture.reservation(asked.key, asked));
      return { work, late, deny, alerts, again };
    }
    const TOOK_PLACE = ['needs_attention', expect.stringContaining('the effect took place')];
    const ASKED = ['needs_attention', 'a person should look'];

    test('[S2.7] [S6.5] alerts, is in the audit without its value, and can not be denied', async () => {
      const { work, late, deny, alerts } = await inAttention();
      await late(LATE);
      await late(LATE);
      expect(await alerts()).toEqual([TOOK_PLACE, ASKED]);
      const entry = (await place.ledger.audit(work)).at(-1);
      expect(entry).toMatchObject({
        type: 'operation.late_outcome',
        data: {
          outcome: { kind: 'applied', result: { kind: 'inline', sha256: expect.any(String) as string } },
        },
      });
      expect(JSON.stringify(entry)).not.toContain('r-1');
      expect(await deny()).toMatchObject({ kind: 'contradicted', row: { state: 'attention' } });
      expect(await deny(fixture.CANCELLED)).toMatchObject({ kind: 'contradicted', row: { end: null } });
      const resolution = { as: 'applied', by: 'eve', result: fixture.RESULT } as const;
      const applied = await place.ledger.resolve({ ...work, attempt: 1, resolution, end: null, notes: [] });
      expect(applied).toMatchObject({ kind: 'written', row: { state: 'applied' } });
    });

    test('[S2.7] of a denied effect that took place, a person is asked again before it is sent again', async () => {
      const { work, late, deny, alerts } = await inAttention();
      expect(await deny()).toMatchObject({ kind: 'written', row: { state: 'released' } });
      await late(LATE);
      expect(await alerts()).toEqual([TOOK_PLACE, ASKED]);
      expect(await fixture.rowOf(place.ledger, work)).toMatchObject({
        ...{ state: 'attention', attentionAbout: 'effect', lateOutcome: LATE },
      });
      expect(await place.ledger.claim(fixture.claimRequest(work, 9))).toMatchObject({ kind: 'closed' });
    });

    test('[S2.7] after the end it changes nothing and is told', async () => {
      const { work, late, deny, alerts } = await inAttention();
      await deny(fixture.CANCELLED);
      await late(LATE);
      expect(await alerts()).toEqual([TOOK_PLACE, ASKED]);
      expect(await fixture.rowOf(place.ledger, work)).toMatchObject({
        ...{ state: 'released', end: fixture.CANCELLED },
      });
    });

    test('[S2.7] [S1.6] after the end its key begins nothing anew: nobody would dedupe a second effect', async () => {
      const { work, late, deny, again } = await inAttention();
      await deny(fixture.CANCELLED);
      await late(LATE);
      expect(await again()).toMatchObject({ kind: 'ended', row: { end: fixture.CANCELLED, ordinal: 1 } });
      expect(await fixture.rowOf(place.ledger, work)).toMatchObject({ lateOutcome: LATE });
    });

    test('[S2.7] [S6.5] under a key that was called again meanwhile it is told before that is sent', async () => {
      const { late, deny, alerts, again } = await inAttention();
      await deny(fixture.CANCELLED);
      expect(await again()).toMatchObject({ kind: 'fresh', ordinal: 2 });
      await late(LATE);
      expect(await alerts()).toEqual([TOOK_PLACE, ASKED]);
    });

    test('[S2.7] a failure proves nothing, is told, and may be denied', async () => {
      const { late, deny, alerts } = await inAttention();
      await late({ kind: 'failed', failure: fixture.IN_DOUBT as unknown as Json });
      expect((await alerts()).map(([type]) => type)).toEqual(['needs_attention', 'needs_attention']);
      expect(await deny()).toMatchObject({ kind: 'written' });
    });
  });

  test('[S2.7] an execution that provably applied nothing makes no duplicate', async () => {
    const { ledger } = place;
    const work = await fixture.reserved(ledger);
    await ledger.release(await fixture.claimed(ledger, work, 1), fixture.NOT_SENT);
    const second = await fixture.claimed(ledger, work, 2);
    await fixture.claimed(ledger, work, 3, { executing: false });
    await ledger.recordLate(second, { kind: 'executed' }, fixture.alertAbout(work, 'possible_duplicate'));
    expect(await ledger.alerts({ tenant: 'acme', taskId: work.taskId })).toEqual([]);
  });

  test('[S2.9] whoever changes what he gave or got changes nothing stored', async () => {
    const { ledger } = place;
    const work = await fixture.reserved(ledger);
    const claim = await fixture.claimed(ledger, work);
    const result: StoredResult = { kind: 'inline', value: { list: [1, 2, 3] } };
    const written = await ledger.commit(claim, result, COMMIT);
    (result.value as { list: number[] }).list.push(4);
    const got = written.row.result as unknown as { value: { list: number[] } };
    got.value.list.push(5);
    got.value.list[0] = 99;
    const first = await fixture.rowOf(ledger, work);
    expect(first.result).toEqual({ kind: 'inline', value: { list: [1, 2, 3] } });
    (first.result as unknown as { value: { list: number[] } }).value.list.length = 0;
    Object.assign(first.end as object, { status: 'failed' });
    expect(await fixture.rowOf(ledger, work)).toMatchObject({
      result: { value: { list: [1, 2, 3] } },
      end: fixture.COMPLETED,
    });
  });

  test('[S1.4] odd but valid JSON survives the round trip', async () => {
    const { ledger } = place;
    const value = JSON.parse(
      '{"__proto__":{"x":1},"a\\u0000b":"\\u0000","😀":"\\ud83d\\ude00","z":1e-7,"n":null,"deep":[[[[]]]],"\\uffff":9007199254740991}',
    ) as StoredResult extends { value: infer V } ? V : never;
    const work = await fixture.reserved(ledger, { arguments: value });
    const claim = await fixture.claimed(ledger, work);
    await ledger.commit(claim, { kind: 'inline', value }, COMMIT);
    const row = await fixture.rowOf(ledger, work);
    expect(JSON.stringify((row.result as { value: object }).value)).toBe(JSON.stringify(sorted(value)));
    expect(JSON.stringify(row.arguments)).toBe(JSON.stringify(sorted(value)));
    expect(Object.hasOwn(row.arguments as object, '__proto__')).toBe(true);
    expect(await ledger.verifyAudit(work)).toMatchObject({ ok: true });
  });

  test('[S2.2] a reason as long as a novel is cut', async () => {
    const work = await fixture.reserved(place.ledger);
    await place.ledger.refuse({ ...work, attempt: 1, notes: [] }, 'x'.repeat(100_000), fixture.REFUSED);
    expect((await fixture.rowOf(place.ledger, work)).failure?.message).toHaveLength(2_000);
  });
});

/** As RFC 8785 orders an object's members. */
const sorted = (value: object): object =>
  JSON.parse(
    `{${Object.keys(value)
      .sort()
      .map((key) => `${JSON.stringify(key)}:${JSON.stringify((value as Record<string, unknown>)[key])}`)
      .join(',')}}`,
  ) as object;
