import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { openLedger } from '../../src/ledger/open-ledger.ts';
import { OutboxRelay } from '../../worker/outbox-relay.ts';
import type { AlertSink } from '../../worker/outbox-relay.ts';

const silent = { debug() {}, info() {}, warn() {}, error() {} };

let ledger: Ledger;
let relays: OutboxRelay[];
beforeEach(async () => {
  ledger = await openLedger({ url: 'sqlite::memory:', allowEphemeral: true });
  await ledger.migrate();
  relays = [];
});
afterEach(async () => {
  await Promise.all(relays.map((relay) => relay.stop()));
  await ledger.close();
});

function startRelay(deliver: AlertSink['deliver'], from: Ledger = ledger, idleMs = 60_000): OutboxRelay {
  const relay = new OutboxRelay({
    ledger: from,
    log: silent,
    sink: { deliver },
    idleMs,
    deliveryMs: 200,
    retryMs: 1,
    random: () => 0,
  });
  relays.push(relay);
  relay.start();
  return relay;
}

/** One alert, committed with the state it announces. */
async function raiseAlert(name: string): Promise<void> {
  const principal = { tenant: 'acme', subject: 'ann', roles: [] };
  const reserved = await ledger.reserve({
    operationId: `op_${name}`,
    principal,
    action: 'pay',
    key: name,
    keyed: true,
    contractVersion: 1,
    effect: 'unsafe',
    fingerprint: { sent: name, input: name },
    arguments: {},
    attach: false,
  });
  if (reserved.kind !== 'fresh') throw new Error(reserved.kind);
  const { taskId, ordinal } = reserved;
  const claimed = await ledger.claim({
    operationId: `op_${name}`,
    taskId,
    ordinal,
    attempt: 1,
    claimMs: 1_000,
    attemptMs: 1_000,
    executing: true,
    notes: [],
  });
  if (claimed.kind !== 'granted') throw new Error(claimed.kind);
  const failure = { kind: 'unknown', code: 'outcome_unknown', message: 'no answer' } as const;
  const alert = {
    type: 'needs_attention',
    taskId,
    operationId: `op_${name}`,
    tenant: 'acme',
    action: 'pay',
    message: name,
    data: {},
  } as const;
  await ledger.raiseAttention(claimed.claim, failure, alert);
}

const unsent = async () => (await ledger.alerts({ tenant: 'acme' })).filter(({ sentAt }) => sentAt === null);

describe('the relay of alerts', () => {
  test('delivers what was there before it started, and what comes later without waiting for its next look [S9]', async () => {
    const seen: string[] = [];
    await raiseAlert('before');
    startRelay(async ({ alert }) => void seen.push(alert.message));
    await expect.poll(() => seen).toEqual(['before']);
    await raiseAlert('later');
    await expect.poll(() => seen).toEqual(['before', 'later']);
    await expect.poll(unsent).toEqual([]);
  });

  test('delivers again what a sink threw at, until it takes it; the others are not lost meanwhile [S6.5]', async () => {
    const seen: string[] = [];
    let failures = 3;
    await raiseAlert('stubborn');
    await raiseAlert('easy');
    startRelay(async ({ alert }) => {
      if (alert.message === 'stubborn' && failures-- > 0) throw new Error('the pager is down');
      seen.push(alert.message);
    });
    await expect.poll(() => [...seen].sort(), { timeout: 5_000 }).toEqual(['easy', 'stubborn']);
    await expect.poll(unsent).toEqual([]);
  });

  test('is not held up by a heap of alerts that no sink takes', async () => {
    const seen: string[] = [];
    for (let index = 0; index < 7; index += 1) await raiseAlert(`poison-${index}`);
    await raiseAlert('news');
    startRelay(async ({ alert }) => {
      if (alert.message.startsWith('poison')) throw new Error('unreadable');
      seen.push(alert.message);
    });
    await expect.poll(() => seen, { timeout: 5_000 }).toEqual(['news']);
  });

  test('does not wait for ever for a sink that ignores its signal', async () => {
    let attempts = 0;
    await raiseAlert('hanging');
    startRelay(() => {
      attempts += 1;
      return attempts === 1 ? new Promise(() => undefined) : Promise.resolve();
    });
    await expect.poll(() => attempts, { timeout: 5_000 }).toBe(2);
    await expect.poll(unsent).toEqual([]);
  });

  test('shares the outbox with others: one alert is delivered by one of them [S9]', async () => {
    const seen: string[] = [];
    for (const name of ['a', 'b', 'c', 'd', 'e']) await raiseAlert(name);
    for (let index = 0; index < 3; index += 1) startRelay(async ({ alert }) => void seen.push(alert.message));
    await expect.poll(unsent).toEqual([]);
    expect([...seen].sort()).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  test('that dies between delivery and mark leaves the alert to be delivered again, under the same id', async () => {
    await raiseAlert('twice');
    const ids: number[] = [];
    const dying = new Proxy(ledger, {
      get: (target, name: keyof Ledger) =>
        name === 'markSent' ? () => Promise.reject(new Error('killed')) : target[name],
    });
    const [message] = await dying.claimOutbox(1, 1);
    ids.push(message!.id); // delivered, and the process is gone before it says so
    startRelay(async ({ id }) => void ids.push(id), ledger, 20);
    await expect.poll(() => ids, { timeout: 5_000 }).toEqual([message!.id, message!.id]);
  });

  test('goes on when the ledger is away for a while', async () => {
    const seen: string[] = [];
    let isAway = true;
    const flaky = new Proxy(ledger, {
      get: (target, name: keyof Ledger) =>
        name === 'claimOutbox' && isAway ? () => Promise.reject(new Error('away')) : target[name],
    });
    await raiseAlert('late');
    startRelay(async ({ alert }) => void seen.push(alert.message), flaky);
    setTimeout(() => (isAway = false), 120);
    await expect.poll(() => seen, { timeout: 5_000 }).toEqual(['late']);
  });
});
