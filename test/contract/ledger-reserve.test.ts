// S1.5 to S1.7, M1.4: the row before the workflow.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { operationIdOf, taskIdOf } from '../../src/contract/ids.ts';
import * as fixture from './ledger-fixture.ts';
import type { Place } from './ledger-fixture.ts';

describe.each(fixture.STORES)('reserve on %s', (kind) => {
  let place: Place;
  beforeAll(async () => {
    place = await fixture.openPlace(kind);
  });
  afterAll(() => place.close());

  test('[S1.5] the first call is fresh, under a task id made from operation and ordinal', async () => {
    const request = fixture.reservation(fixture.freshKey());
    expect(await place.ledger.reserve(request)).toEqual({
      kind: 'fresh',
      taskId: taskIdOf(request.operationId, 1),
      ordinal: 1,
    });
    expect(await place.ledger.find(request.operationId)).toMatchObject({
      state: 'reserved',
      ordinal: 1,
      attempt: 0,
      generation: 0,
      executions: 0,
      keyed: true,
      subject: 'ada',
      arguments: { sku: 'bolt', quantity: 2 },
      end: null,
    });
  });

  test('[S1.5] the same call again meets the open task', async () => {
    const request = fixture.reservation(fixture.freshKey());
    const work = await fixture.reserved(place.ledger, request);
    expect(await place.ledger.reserve(request)).toMatchObject({
      kind: 'open',
      attached: false,
      row: { taskId: work.taskId },
    });
  });

  test('[S1.5] a task started bare keeps its own id', async () => {
    const work = await fixture.reserved(place.ledger, { taskId: `bare-${fixture.freshKey()}` });
    expect(await place.ledger.findByTask(work.taskId)).toMatchObject({ operationId: work.operationId });
  });

  test.each([
    ['sent with sent', { sent: 'sent-1', input: 'other' }],
    ['input with input', { sent: 'other', input: 'input-1' }],
    ['sent with the row’s input', { sent: 'input-1', input: 'other' }],
    ['input with the row’s sent', { sent: 'other', input: 'sent-1' }],
  ])('[S1.4] equal fingerprints are a match: %s', async (_, fingerprint) => {
    const request = fixture.reservation(fixture.freshKey());
    await fixture.reserved(place.ledger, request);
    expect(await place.ledger.reserve({ ...request, fingerprint })).toMatchObject({ kind: 'open' });
  });

  test('[S2.1] other arguments under the same key are a conflict that names paths and no value', async () => {
    const request = fixture.reservation(fixture.freshKey(), { arguments: { to: 'ada', amount: 10 } });
    await fixture.reserved(place.ledger, request);
    const answer = await place.ledger.reserve({
      ...request,
      fingerprint: { sent: 'sent-2', input: 'input-2' },
      arguments: { to: 'ada', amount: 1000 },
    });
    expect(answer).toMatchObject({ kind: 'conflict', paths: ['/amount'] });
  });

  test('[S2.1] a conflict changes nothing', async () => {
    const request = fixture.reservation(fixture.freshKey());
    const work = await fixture.reserved(place.ledger, request);
    const before = await fixture.rowOf(place.ledger, work);
    await place.ledger.reserve({
      ...request,
      fingerprint: { sent: 'x', input: 'y' },
      arguments: { sku: 'nut' },
    });
    expect(await fixture.rowOf(place.ledger, work)).toEqual(before);
    expect(await fixture.auditTypes(place.ledger, work)).toEqual(['operation.reserved']);
  });

  const endings = {
    refused: async (work: fixture.Work) => {
      await place.ledger.refuse({ ...work, attempt: 1, notes: [] }, 'out of stock', fixture.REFUSED);
    },
    'closed without ever claiming': async (work: fixture.Work) => {
      await place.ledger.closeTask({ ...work, attempt: 1, end: fixture.CANCELLED, notes: [] });
    },
    'released and closed': async (work: fixture.Work) => {
      await place.ledger.release(await fixture.claimed(place.ledger, work), fixture.NOT_SENT);
      await place.ledger.closeTask({ ...work, attempt: 1, end: fixture.CANCELLED, notes: [] });
    },
    'recovered with nothing sent': async (work: fixture.Work) => {
      await place.ledger.recover(work.operationId, work.taskId);
    },
  };

  test.each(Object.entries(endings))(
    '[S1.6] a key whose task was %s gets the next ordinal',
    async (_, finish) => {
      const request = fixture.reservation(fixture.freshKey());
      const work = await fixture.reserved(place.ledger, request);
      await finish(work);
      const { generation } = await fixture.rowOf(place.ledger, work);
      expect(await place.ledger.reserve({ ...request, contractVersion: 2 })).toEqual({
        kind: 'fresh',
        taskId: taskIdOf(request.operationId, 2),
        ordinal: 2,
      });
      const row = await fixture.rowOf(place.ledger, work);
      expect(row).toMatchObject({
        state: 'reserved',
        attempt: 0,
        claimedUntil: null,
        end: null,
        failure: null,
      });
      expect(row).toMatchObject({ contractVersion: 2, fingerprint: request.fingerprint });
      expect(row.generation).toBe(generation);
    },
  );

  test('[S1.6] an old task can do nothing under the next ordinal', async () => {
    const request = fixture.reservation(fixture.freshKey());
    const old = await fixture.reserved(place.ledger, request);
    await place.ledger.closeTask({ ...old, attempt: 3, end: fixture.CANCELLED, notes: [] });
    await fixture.reserved(place.ledger, request);
    expect(await place.ledger.claim(fixture.claimRequest(old, 99))).toMatchObject({
      kind: 'stale',
      superseded: true,
    });
    expect(
      await place.ledger.closeTask({ ...old, attempt: 9, end: fixture.CANCELLED, notes: [] }),
    ).toMatchObject({
      kind: 'superseded',
    });
    expect(
      await place.ledger.refuse({ ...old, attempt: 99, notes: [] }, 'too late', fixture.REFUSED),
    ).toMatchObject({ kind: 'stale' });
  });

  test('[S2.1] a spent key is answered from its row', async () => {
    const request = fixture.reservation(fixture.freshKey());
    const work = await fixture.reserved(place.ledger, request);
    const claim = await fixture.claimed(place.ledger, work);
    await place.ledger.commit(claim, fixture.RESULT, {
      verified: true,
      how: 'executed',
      end: fixture.COMPLETED,
    });
    expect(await place.ledger.reserve(request)).toMatchObject({
      kind: 'ended',
      row: { state: 'committed', result: fixture.RESULT, end: fixture.COMPLETED },
    });
  });

  test('[S2.1] a committed row whose task has not ended is still open', async () => {
    const request = fixture.reservation(fixture.freshKey());
    const work = await fixture.reserved(place.ledger, request);
    const claim = await fixture.claimed(place.ledger, work);
    await place.ledger.commit(claim, fixture.RESULT, { verified: true, how: 'executed', end: null });
    expect(await place.ledger.reserve(request)).toMatchObject({ kind: 'open' });
    await place.ledger.recordEnd(work.taskId, fixture.COMPLETED);
    expect(await place.ledger.reserve(request)).toMatchObject({ kind: 'ended' });
  });

  describe('of keyless calls', () => {
    const keyless = (fields: Parameters<typeof fixture.reservation>[1] = {}) =>
      fixture.reservation(fixture.freshKey(), { keyed: false, attach: true, ...fields });

    test('[M1.4] an equal open call of the same principal is attached to', async () => {
      const print = { sent: fixture.freshKey(), input: fixture.freshKey() };
      const first = await fixture.reserved(place.ledger, keyless({ fingerprint: print }));
      const second = keyless({ fingerprint: { sent: 'other', input: print.input } });
      expect(await place.ledger.reserve(second)).toMatchObject({
        kind: 'open',
        attached: true,
        row: { taskId: first.taskId },
      });
      expect(await place.ledger.find(second.operationId)).toBeNull();
    });

    test('[M1.4] one that ended, one of somebody else, and one that does not want it are not attached to', async () => {
      const fingerprint = { sent: fixture.freshKey(), input: fixture.freshKey() };
      const first = await fixture.reserved(place.ledger, keyless({ fingerprint }));
      const principal = { ...fixture.PRINCIPAL, subject: 'bob' };
      expect(await place.ledger.reserve(keyless({ fingerprint, principal }))).toMatchObject({
        kind: 'fresh',
      });
      expect(await place.ledger.reserve(keyless({ fingerprint, attach: false }))).toMatchObject({
        kind: 'fresh',
      });
      await place.ledger.closeTask({ ...first, attempt: 1, end: fixture.CANCELLED, notes: [] });
      expect(await place.ledger.reserve(keyless({ fingerprint }))).toMatchObject({ kind: 'fresh' });
    });

    test('[M1.4] of many equal calls at one moment exactly one is fresh', async () => {
      const fingerprint = { sent: fixture.freshKey(), input: fixture.freshKey() };
      const other = await place.another();
      const answers = await Promise.all(
        Array.from({ length: 12 }, (_, index) =>
          (index % 2 ? other : place.ledger).reserve(keyless({ fingerprint })),
        ),
      );
      expect(answers.filter(({ kind: answered }) => answered === 'fresh')).toHaveLength(1);
      expect(answers.filter((answer) => answer.kind === 'open' && answer.attached)).toHaveLength(11);
    });
  });

  test('[S1.5] of many calls at one moment through two connections exactly one is fresh', async () => {
    const other = await place.another();
    const request = fixture.reservation(fixture.freshKey());
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => (index % 2 ? other : place.ledger).reserve(request)),
    );
    expect(answers.filter((answer) => answer.kind === 'fresh')).toHaveLength(1);
    expect(answers.filter((answer) => answer.kind === 'open')).toHaveLength(19);
  });

  test('[S1.6] of many calls after an end with nothing sent exactly one gets the next ordinal', async () => {
    const other = await place.another();
    const request = fixture.reservation(fixture.freshKey());
    const work = await fixture.reserved(place.ledger, request);
    await place.ledger.closeTask({ ...work, attempt: 0, end: fixture.CANCELLED, notes: [] });
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => (index % 2 ? other : place.ledger).reserve(request)),
    );
    expect(answers.filter((answer) => answer.kind === 'fresh')).toEqual([
      { kind: 'fresh', ordinal: 2, taskId: taskIdOf(work.operationId, 2) },
    ]);
  });

  test('[S1.3] tenants with the same key have their own operations', async () => {
    const key = fixture.freshKey();
    const ours = fixture.reservation(key);
    const theirs = fixture.reservation(key, { principal: { ...fixture.PRINCIPAL, tenant: 'globex' } });
    expect(theirs.operationId).toBe(operationIdOf('globex', 'reserve_inventory', key));
    expect(await place.ledger.reserve(ours)).toMatchObject({ kind: 'fresh' });
    expect(await place.ledger.reserve(theirs)).toMatchObject({ kind: 'fresh' });
  });
});
