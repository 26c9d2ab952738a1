// S9, S6.5: the outbox on both stores, and relays that share it, die, and give up.
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { NotDelivered, OutboxRelay } from '../../worker/outbox-relay.ts';
import type { OutboxRelayOptions } from '../../worker/outbox-relay.ts';
import * as fixture from './ledger-fixture.ts';
import type { Place } from './ledger-fixture.ts';

const SCRIPT = fileURLToPath(new URL('outbox-child.ts', import.meta.url));
const silent = { debug() {}, info() {}, warn() {}, error() {} };
const LEASE_MS = 60_000;
const ACME = { tenant: 'acme' };

describe.each(fixture.STORES)('the outbox on %s', (kind) => {
  let place: Place;
  let relays: OutboxRelay[];
  const children: ChildProcess[] = [];
  beforeEach(async () => {
    place = await fixture.openPlace(kind);
    relays = [];
  });
  afterEach(async () => {
    await Promise.all(relays.map((relay) => relay.stop()));
    for (const child of children.splice(0)) child.kill('SIGKILL');
    await place.close();
  });

  async function alerted(count = 1): Promise<fixture.Work[]> {
    const works: fixture.Work[] = [];
    for (let index = 0; index < count; index += 1) {
      const work = await fixture.reserved(place.ledger);
      const claim = await fixture.claimed(place.ledger, work);
      await place.ledger.raiseAttention(claim, fixture.IN_DOUBT, fixture.alertAbout(work));
      works.push(work);
    }
    return works;
  }

  async function claimOne(): Promise<{ id: number; token: string; attempts: number }> {
    const [message] = await place.ledger.claimOutbox(1, LEASE_MS);
    if (!message) throw new Error('nothing was due');
    return message;
  }

  function relay(deliver: NonNullable<OutboxRelayOptions['sink']>['deliver'], more = {}): void {
    const { ledger } = place;
    const options = { ledger, log: silent, sink: { deliver }, idleMs: 20, random: () => 0, ...more };
    const started = new OutboxRelay(options);
    relays.push(started);
    started.start();
  }

  const states = async () => (await place.ledger.alerts(ACME)).map(({ state }) => state);

  test('[S9] two relays on two connections deliver each alert once between them', async () => {
    await alerted(12);
    const seen: number[] = [];
    const other = await place.another();
    for (const ledger of [place.ledger, other]) relay(async ({ id }) => void seen.push(id), { ledger });
    await expect.poll(states).toEqual(Array(12).fill('sent'));
    expect(seen.toSorted((a, b) => a - b)).toEqual([...new Set(seen)].toSorted((a, b) => a - b));
    expect(seen).toHaveLength(12);
  });

  test('[S9] a claim that ran out is another relay’s, and the token of the first says nothing more', async () => {
    await alerted();
    const late = await claimOne();
    expect(await place.ledger.outboxDueMs()).toBeGreaterThan(0);
    await place.pass(LEASE_MS + 1);
    expect(await place.ledger.outboxDueMs()).toBe(0);
    const { token, id, attempts } = await claimOne();
    expect({ id, attempts }).toEqual({ id: late.id, attempts: 2 });
    expect(await place.ledger.markSent(id, late.token)).toBe(false);
    expect(await place.ledger.giveBack(id, late.token, 'late', 0)).toBe(false);
    expect(await place.ledger.bury(id, late.token, 'late')).toBe(false);
    expect(await place.ledger.alerts(ACME)).toMatchObject([{ state: 'waiting', lastError: null }]);
    expect(await place.ledger.markSent(id, token)).toBe(true);
    expect(await place.ledger.giveBack(id, token, 'after all', 0)).toBe(false);
    expect(await place.ledger.outboxDueMs()).toBeNull();
  });

  test('[S9] a message given back is due after its delay, with why; one that was not tried lost no try', async () => {
    await alerted();
    const first = await claimOne();
    await place.ledger.giveBack(first.id, first.token, 'HTTP 503', 30_000);
    expect(await place.ledger.claimOutbox(10, LEASE_MS)).toEqual([]);
    expect(await place.ledger.alerts(ACME)).toMatchObject([{ attempts: 1, lastError: 'HTTP 503' }]);
    await place.pass(30_001);
    const second = await claimOne();
    expect(second.attempts).toBe(2);
    await place.ledger.giveBack(second.id, second.token, null, 0);
    expect((await claimOne()).attempts).toBe(2);
  });

  test('[S9] of a dead letter no relay hears; a person has it delivered again, under its id, and the audit says who', async () => {
    const [work] = await alerted();
    const { id, token } = await claimOne();
    expect(await place.ledger.bury(id, token, 'gone')).toBe(true);
    await place.pass(LEASE_MS);
    expect(await place.ledger.outboxDueMs()).toBeNull();
    expect(await place.ledger.claimOutbox(10, LEASE_MS)).toEqual([]);
    expect(await place.ledger.alerts({ ...ACME, state: 'dead' })).toMatchObject([{ id, lastError: 'gone' }]);
    expect(await place.ledger.redeliver({ tenant: 'globex', id, by: 'mallory' })).toEqual([]);
    expect(await place.ledger.redeliver({ ...ACME, by: 'ann' })).toEqual([id]);
    expect(await claimOne()).toMatchObject({ id, attempts: 1 });
    const noted = (await place.ledger.audit({ taskId: work?.taskId ?? '' })).at(-1);
    expect(noted).toMatchObject({ type: 'alert_redelivered', data: { alert: id, by: 'ann' } });
    expect(await place.ledger.verifyAudit()).toMatchObject({ ok: true });
  });

  test('[S9] a sink that fails to the bound leaves a dead letter, holds up no other, and gets it again when asked to', async () => {
    const [poison] = await alerted(2);
    const tries: string[] = [];
    let isAway = true;
    const options = { retryMs: 1, attemptsMax: 4 };
    relay(async ({ alert: { taskId } }) => {
      tries.push(taskId);
      if (isAway && taskId === poison?.taskId) throw new NotDelivered('the pager is away');
    }, options);
    await expect.poll(states).toEqual(['sent', 'dead']);
    expect(tries.filter((taskId) => taskId === poison?.taskId)).toHaveLength(4);
    expect(await place.ledger.alerts({ ...ACME, state: 'dead' })).toMatchObject([
      { taskId: poison?.taskId, attempts: 4, lastError: 'the pager is away' },
    ]);
    isAway = false;
    await place.ledger.redeliver({ ...ACME, by: 'ann' });
    await expect.poll(states).toEqual(['sent', 'sent']);
  });

  test('[S9] a message whose deliveries never end, as it kills who delivers it, becomes a dead letter too', async () => {
    await alerted();
    for (let crash = 0; crash < 2; crash += 1) {
      await claimOne();
      await place.pass(LEASE_MS + 1);
    }
    const seen: number[] = [];
    relay(async ({ id }) => void seen.push(id), { attemptsMax: 2 });
    await expect.poll(states).toEqual(['dead']);
    expect(seen).toEqual([]);
  });

  test('[S9] a crash (SIGKILL) between send and mark leaves the alert to the next relay, which sends it under the same id', async () => {
    await alerted();
    const child = fork(SCRIPT, [], {
      execArgv: ['--experimental-strip-types', '--disable-warning=ExperimentalWarning'],
      env: { ...process.env, HOLDFAST_TEST_OPTIONS: JSON.stringify({ url: place.url }) },
    });
    children.push(child);
    const [sent] = (await once(child, 'message')) as [number];
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(await place.ledger.alerts(ACME)).toMatchObject([{ state: 'waiting', attempts: 1 }]);
    const again: number[] = [];
    relay(async ({ id }) => void again.push(id));
    expect(await place.ledger.claimOutbox(1, LEASE_MS)).toEqual([]);
    await place.pass(10 * LEASE_MS);
    await expect.poll(() => again).toEqual([sent]);
    await expect.poll(states).toEqual(['sent']);
  }, 60_000);
});
