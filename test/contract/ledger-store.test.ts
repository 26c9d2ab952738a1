// S8, S9, S10.1, interfaces.md "Sizes" and "Tables": what the ledger keeps besides operations, and how a store is opened.
import { AssertionError } from 'node:assert';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Transitions } from '../../src/ledger/ledger.ts';
import { SCHEMA_VERSION } from '../../src/ledger/migrations.ts';
import { openLedger } from '../../src/ledger/open-ledger.ts';
import { deferred } from '../support/deferred.ts';
import * as fixture from './ledger-fixture.ts';
import type { Place } from './ledger-fixture.ts';

const CANARY = 'canary-4111-1111-1111-1111';

describe.each(fixture.STORES)('the ledger on %s', (kind) => {
  let place: Place;
  beforeAll(async () => {
    place = await fixture.openPlace(kind);
  });
  afterAll(() => place.close());

  describe('fences', () => {
    test('[S8.3] only the newest fence passes, as often as it likes', async () => {
      const { ledger } = place;
      expect(await ledger.advanceFence('printer', 3)).toBe(true);
      expect(await ledger.advanceFence('printer', 3)).toBe(true);
      expect(await ledger.advanceFence('printer', 2)).toBe(false);
      expect(await ledger.advanceFence('printer', 4)).toBe(true);
      expect(await ledger.advanceFence('printer', 3)).toBe(false);
      expect(await ledger.advanceFence('scanner', 1)).toBe(true);
    });

    test('[S8.3] of many at one moment the newest stays', async () => {
      const other = await place.another();
      await Promise.all(
        Array.from({ length: 20 }, (_, fence) =>
          (fence % 2 ? other : place.ledger).advanceFence('crane', fence),
        ),
      );
      expect(await place.ledger.advanceFence('crane', 18)).toBe(false);
      expect(await place.ledger.advanceFence('crane', 19)).toBe(true);
    });
  });

  describe('payloads', () => {
    test('[S2.9] are kept by content, per tenant', async () => {
      const value = JSON.stringify({
        text: 'ä😀\u0000',
        list: Array.from({ length: 1_000 }, (_, index) => index),
      });
      const kept = await place.ledger.putPayload('acme', value);
      expect(kept.bytes).toBe(Buffer.byteLength(value));
      expect(await place.ledger.putPayload('acme', value)).toEqual(kept);
      expect(await place.ledger.getPayload('acme', kept.sha256)).toBe(value);
      expect(await place.ledger.getPayload('globex', kept.sha256)).toBeNull();
      expect(await place.ledger.getPayload('acme', 'f'.repeat(64))).toBeNull();
    });

    test('[S2.9] of 32 MiB are kept, larger ones refused', async () => {
      const value = 'x'.repeat(33_554_432);
      const kept = await place.ledger.putPayload('acme', value);
      expect(await place.ledger.getPayload('acme', kept.sha256)).toHaveLength(value.length);
      await expect(place.ledger.putPayload('acme', `${value}x`)).rejects.toMatchObject({
        code: 'payload_too_large',
      });
    });
  });

  describe('the outbox', () => {
    async function alerted(): Promise<fixture.Work> {
      const work = await fixture.reserved(place.ledger);
      const claim = await fixture.claimed(place.ledger, work);
      await place.ledger.raiseAttention(claim, fixture.IN_DOUBT, fixture.alertAbout(work));
      return work;
    }
    const drain = async () => {
      await place.pass(60_001);
      for (const { id, token } of await place.ledger.claimOutbox(1_000, 60_000))
        await place.ledger.markSent(id, token);
    };

    test('[S9] two relays never hold the same message', async () => {
      await drain();
      for (let index = 0; index < 20; index += 1) await alerted();
      const other = await place.another();
      const claims = await Promise.all(
        Array.from({ length: 8 }, (_, index) => (index % 2 ? other : place.ledger).claimOutbox(5, 60_000)),
      );
      const ids = claims.flat().map(({ id }) => id);
      expect(new Set(ids).size).toBe(ids.length);
      for (const more of [await place.ledger.claimOutbox(100, 60_000)]) ids.push(...more.map(({ id }) => id));
      expect(new Set(ids).size).toBe(20);
    });

    test('[S9] a message is given out oldest first, whole, and counts its claims', async () => {
      await drain();
      const work = await alerted();
      const [message] = await place.ledger.claimOutbox(10, 60_000);
      expect(message).toMatchObject({ alert: fixture.alertAbout(work), attempts: 1 });
      expect(await place.ledger.claimOutbox(10, 60_000)).toEqual([]);
      expect(await place.ledger.giveBack(message?.id ?? 0, message?.token ?? '', 'HTTP 503', 0)).toBe(true);
      expect(await place.ledger.claimOutbox(10, 60_000)).toMatchObject([{ id: message?.id, attempts: 2 }]);
    });

    test('[S6.5] listeners hear of an alert once its transaction is committed, and of no other', async () => {
      let heard = 0;
      const stop = place.ledger.onOutbox(() => (heard += 1));
      const work = await fixture.reserved(place.ledger);
      const claim = await fixture.claimed(place.ledger, work);
      expect(heard).toBe(0);
      await place.ledger.raiseAttention(claim, fixture.IN_DOUBT, fixture.alertAbout(work));
      expect(heard).toBe(1);
      await place.ledger.raiseAttention(claim, fixture.IN_DOUBT, fixture.alertAbout(work));
      expect(heard).toBe(1);
      stop();
      await alerted();
      expect(heard).toBe(1);
      expect(await place.ledger.alerts({ tenant: 'acme', taskId: work.taskId })).toHaveLength(1);
      expect(await place.ledger.alerts({ tenant: 'globex', taskId: work.taskId })).toEqual([]);
    });
  });

  describe('transactions', () => {
    test('[S2.8] claim, effect and commit stand together, and the user’s own statements with them', async () => {
      await place.raw('create table stock (sku text primary key, quantity integer not null)');
      await place.raw(`insert into stock values ('bolt', 10)`);
      const work = await fixture.reserved(place.ledger);
      await place.ledger.transaction(async (transitions, tx) => {
        const claim = await fixture.claimed(transitions, work);
        expect(await transitions.owns(claim)).toBe(true);
        await (tx as Kysely<{ stock: { sku: string; quantity: number } }>)
          .updateTable('stock')
          .set((eb) => ({ quantity: eb('quantity', '-', 2) }))
          .where('sku', '=', 'bolt')
          .execute();
        await transitions.commit(claim, fixture.RESULT, {
          verified: true,
          how: 'executed',
          end: fixture.COMPLETED,
        });
        expect(await transitions.find(work.operationId)).toMatchObject({ state: 'committed' });
      });
      expect(await place.raw('select quantity from stock')).toEqual([{ quantity: 8 }]);
      expect(await fixture.rowOf(place.ledger, work)).toMatchObject({ state: 'committed', executions: 1 });
      expect(await place.ledger.verifyAudit(work)).toMatchObject({ ok: true, entries: 3 });
    });

    test('[S2.8] or fall together', async () => {
      const work = await fixture.reserved(place.ledger);
      let heard = 0;
      const stop = place.ledger.onOutbox(() => (heard += 1));
      const failed = place.ledger.transaction(async (transitions, tx) => {
        const claim = await fixture.claimed(transitions, work);
        await sql`update stock set quantity = 0`.execute(tx as Kysely<unknown>);
        await transitions.raiseAttention(claim, fixture.IN_DOUBT, fixture.alertAbout(work));
        throw new Error('the handler failed');
      });
      await expect(failed).rejects.toThrow('the handler failed');
      stop();
      expect(heard).toBe(0);
      expect(await place.raw('select quantity from stock')).toEqual([{ quantity: 8 }]);
      expect(await fixture.rowOf(place.ledger, work)).toMatchObject({ state: 'reserved', generation: 0 });
      expect(await fixture.auditTypes(place.ledger, work)).toEqual(['operation.reserved']);
    });

    test('[S10.2] a guarded write that meets another number of rows takes everything back, the audit too', async () => {
      const work = await fixture.reserved(place.ledger);
      const claim = await fixture.claimed(place.ledger, work);
      const before = await fixture.rowOf(place.ledger, work);
      await place.raw(`delete from attempt where operation_id = '${work.operationId}'`);
      await expect(place.ledger.release(claim, fixture.NOT_SENT)).rejects.toThrow(AssertionError);
      expect(await fixture.rowOf(place.ledger, work)).toEqual(before);
      expect(await fixture.auditTypes(place.ledger, work)).toEqual([
        'operation.reserved',
        'operation.claimed',
      ]);
      expect(await place.ledger.verifyAudit(work)).toMatchObject({ ok: true });
    });

    test('[S2.8] a statement of the user’s that fails takes everything back, unless he catches it where the database lets him', async () => {
      const work = await fixture.reserved(place.ledger);
      const failed = place.ledger.transaction(async (transitions, tx) => {
        await fixture.claimed(transitions, work);
        await sql`insert into stock values ('bolt', ${CANARY.length})`.execute(tx as Kysely<unknown>);
      });
      await expect(failed).rejects.toMatchObject({
        code: 'ledger_unavailable',
        details: { outcome: 'rolled_back' },
      });
      expect(await fixture.rowOf(place.ledger, work)).toMatchObject({ state: 'reserved' });
    });

    test('[S2.8] of many on one row at one moment one is first, and the others see what it did', async () => {
      const other = await place.another();
      const work = await fixture.reserved(place.ledger);
      const outcomes = await Promise.all(
        Array.from({ length: 10 }, (_, index) =>
          (index % 2 ? other : place.ledger).transaction(async (transitions) => {
            const answer = await transitions.claim(fixture.claimRequest(work, 1));
            if (answer.kind !== 'granted') return answer.kind;
            await transitions.commit(answer.claim, fixture.RESULT, {
              verified: true,
              how: 'executed',
              end: null,
            });
            return 'committed';
          }),
        ),
      );
      expect(outcomes.filter((outcome) => outcome === 'committed')).toHaveLength(1);
      expect(outcomes.filter((outcome) => outcome === 'closed')).toHaveLength(9);
    });

    test('[S2.8] a transaction kept for later is of no use', async () => {
      const work = await fixture.reserved(place.ledger);
      const kept: { transitions?: Transitions; tx?: Kysely<unknown> } = {};
      await place.ledger.transaction((transitions, tx) => {
        Object.assign(kept, { transitions, tx });
        return Promise.resolve();
      });
      await expect(kept.transitions?.claim(fixture.claimRequest(work, 1))).rejects.toBeInstanceOf(
        AssertionError,
      );
      const late = async () => sql`update operation set attempt = 9`.execute(kept.tx as Kysely<unknown>);
      await expect(late()).rejects.toBeInstanceOf(AssertionError);
      expect(await fixture.rowOf(place.ledger, work)).toMatchObject({ state: 'reserved', attempt: 0 });
    });

    test('[S2.8] the ledger itself can’t be called from inside, which would wait for ever', async () => {
      const work = await fixture.reserved(place.ledger);
      const nested = place.ledger.transaction(() => place.ledger.claim(fixture.claimRequest(work, 1)));
      await expect(nested).rejects.toBeInstanceOf(AssertionError);
      expect(await fixture.rowOf(place.ledger, work)).toMatchObject({ state: 'reserved' });
    });
  });

  describe('lists', () => {
    test('[M2.6] are of one tenant, newest first, by state, action and openness', async () => {
      const principal = { ...fixture.PRINCIPAL, tenant: `t-${fixture.freshKey()}` };
      const { ledger } = place;
      const works: fixture.Work[] = [];
      for (let index = 0; index < 3; index += 1) {
        works.push(await fixture.reserved(ledger, { principal, ...(index === 2 && { action: 'other' }) }));
      }
      const [first, second] = works as [fixture.Work, fixture.Work];
      await ledger.closeTask({ ...first, attempt: 1, end: fixture.CANCELLED, notes: [] });
      const claim = await fixture.claimed(ledger, second);
      await ledger.commit(claim, fixture.RESULT, { verified: true, how: 'executed', end: null });
      await fixture.rollbackClaimed(ledger, second, 2);
      const { tenant } = principal;
      const ids = async (filter: Omit<Parameters<typeof ledger.list>[0], 'tenant'>) =>
        (await ledger.list({ tenant, ...filter })).map(({ operationId }) => operationId).sort();
      const all = works.map(({ operationId }) => operationId).sort();
      expect(await ids({})).toEqual(all);
      expect(await ids({ open: true })).toEqual(all.filter((id) => id !== first.operationId));
      expect(await ids({ open: false })).toEqual([first.operationId]);
      expect(await ids({ state: 'rolling_back' })).toEqual([second.operationId]);
      expect(await ids({ action: 'other' })).toEqual([works[2]?.operationId]);
      expect(await ledger.list({ tenant, limit: 2 })).toHaveLength(2);
      const { createdAt } = await fixture.rowOf(ledger, first);
      expect(await ids({ before: createdAt })).toEqual([]);
      const times = (await ledger.list({ tenant })).map((row) => row.createdAt);
      expect(times).toEqual([...times].sort((left, right) => right - left));
    });
  });

  describe('opening', () => {
    test('[S10.1] migrating twice, and from many at one moment, changes nothing', async () => {
      expect(await place.ledger.migrate()).toEqual({ from: SCHEMA_VERSION, to: SCHEMA_VERSION });
      const other = await place.another();
      expect(await Promise.all([place.ledger.migrate(), other.migrate(), other.migrate()])).toHaveLength(3);
      expect(await place.ledger.check()).toEqual({ version: SCHEMA_VERSION });
    });

    test('[S10.1] what was written is there after closing and opening again', async () => {
      const work = await fixture.reserved(place.ledger);
      const before = await fixture.rowOf(place.ledger, work);
      const again = await openLedger({ url: place.url });
      expect(await again.find(work.operationId)).toEqual(before);
      await again.close();
    });

    test('[S10.1] a ledger of 0.1 is brought up to date with all it holds', async () => {
      const other = await fixture.openPlace(kind);
      try {
        const work = await fixture.reserved(other.ledger);
        const before = await fixture.rowOf(other.ledger, work);
        await other.raw('drop index operation_edited');
        await other.raw('alter table operation drop column edited');
        await other.raw('drop index outbox_waiting');
        for (const column of ['due_at', 'dead_at'])
          await other.raw(`alter table outbox drop column ${column}`);
        await other.raw('create index outbox_unsent on outbox (id) where sent_at is null');
        for (const table of ['standing_rule', 'remote_task', 'upstream', 'upstream_before'])
          await other.raw(`drop table ${table}`);
        await other.raw('delete from migration where version > 1');
        await expect(other.ledger.check()).rejects.toMatchObject({ code: 'ledger_unsuitable' });
        expect(await other.ledger.migrate()).toEqual({ from: 1, to: SCHEMA_VERSION });
        expect(await fixture.rowOf(other.ledger, work)).toEqual(before);
      } finally {
        await other.close();
      }
    });

    test('[S10.1] a schema of another version is unsuitable', async () => {
      const other = await fixture.openPlace(kind);
      try {
        await other.raw(`update migration set version = version + 100`);
        await expect(other.ledger.check()).rejects.toMatchObject({
          code: 'ledger_unsuitable',
          details: { version: SCHEMA_VERSION + 100, expected: SCHEMA_VERSION },
        });
        expect(await other.ledger.migrate()).toEqual({
          from: SCHEMA_VERSION + 100,
          to: SCHEMA_VERSION + 100,
        });
        await other.raw('drop table migration');
        await expect(other.ledger.check()).rejects.toMatchObject({
          code: 'ledger_unsuitable',
          details: { version: 0 },
        });
      } finally {
        await other.close();
      }
    });

    test('[S10.1] a ledger that is closed says so, however often it is closed', async () => {
      const other = await place.another();
      await other.close();
      await other.close();
      for (const call of [
        () => other.find('op_x'),
        () => other.list({ tenant: 'acme' }),
        () => other.reserve(fixture.reservation(fixture.freshKey())),
      ]) {
        await expect(call()).rejects.toMatchObject({ code: 'ledger_unavailable' });
      }
    });

    test('[S2.10] an error of the database tells neither what was written nor how', async () => {
      const request = fixture.reservation(fixture.freshKey(), {
        arguments: { card: CANARY },
        effect: CANARY as 'safe',
      });
      const error: unknown = await place.ledger.reserve(request).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: 'ledger_unavailable', details: { outcome: 'rolled_back' } });
      const told =
        JSON.stringify(error) +
        String(error) +
        String((error as Error).stack) +
        String((error as Error).cause);
      expect(told).not.toContain(CANARY);
      expect(told.toLowerCase()).not.toMatch(/insert|select|values|operation_id/);
    });
  });
});

