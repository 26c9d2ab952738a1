// S8.3: what is written under a lease, once a newer fence of its resource was seen.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Claim, HeldLease } from '../../src/task/claim.ts';
import type { Written } from '../../src/ledger/ledger.ts';
import * as fixture from './ledger-fixture.ts';
import type { Place } from './ledger-fixture.ts';

let drawn = 0;
function resource(): (fence: number) => HeldLease {
  drawn += 1;
  const id = `lease_${process.pid}_${drawn}`;
  return (fence) => ({ id, resource: 'printer', fence });
}

describe.each(fixture.STORES)('writes under a lease on %s', (kind) => {
  let place: Place;
  beforeAll(async () => {
    place = await fixture.openPlace(kind);
  });
  afterAll(() => place.close());

  async function claimedUnder(lease: HeldLease): Promise<Claim> {
    const work = await fixture.reserved(place.ledger);
    const answer = await place.ledger.claim({ ...fixture.claimRequest(work, 1), lease });
    if (answer.kind !== 'granted') throw new Error(answer.kind);
    expect(answer.claim.lease).toEqual(lease);
    return answer.claim;
  }

  const chainOf = async ({ taskId }: { taskId: string }) => (await place.ledger.audit({ taskId })).length;

  test('[S8.3] a claim under an older fence is stale, learns the newest, and changes nothing', async () => {
    const under = resource();
    await claimedUnder(under(20));
    const work = await fixture.reserved(place.ledger);
    const before = await fixture.rowOf(place.ledger, work);
    const request = { ...fixture.claimRequest(work, 1), lease: under(19) };
    expect(await place.ledger.claim(request)).toEqual({
      kind: 'stale',
      rowAttempt: 0,
      superseded: false,
      leaseFence: 20,
    });
    expect(await fixture.rowOf(place.ledger, work)).toEqual(before);
    expect(await place.ledger.attempts(work.operationId)).toEqual([]);
    expect(await place.ledger.claim({ ...request, lease: under(20) })).toMatchObject({ kind: 'granted' });
    const entries = await place.ledger.audit({ taskId: work.taskId });
    expect(entries.at(-1)?.data).toMatchObject({ lease: { resource: 'printer', fence: 20 } });
  });

  const alert = (claim: Claim) => fixture.alertAbout(claim);
  const writes: Record<string, (claim: Claim) => Promise<Written>> = {
    intend: (claim) => place.ledger.intend(claim, { claimMs: 1_000, attemptMs: 1_000 }),
    release: (claim) => place.ledger.release(claim, fixture.NOT_SENT),
    fail: (claim) => place.ledger.fail(claim, fixture.NOT_SENT, fixture.COMPLETED),
    storeApplied: (claim) => place.ledger.storeApplied(claim, fixture.RESULT, 'executed'),
    commit: (claim) =>
      place.ledger.commit(claim, fixture.RESULT, { verified: true, how: 'executed', end: null }),
    mismatched: (claim) => place.ledger.mismatched(claim, fixture.RESULT, 'no', alert(claim)),
    raiseAttention: (claim) => place.ledger.raiseAttention(claim, fixture.IN_DOUBT, alert(claim)),
    refuse: (claim) => place.ledger.refuse({ claim }, 'no', fixture.COMPLETED),
  };

  test.each(Object.keys(writes))(
    '[S8.3] [case 34] %s by a holder that was paused past its lease is refused by token, though the owner is the same',
    async (name) => {
      const under = resource();
      const claim = await claimedUnder(under(7));
      const write = writes[name] as (claim: Claim) => Promise<Written>;
      const before = await fixture.rowOf(place.ledger, claim);
      const entries = await chainOf(claim);
      await place.ledger.advanceFence(under(8).id, 8);
      expect(await write(claim)).toMatchObject({ kind: 'stale', leaseFence: 8 });
      expect(await fixture.rowOf(place.ledger, claim)).toEqual(before);
      expect(await chainOf(claim)).toBe(entries);
      expect(await place.ledger.owns(claim)).toBe(false);
      expect(await place.ledger.renew(claim, 1_000)).toBe(false);
      expect((await write({ ...claim, lease: under(8) })).kind).toBe('written');
    },
  );

  test('[S8.3] a refusal without a claim, and a rollback, need the newest fence too', async () => {
    const under = resource();
    const claim = await claimedUnder(under(3));
    await place.ledger.storeApplied(claim, fixture.RESULT, 'executed');
    await place.ledger.advanceFence(under(4).id, 4);
    const work = await fixture.reserved(place.ledger);
    const refusal = { ...work, attempt: 1, notes: [], lease: under(3) };
    expect(await place.ledger.refuse(refusal, 'no', fixture.COMPLETED)).toMatchObject({
      kind: 'stale',
      leaseFence: 4,
    });
    const request = fixture.rollbackRequest(claim, 2);
    expect(await place.ledger.claimRollback({ ...request, lease: under(3) })).toMatchObject({
      kind: 'stale',
      leaseFence: 4,
    });
    const granted = await place.ledger.claimRollback({ ...request, lease: under(4) });
    if (granted.kind !== 'granted') throw new Error(granted.kind);
    await place.ledger.advanceFence(under(5).id, 5);
    const { operationId } = claim;
    const stale = { kind: 'stale', leaseFence: 5 };
    expect(
      await place.ledger.finishRollback(granted.claim, operationId, null, fixture.COMPLETED),
    ).toMatchObject(stale);
    expect(await place.ledger.releaseRollback(granted.claim, fixture.NOT_SENT)).toMatchObject(stale);
    expect(
      await place.ledger.rollbackAttention(granted.claim, operationId, fixture.IN_DOUBT, alert(claim)),
    ).toMatchObject(stale);
  });

  test('[S8.3] a cancel’s close and a person’s word need no fence', async () => {
    const under = resource();
    const claim = await claimedUnder(under(3));
    await place.ledger.raiseAttention(claim, fixture.IN_DOUBT, alert(claim));
    await place.ledger.advanceFence(under(4).id, 4);
    const { operationId, taskId, ordinal } = claim;
    const resolution = { as: 'not_applied', by: 'eve' } as const;
    expect(
      await place.ledger.resolve({
        operationId,
        taskId,
        ordinal,
        attempt: 1,
        resolution,
        end: null,
        notes: [],
      }),
    ).toMatchObject({ kind: 'written' });
    expect(
      await place.ledger.closeTask({
        operationId,
        taskId,
        ordinal,
        attempt: 1,
        end: fixture.COMPLETED,
        notes: [],
      }),
    ).toMatchObject({ kind: 'closed' });
  });
});
