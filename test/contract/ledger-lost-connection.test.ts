// S2.11 on PostgreSQL: the connection breaks before, at or after the commit. A proxy between ledger and server decides.
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { openLedger } from '../../src/ledger/open-ledger.ts';
import * as fixture from './ledger-fixture.ts';
import type { Place } from './ledger-fixture.ts';

/** What the proxy does with the next commit it sees. */
type Fate = 'pass' | 'lose the commit' | 'lose its answer';

describe('a connection to PostgreSQL that breaks', () => {
  let place: Place;
  let ledger: Ledger;
  let proxy: Server;
  let fates: Fate[] = [];
  const sockets = new Set<Socket>();

  beforeAll(async () => {
    place = await fixture.openPlace('postgres');
    const target = new URL(place.url);
    proxy = createServer((client) => {
      const server = connect(Number(target.port), target.hostname);
      join(client, server);
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const url = new URL(place.url);
    url.port = String((proxy.address() as AddressInfo).port);
    ledger = await openLedger({ url: url.href });
  });

  afterAll(async () => {
    await ledger.close();
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => proxy.close(resolve));
    await place.close();
  });

  function join(client: Socket, server: Socket): void {
    const cut = () => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on('error', cut).on('close', cut);
    }
    let isAnswerLost = false;
    client.on('data', (data) => {
      const fate = data.includes('commit\0') ? (fates.shift() ?? 'pass') : 'pass';
      if (fate === 'lose the commit') return cut();
      if (fate === 'lose its answer') isAnswerLost = true;
      server.write(data);
    });
    // `Z` and `I`: ready, in no transaction, so the commit took place.
    server.on('data', (data) => {
      if (isAnswerLost && data.subarray(-6).equals(Buffer.from('Z\0\0\0\x05I'))) return cut();
      if (!isAnswerLost) client.write(data);
    });
  }

  const fatesOf: Fate[] = ['lose the commit', 'lose its answer'];

  test.each(fatesOf)('[S1.5] reserve answers all the same: %s', async (fate) => {
    fates = [fate];
    const request = fixture.reservation(fixture.freshKey());
    const answer = await ledger.reserve(request);
    // Ours or, when the first try is in the database, met: the caller starts the same task either way.
    expect(answer.kind).toBe(fate === 'lose the commit' ? 'fresh' : 'open');
    expect(await place.ledger.find(request.operationId)).toMatchObject({ state: 'reserved', ordinal: 1 });
    expect(await place.ledger.verifyAudit()).toMatchObject({ ok: true });
  });

  test.each(fatesOf)('[S2.7] a commit is written once, and answered: %s', async (fate) => {
    const work = await fixture.reserved(ledger);
    const claim = await fixture.claimed(ledger, work);
    fates = [fate];
    const options = { verified: true, how: 'executed', end: fixture.COMPLETED } as const;
    expect(await ledger.commit(claim, fixture.RESULT, options)).toMatchObject({
      kind: 'written',
      row: { state: 'committed', result: fixture.RESULT },
    });
    expect(await fixture.auditTypes(place.ledger, work)).toEqual([
      'operation.reserved',
      'operation.claimed',
      'operation.committed',
    ]);
  });

  test.each(fatesOf)('[S2.3] a claim is not repeated, and says that nobody knows: %s', async (fate) => {
    const work = await fixture.reserved(ledger);
    fates = [fate];
    await expect(ledger.claim(fixture.claimRequest(work, 1))).rejects.toMatchObject({
      code: 'ledger_unavailable',
      details: { outcome: 'unknown' },
    });
    // The next attempt finds out by what it meets.
    expect(await ledger.claim(fixture.claimRequest(work, 2))).toMatchObject({
      kind: 'granted',
      before: { state: fate === 'lose the commit' ? 'reserved' : 'in_flight' },
    });
  });

  test.each(fatesOf)('[S2.8] a user’s transaction is never run twice: %s', async (fate) => {
    const work = await fixture.reserved(ledger);
    let runs = 0;
    fates = [fate];
    const lost = ledger.transaction(async (transitions) => {
      runs += 1;
      await transitions.claim(fixture.claimRequest(work, 1));
    });
    await expect(lost).rejects.toMatchObject({ code: 'ledger_unavailable', details: { outcome: 'unknown' } });
    expect(runs).toBe(1);
  });

  test('[S2.11] one lost before the commit was sent changed nothing, and is begun anew', async () => {
    const work = await fixture.reserved(ledger);
    const claim = await fixture.claimed(ledger, work);
    await place.raw(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and application_name = 'holdfast' and pid <> pg_backend_pid()`,
    );
    expect(await ledger.release(claim, fixture.NOT_SENT)).toMatchObject({ kind: 'written' });
  });

  test('[S8.1] who sleeps in a transaction is ended by the server, and those who wait go on', async () => {
    const waking: (() => void)[] = [];
    const work = await fixture.reserved(ledger);
    const asleep = ledger.transaction(async (transitions) => {
      await transitions.claim(fixture.claimRequest(work, 1));
      await new Promise<void>((resolve) => waking.push(resolve));
      return transitions.owns({ ...work, attempt: 1, generation: 1, claimedUntil: 0 });
    });
    const settled = asleep.then(
      () => 'committed',
      (error: unknown) => error,
    );
    expect(await place.ledger.claim(fixture.claimRequest(work, 2))).toMatchObject({
      kind: 'granted',
      before: { state: 'reserved' },
    });
    for (const wake of waking) wake();
    expect(await settled).toMatchObject({ code: 'ledger_unavailable', details: { outcome: 'rolled_back' } });
  });
});