describe('a SQLite ledger', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-ledger-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('[S10.1] in memory is refused, except in tests', async () => {
    await expect(openLedger({ url: 'sqlite::memory:' })).rejects.toMatchObject({ code: 'ledger_unsuitable' });
    const ledger = await openLedger({ url: 'sqlite::memory:', allowEphemeral: true });
    await ledger.migrate();
    expect(await ledger.check()).toEqual({ version: SCHEMA_VERSION });
    const work = await fixture.reserved(ledger);
    expect(await ledger.find(work.operationId)).toMatchObject({ state: 'reserved' });
    await ledger.close();
  });

  test('[S10.1] is made where its folder is not there yet, for its owner’s eyes only', async () => {
    const file = join(folder, 'deep/er/ledger.db');
    const ledger = await openLedger({ url: `sqlite:${file}` });
    await ledger.migrate();
    await ledger.close();
    expect(statSync(file).mode & 0o077).toBe(0);
  });

  test('[S10.1] that can’t be opened is unavailable', async () => {
    const file = join(folder, 'no-database.db');
    writeFileSync(file, 'this is no database, however long it may be'.repeat(200));
    await expect(openLedger({ url: `sqlite:${file}` })).rejects.toMatchObject({ code: 'ledger_unavailable' });
    await expect(openLedger({ url: `sqlite:${file}/below` })).rejects.toMatchObject({
      code: 'ledger_unavailable',
    });
  });

  test('[S2.8] keeps the event loop free while another process holds the lock, and goes on when it lets go', async () => {
    const place = await fixture.openPlace('sqlite');
    const holder = await place.another();
    const work = await fixture.reserved(place.ledger);
    const hold = deferred();
    const holding = deferred();
    const held = holder.transaction(() => {
      holding.resolve();
      return hold.promise;
    });
    await holding.promise;
    let answered = false;
    const claim = place.ledger.claim(fixture.claimRequest(work, 1)).then((answer) => {
      answered = true;
      return answer;
    });
    let turns = 0;
    while (turns < 200) {
      await new Promise((resolve) => setImmediate(resolve));
      turns += 1;
    }
    expect(await place.ledger.find(work.operationId)).toMatchObject({ state: 'reserved' });
    expect(answered).toBe(false);
    hold.resolve();
    await held;
    expect(await claim).toMatchObject({ kind: 'granted' });
    await place.close();
  });
});

