// M8: what the ledger remembers of other people's servers, on every store.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as fixture from './ledger-fixture.ts';
import type { Place } from './ledger-fixture.ts';

describe.each(fixture.STORES)('upstream servers on %s', (kind) => {
  let place: Place;
  beforeAll(async () => {
    place = await fixture.openPlace(kind);
  });
  afterAll(() => place.close());
  const tool = (name: string, version = 1) => ({ name, inputSchema: { type: 'object', version } });

  test('[M8.5] the last list of a server stands, and what it no longer lists, or not like that, is kept apart', async () => {
    const { ledger } = place;
    expect(await ledger.upstreamList('files')).toBeNull();
    await ledger.keepUpstreamList('files', [tool('a'), tool('b')]);
    await ledger.keepUpstreamList('other', [tool('z')]);
    expect(await ledger.keepUpstreamList('files', [tool('b', 2), tool('c')])).toMatchObject({
      tools: [tool('b', 2), tool('c')],
      gone: [tool('a'), tool('b')],
    });
    await ledger.keepUpstreamList('files', [tool('a', 3)]);
    const kept = await ledger.upstreamList('files');
    expect(kept?.tools).toEqual([tool('a', 3)]);
    expect(kept?.gone).toEqual([tool('b', 2), tool('c'), tool('a')]);
    expect(Math.abs((kept?.seenAt ?? 0) - (await ledger.now()))).toBeLessThan(60_000);
    expect(await ledger.upstreamList('other')).toMatchObject({ tools: [tool('z')], gone: [] });
  });

  test('[M8.1] what was read before an effect stands as it was read first, until nothing was sent', async () => {
    const { ledger } = place;
    const [first, later] = [{ old: { text: 'ä😀\u0000' } }, { old: { text: 'after' } }];
    expect(await ledger.recallBefore('op_1')).toBeNull();
    expect(await ledger.keepBefore('op_1', 'acme', first)).toEqual(first);
    expect(await ledger.keepBefore('op_1', 'acme', later)).toEqual(first);
    expect(await ledger.recallBefore('op_1')).toEqual(first);
    await ledger.forgetBefore('op_1');
    expect(await ledger.keepBefore('op_1', 'acme', later)).toEqual(later);
  });

  test('[M8.1] [S2.3] a claim to send anew, nothing having been sent, forgets what was read the time before; one to reconcile keeps it', async () => {
    const { ledger } = place;
    const work = await fixture.reserved(ledger);
    const claim = await fixture.claimed(ledger, work, 1);
    await ledger.keepBefore(work.operationId, 'acme', { old: { text: 'this morning' } });
    await ledger.release(claim, fixture.NOT_SENT);
    expect(await ledger.recallBefore(work.operationId)).not.toBeNull();
    await fixture.claimed(ledger, work, 2);
    expect(await ledger.recallBefore(work.operationId)).toBeNull();
    await ledger.keepBefore(work.operationId, 'acme', { old: { text: 'now' } });
    await fixture.claimed(ledger, work, 3);
    expect(await ledger.recallBefore(work.operationId)).toEqual({ old: { text: 'now' } });
  });

  test('[M8.1] [S1.6] a key that is used again, nothing having been sent, forgets what was read the time before', async () => {
    const { ledger } = place;
    const request = fixture.reservation(fixture.freshKey());
    const work = await fixture.reserved(ledger, request);
    await ledger.keepBefore(work.operationId, 'acme', { old: { text: 'last week' } });
    await ledger.reserve(request);
    expect(await ledger.recallBefore(work.operationId)).not.toBeNull();
    await ledger.closeTask({ ...work, attempt: 0, end: fixture.CANCELLED, notes: [] });
    expect(await ledger.reserve(request)).toMatchObject({ kind: 'fresh', ordinal: 2 });
    expect(await ledger.recallBefore(work.operationId)).toBeNull();
  });
});