describe('a PostgreSQL ledger', () => {
  test('[S10.1] that is not there is unavailable', async () => {
    const ledger = await openLedger({ url: 'postgres://nobody:nothing@127.0.0.1:1/none' });
    await expect(ledger.check()).rejects.toMatchObject({ code: 'ledger_unavailable' });
    await expect(ledger.reserve(fixture.reservation(fixture.freshKey()))).rejects.toMatchObject({
      code: 'ledger_unavailable',
    });
    await ledger.close();
  });

  test('[S1.5] goes on over connections that the server ended', async () => {
    const place = await fixture.openPlace('postgres');
    for (let round = 0; round < 5; round += 1) {
      const work = fixture.reserved(place.ledger);
      await place.raw(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid()`,
      );
      const { operationId } = await work.catch(() => fixture.reserved(place.ledger));
      expect(await place.ledger.find(operationId)).toMatchObject({ state: 'reserved' });
    }
    expect(await place.ledger.verifyAudit()).toMatchObject({ ok: true });
    await place.close();
  });

  test('[S10.2] a deadlock with somebody else’s lock is repeated, not answered', async () => {
    const place = await fixture.openPlace('postgres');
    const [first, second] = [await fixture.reserved(place.ledger), await fixture.reserved(place.ledger)];
    // Two transactions that lock two rows in opposite orders; PostgreSQL ends one of them.
    const both = (one: fixture.Work, two: fixture.Work) =>
      place.ledger.transaction(async (transitions) => {
        await transitions.claim(fixture.claimRequest(one, 1));
        await transitions.claim(fixture.claimRequest(two, 1));
      });
    const outcomes = await Promise.allSettled([both(first, second), both(second, first)]);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') {
        expect(outcome.reason).toMatchObject({
          code: 'ledger_unavailable',
          details: { outcome: 'rolled_back' },
        });
      }
    }
    expect(outcomes.some(({ status }) => status === 'fulfilled')).toBe(true);
    await place.close();
  });

  test('[S10.1] any address that is neither is refused', async () => {
    for (const url of ['mysql://x', `postgres://ada:${CANARY}@host:no-port/db`, 'ledger.db']) {
      const error: unknown = await openLedger({ url }).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: 'invalid_configuration' });
      expect(JSON.stringify(error) + String((error as Error).stack)).not.toContain(CANARY);
    }
  });
});
