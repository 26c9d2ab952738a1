/** The client against the real server (the time-skipping one can neither delete nor terminate as it does). */
import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { HoldfastClient } from '../../src/client/index.ts';
import { HoldfastError } from '../../src/contract/error.ts';
import {
  ActionFailure,
  applied,
  defineAction,
  implementAction,
  notApplied,
  sensitive,
  unknown,
} from '../../src/index.ts';
import type { Action } from '../../src/index.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { createTestHoldfast, openTestServer } from '../../src/testing/index.ts';
import type { TestHoldfast, TestServer } from '../../src/testing/index.ts';
import { watchDeadlines } from '../support/deadlines.ts';
import { deferred } from '../support/deferred.ts';
import { HandDrivenEngine } from '../support/hand-driven-engine.ts';

const ann = { tenant: 'acme', subject: 'ann', roles: ['operator'] };
const eve = { tenant: 'other', subject: 'eve', roles: [] };

/** The outside world: it counts, it dedupes by operationId where it is asked to, and it can hold its answer. */
class Bank {
  readonly calls: string[] = [];
  readonly done = new Map<string, { id: string }>();
  gate: Promise<void> = Promise.resolve();
  lookups = 0;
  mode: 'works' | 'silent' | 'blind' = 'works';

  async pay(operationId: string): Promise<{ id: string }> {
    this.calls.push(operationId);
    const result = { id: `tx-${this.calls.length}` };
    if (!this.done.has(operationId)) this.done.set(operationId, result);
    await this.gate;
    if (this.mode !== 'works') throw new Error('connection reset');
    return this.done.get(operationId) ?? result;
  }
}

function actionsOf(bank: Bank): Action[] {
  const common = { version: 1, description: 'moves money', verify: { none: 'the bank says so' } } as const;
  const input = z.object({ to: z.string(), amount: z.int() });
  const output = z.object({ id: z.string() });
  return [
    implementAction(
      defineAction({
        ...common,
        name: 'transfer',
        effect: 'conditional',
        input,
        output,
        rollback: { kind: 'outOfBand' },
        deadlines: { attempt: '20s', settle: 0 },
        retry: { initialInterval: '50ms' },
      }),
      {
        execute: async (_input, { operationId }) => bank.pay(operationId),
        lookup: async ({ operationId }) => {
          bank.lookups += 1;
          if (bank.mode === 'blind') return unknown();
          const result = bank.done.get(operationId);
          return result ? applied(result) : notApplied();
        },
      },
    ),
    implementAction(
      defineAction({
        ...common,
        name: 'wire',
        effect: 'unsafe',
        input,
        output,
        rollback: { kind: 'outOfBand' },
      }),
      { execute: async (_input, { operationId }) => bank.pay(operationId) },
    ),
    implementAction(
      defineAction({
        ...common,
        name: 'charge',
        effect: 'conditional',
        rollback: { kind: 'outOfBand' },
        input: z.object({ card: sensitive(z.string()), to: z.string() }),
        output: z.object({ id: z.string(), receipt: sensitive(z.string()) }),
        deadlines: { settle: 0 },
        retry: { maximumRetries: 1, initialInterval: '50ms' },
      }),
      {
        execute: async ({ card, to }, { operationId }) => {
          if (to === 'nobody') throw ActionFailure.permanent(`the card ${card} was refused`);
          if (to === 'crash') throw new Error(`no such account for ${card}`);
          return { ...(await bank.pay(operationId)), receipt: `receipt for ${card}` };
        },
        lookup: async () => notApplied(),
      },
    ),
  ];
}

let server: TestServer;
let bank: Bank;
let holdfast: TestHoldfast;
let client: HoldfastClient;
beforeAll(async () => {
  server = await openTestServer('local');
});
afterAll(() => server.close());
beforeEach(async () => {
  bank = new Bank();
  const actions = actionsOf(bank).filter(({ contract }) => contract.name !== 'charge');
  holdfast = await createTestHoldfast({ actions, server });
  client = holdfast.client;
});
afterEach(() => holdfast.close());

const call = () => ({
  action: 'transfer',
  args: { to: 'bob', amount: 10 },
  key: randomUUID(),
  principal: ann,
});
const wait = (taskId: string, timeoutMs = 20_000) => client.wait(taskId, ann, { timeoutMs });

async function errorOf(work: Promise<unknown>): Promise<HoldfastError> {
  const error: unknown = await work.then(
    () => new Error('it did not throw'),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof HoldfastError)) throw error;
  return error;
}

async function timed<T>(work: Promise<T>): Promise<{ value: T; tookMs: number }> {
  const began = performance.now();
  const value = await work;
  return { value, tookMs: performance.now() - began };
}

describe('the same call', () => {
  test('made again while the first is at work, by another client, meets the same task and one effect [S1.5]', async () => {
    const held = deferred<void>();
    bank.gate = held.promise;
    const request = call();
    const first = await client.start(request);
    await expect.poll(() => bank.calls.length).toBe(1);
    const second = await holdfast.newClient().start(request);
    expect(second).toMatchObject({ taskId: first.taskId, status: 'running', replayed: false });
    held.resolve();
    const answers = await Promise.all([
      wait(first.taskId),
      holdfast.newClient().wait(first.taskId, ann, { timeoutMs: 20_000 }),
    ]);
    for (const answer of answers)
      expect(answer).toMatchObject({ status: 'completed', effect: 'applied', result: { id: 'tx-1' } });
    expect(bank.calls).toHaveLength(1);
  });

  test('made by ten clients at a barrier is one task and one effect [S1.5]', async () => {
    const request = call();
    const clients = Array.from({ length: 10 }, () => holdfast.newClient());
    const answers = await Promise.all(clients.map((each) => each.start(request)));
    expect(new Set(answers.map(({ taskId }) => taskId)).size).toBe(1);
    await wait(answers[0]!.taskId);
    expect(bank.calls).toHaveLength(1);
  });

  test('made again after its end is answered replayed, and after the engine’s retention too [S1.5, M2.2]', async () => {
    const request = call();
    const { taskId } = await client.start(request);
    const { result } = await wait(taskId);
    expect(await client.start(request)).toMatchObject({ taskId, replayed: true, result });
    const forgetful = await openTestServer('local'); // an engine that remembers nothing
    const later = holdfast.newClient({ temporal: forgetful.env.client });
    expect(await later.start(request)).toMatchObject({ taskId, replayed: true, result });
    const read = { taskId, status: 'completed', effect: 'applied', stale: false, replayed: false, result };
    expect(await later.get(taskId, ann)).toMatchObject(read);
    expect(await later.wait(taskId, ann, { timeoutMs: 1_000 })).toMatchObject(read);
    expect(await later.detail(taskId, ann)).toMatchObject({
      ...read,
      events: [],
      attempts: [{ attempt: 1 }],
    });
    expect(await later.cancel(taskId, ann)).toMatchObject({ code: 'already_ended', status: 'completed' });
    expect(await later.audit(taskId, ann)).not.toHaveLength(0);
    expect((await errorOf(later.get(taskId, eve))).code).toBe('task_not_found');
    await forgetful.close();
    expect(bank.calls).toHaveLength(1);
  });

  test('made again because the reply was lost, attaches instead of failing [S1.5]', async () => {
    const request = call();
    void client.start(request).catch(() => undefined); // nobody reads this answer
    const { taskId } = await holdfast.newClient().start(request);
    expect(await wait(taskId)).toMatchObject({ status: 'completed' });
    expect(bank.calls).toHaveLength(1);
  });
});

describe('reading', () => {
  test('a foreign task looks like an unknown one, whatever is asked of it [M2.6]', async () => {
    const { taskId } = await client.start(call());
    await wait(taskId);
    const asked = [
      () => client.get(taskId, eve),
      () => client.detail(taskId, eve),
      () => client.audit(taskId, eve),
      () => client.wait(taskId, eve, { timeoutMs: 1 }),
      () => client.cancel(taskId, eve),
      () => client.resolve(taskId, eve, { as: 'abandoned' }),
      () => client.get('task_unknown', ann),
      // Not even possible ids, which an engine or a database would choke on.
      ...['', 'task_\ud800', 'task_\0', 'x'.repeat(1_001), 7 as never].map((id) => () => client.get(id, ann)),
    ];
    const errors = await Promise.all(asked.map((ask) => errorOf(ask())));
    expect(new Set(errors.map(({ code, message }) => `${code} ${message}`)).size).toBe(1);
    expect(errors[0]?.code).toBe('task_not_found');
    expect(await client.list(eve)).toEqual([]);
  });

  test('with no worker alive answers the last known state within its deadline of 1.5 s, marked stale [M2.2]', async () => {
    await holdfast.stopWorker();
    const started = await client.start(call());
    const longestMs = watchDeadlines();
    const read = await client.get(started.taskId, ann);
    expect(longestMs()).toBeGreaterThan(0);
    expect(longestMs()).toBeLessThanOrEqual(1_500);
    expect(read).toMatchObject({ stale: true, status: 'proposed', effect: 'none' });
    expect(read.statusMessage).toMatch(/no worker answered/);
    expect((await client.wait(started.taskId, ann, { timeoutMs: 1_000 })).stale).toBe(true);
    expect(longestMs()).toBeLessThanOrEqual(1_500);
  });

  test('the detail of a task shows its journal, its attempts and its alerts', async () => {
    bank.mode = 'silent';
    const { taskId } = await client.start(call());
    await wait(taskId);
    const detail = await client.detail(taskId, ann);
    expect(detail.events.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['task_started', 'attempt_scheduled', 'task_ended']),
    );
    expect(detail.attempts[0]).toMatchObject({ attempt: 1 });
    expect(detail).toMatchObject({ approval: null, cancelAsked: false, alerts: [] });
  });

  test('the list has the tenant’s tasks, by status and action, newest first', async () => {
    const one = await client.start(call());
    await wait(one.taskId);
    bank.mode = 'silent';
    const two = await client.start({ ...call(), action: 'wire' });
    await wait(two.taskId);
    const ids = async (filter?: Parameters<HoldfastClient['list']>[1]) =>
      (await client.list(ann, filter)).map(({ taskId }) => taskId);
    expect(await ids()).toEqual([two.taskId, one.taskId]);
    expect(await ids({ status: 'needs_attention' })).toEqual([two.taskId]);
    expect(await ids({ status: 'completed' })).toEqual([one.taskId]);
    expect(await ids({ status: 'open', action: 'transfer' })).toEqual([]);
  });

  test('a large result comes back whole, though it is kept by reference [field case 14]', async () => {
    const id = 'x'.repeat(1_900_000);
    bank.pay = async () => ({ id });
    const { taskId } = await client.start(call());
    const answer = await wait(taskId);
    expect(answer.status).toBe('completed');
    expect((answer.result as { id: string }).id === id).toBe(true);
  });
});

describe('waiting', () => {
  test('ends when the time is over, without touching the task', async () => {
    const held = deferred<void>();
    bank.gate = held.promise;
    const { taskId } = await client.start(call());
    const { value, tookMs } = await timed(client.wait(taskId, ann, { timeoutMs: 300 }));
    expect(value.status).toBe('running');
    expect(tookMs).toBeGreaterThanOrEqual(290); // and before the gate opens
    held.resolve();
    expect(await wait(taskId)).toMatchObject({ status: 'completed' });
  });

  test('ends when its signal aborts, at once', async () => {
    const held = deferred<void>();
    bank.gate = held.promise;
    const { taskId } = await client.start(call());
    const leaving = new AbortController();
    setTimeout(() => leaving.abort(), 200);
    const { value, tookMs } = await timed(
      client.wait(taskId, ann, { timeoutMs: 20_000, signal: leaving.signal }),
    );
    expect(value.status).toBe('running');
    expect(tookMs).toBeLessThan(20_000);
    held.resolve();
  });

  test('ends when the task needs a person, in words that keep a model from calling again [M1.5]', async () => {
    bank.mode = 'silent';
    const { taskId } = await client.start({ ...call(), action: 'wire' });
    const answer = await wait(taskId);
    expect(answer).toMatchObject({ status: 'needs_attention', effect: null });
    expect(answer.statusMessage).toContain('not done, not failed');
    expect(answer.statusMessage).toContain(`Do not call again; ask for task ${taskId}`);
    expect(bank.calls).toHaveLength(1);
  });

  test('by another process, without hints, hears of the end by the engine’s own push', async () => {
    const held = deferred<void>();
    bank.gate = held.promise;
    const { taskId } = await client.start(call());
    // Who looks into this ledger learns of no end, and the wait is longer than the test may take.
    const findByTask: Ledger['findByTask'] = async (id) => {
      const row = await holdfast.ledger.findByTask(id);
      return row && { ...row, state: 'in_flight', end: null };
    };
    const other = holdfast.newClient({ ledger: { ...holdfast.ledger, findByTask } });
    const waited = other.wait(taskId, ann, { timeoutMs: 600_000 });
    await expect.poll(() => bank.calls.length).toBe(1);
    held.resolve();
    expect((await waited).status).toBe('completed');
  });

  test('tells whoever listens of each change on the way', async () => {
    const held = deferred<void>();
    bank.gate = held.promise;
    bank.mode = 'silent';
    const { taskId } = await client.start({ ...call(), action: 'wire' });
    const seen: string[] = [];
    const waiting = client.wait(taskId, ann, {
      timeoutMs: 20_000,
      onChange: ({ status }) => seen.push(status),
    });
    await expect.poll(() => seen.length, { timeout: 5_000 }).toBeGreaterThan(0);
    held.resolve();
    await waiting;
    expect(seen[0]).toBe('running');
  });
});

describe('cancel', () => {
  test('before the effect ends the task with nothing sent, and the key may be used again [S7.4, S1.6]', async () => {
    await holdfast.stopWorker();
    const request = call();
    const { taskId } = await client.start(request);
    const longestMs = watchDeadlines();
    expect(await client.cancel(taskId, ann, 'changed my mind')).toMatchObject({
      accepted: true,
      code: 'requested',
    });
    expect(longestMs()).toBeLessThanOrEqual(10_000);
    await holdfast.startWorker();
    expect(await wait(taskId)).toMatchObject({ status: 'cancelled', effect: 'none', cancelRequested: true });
    expect(bank.calls).toEqual([]);
    const again = await client.start(request);
    expect(again.taskId).not.toBe(taskId);
    expect(await wait(again.taskId)).toMatchObject({ status: 'completed' });
    expect(await client.get(taskId, ann)).toMatchObject({ taskId, status: 'cancelled', effect: 'none' });
  });

  test('during the effect is acknowledged as a request, and the effect runs to its recorded outcome [S7.4]', async () => {
    const held = deferred<void>();
    bank.gate = held.promise;
    const request = call();
    const { taskId } = await client.start(request);
    await expect.poll(() => bank.calls.length).toBe(1);
    expect(await client.cancel(taskId, ann)).toMatchObject({ accepted: true, code: 'requested' });
    expect(await client.get(taskId, ann)).toMatchObject({ status: 'running', cancelRequested: true });
    expect(await client.cancel(taskId, ann)).toMatchObject({ code: 'already_requested' });
    held.resolve();
    const end = { status: 'completed', effect: 'applied', cancelRequested: true };
    expect(await wait(taskId)).toMatchObject(end);
    expect(await client.get(taskId, ann)).toMatchObject(end);
    expect(await client.start(request)).toMatchObject({ ...end, replayed: true });
    expect(await client.cancel(taskId, ann)).toMatchObject({ accepted: false, code: 'already_ended' });
  });

  test('of a task reserved and never started ends it in the ledger, so that nobody starts it later', async () => {
    const unreachable = new HoldfastClient(
      {
        temporal: holdfast.temporal,
        ledger: holdfast.ledger,
        actions: actionsOf(bank),
        taskQueue: holdfast.taskQueue,
      },
      deadEngine(),
    );
    const request = call();
    expect((await errorOf(unreachable.start(request))).code).toBe('engine_unavailable');
    const [row] = await holdfast.ledger.list({ tenant: 'acme' });
    const taskId = row?.taskId ?? '';
    expect(await client.get(taskId, ann)).toMatchObject({ status: 'proposed' });
    expect(await client.cancel(taskId, ann)).toMatchObject({
      accepted: true,
      code: 'requested',
      status: 'cancelled',
    });
    expect(await client.get(taskId, ann)).toMatchObject({ status: 'cancelled', effect: 'none' });
    expect(bank.calls).toEqual([]);
  });
});

describe('resolve', () => {
  const inAttention = async (): Promise<string> => {
    bank.mode = 'silent';
    const { taskId } = await client.start({ ...call(), action: 'wire' });
    expect(await wait(taskId)).toMatchObject({ status: 'needs_attention' });
    return taskId;
  };
  const settled = async (taskId: string) => {
    await expect.poll(async () => (await client.get(taskId, ann)).status).not.toBe('needs_attention');
    return wait(taskId);
  };

  test('as applied, with the result the contract asks for, completes the task [S3.5]', async () => {
    const taskId = await inAttention();
    const wrong = await errorOf(client.resolve(taskId, ann, { as: 'applied', result: { idd: 1 } }));
    expect(wrong.code).toBe('invalid_resolution');
    expect(await client.resolve(taskId, ann, { as: 'applied', result: { id: 'seen' } })).toMatchObject({
      accepted: true,
    });
    expect(await settled(taskId)).toMatchObject({
      status: 'completed',
      effect: 'applied',
      result: { id: 'seen' },
    });
    expect(bank.calls).toHaveLength(1);
  });

  test('as abandoned ends the task with its effect unknown [S3.5]', async () => {
    const taskId = await inAttention();
    expect(await client.resolve(taskId, ann, { as: 'abandoned', note: 'gave up' })).toMatchObject({
      accepted: true,
    });
    const answer = await settled(taskId);
    expect(answer).toMatchObject({ status: 'failed', effect: 'unknown', cause: 'abandoned' });
    expect(answer.statusMessage).toMatch(/not done, not failed/);
  });

  test('as not applied sends it again [S3.5]', async () => {
    const taskId = await inAttention();
    bank.mode = 'works';
    expect(await client.resolve(taskId, ann, { as: 'not_applied' })).toMatchObject({ accepted: true });
    expect(await settled(taskId)).toMatchObject({ status: 'completed' });
    expect(bank.calls).toHaveLength(2);
  });

  test('with no worker alive is kept by the engine until one is [S4.8]', async () => {
    const taskId = await inAttention();
    await holdfast.stopWorker();
    expect(await client.resolve(taskId, ann, { as: 'applied', result: { id: 'seen' } })).toMatchObject({
      accepted: true,
      code: 'requested',
    });
    await holdfast.startWorker();
    expect(await settled(taskId)).toMatchObject({ status: 'completed', result: { id: 'seen' } });
  });

  test('of a task that needs nobody changes nothing', async () => {
    const { taskId } = await client.start(call());
    await wait(taskId);
    expect(await client.resolve(taskId, ann, { as: 'abandoned' })).toMatchObject({
      accepted: false,
      code: 'already_ended',
    });
  });
});

describe('closed from outside', () => {
  test('terminated before anything was sent: failed, nothing applied, and the key starts anew [S3.8]', async () => {
    await holdfast.stopWorker();
    const request = call();
    const { taskId } = await client.start(request);
    await holdfast.temporal.workflow.getHandle(taskId).terminate('by an operator');
    expect(await client.get(taskId, ann)).toMatchObject({
      status: 'failed',
      effect: 'none',
      cause: 'engine_closed',
    });
    await holdfast.startWorker();
    const again = await client.start(request);
    expect(again.taskId).not.toBe(taskId);
    expect(await wait(again.taskId)).toMatchObject({ status: 'completed', result: { id: 'tx-1' } });
  });

  test('terminated in flight: the next ordinal reconciles, and the effect is not repeated [S3.8, S2.4]', async () => {
    const held = deferred<void>();
    bank.gate = held.promise;
    const request = call();
    const { taskId } = await client.start(request);
    await expect.poll(() => bank.calls.length).toBe(1);
    const waiting = wait(taskId);
    await holdfast.temporal.workflow.getHandle(taskId).terminate('by an operator');
    const answer = await waiting;
    expect(answer).toMatchObject({ taskId, status: 'completed', effect: 'applied', result: { id: 'tx-1' } });
    expect(bank.calls).toHaveLength(1);
    expect(bank.lookups).toBeGreaterThan(0);
    expect(await client.start(request)).toMatchObject({ status: 'completed', replayed: true });
    held.resolve();
  });
});

describe('a bare Temporal client', () => {
  const bare = async (workflowId: string, key = randomUUID()) => {
    await holdfast.temporal.workflow.start('action', {
      workflowId,
      taskQueue: holdfast.taskQueue,
      args: [{ v: 1, action: 'transfer', input: { to: 'bob', amount: 3 }, key, principal: ann }],
    });
  };

  test('may start a task, which the client then finds by the workflow’s id, for its own tenant alone', async () => {
    const workflowId = `bare-${randomUUID()}`;
    await bare(workflowId);
    const result = await holdfast.temporal.workflow.getHandle(workflowId).result();
    expect(result).toMatchObject({ taskId: workflowId, status: 'completed' });
    expect(await wait(workflowId)).toMatchObject({
      taskId: workflowId,
      status: 'completed',
      effect: 'applied',
    });
    expect((await errorOf(client.get(workflowId, eve))).code).toBe('task_not_found');
    expect(bank.calls).toHaveLength(1);
  });

  test('meets the operation that a gateway started under the same key, and repeats nothing', async () => {
    const request = { ...call(), args: { to: 'bob', amount: 3 } };
    const { taskId } = await client.start(request);
    await wait(taskId);
    const workflowId = `bare-${randomUUID()}`;
    await bare(workflowId, request.key);
    expect(await holdfast.temporal.workflow.getHandle(workflowId).result()).toMatchObject({
      replayed: true,
      status: 'completed',
    });
    expect(bank.calls).toHaveLength(1);
  });
});

describe('with an encryption key', () => {
  const CANARY = 'canary-4111-1111';

  test('no history, and no row, holds a sensitive value in plain text [S2.10]', async () => {
    const keys = randomBytes(32).toString('base64');
    const secret = await createTestHoldfast({
      actions: actionsOf(bank),
      server: 'local',
      encryptionKey: keys,
    });
    try {
      const start = (to: string) =>
        secret.client.start({ action: 'charge', args: { card: CANARY, to }, key: `k-${to}`, principal: ann });
      const finish = async (to: string) =>
        secret.client.wait((await start(to)).taskId, ann, { timeoutMs: 20_000 });
      const [paid, refused, crashed] = [await finish('shop'), await finish('nobody'), await finish('crash')];
      expect(paid).toMatchObject({ status: 'completed', result: { receipt: `receipt for ${CANARY}` } });
      expect(refused.status).toBe('failed');
      for (const { taskId } of [paid, refused, crashed]) {
        const history = await secret.temporal.workflow.getHandle(taskId).fetchHistory();
        expect(JSON.stringify(history, encodeBytes)).not.toContain(CANARY);
        expect(JSON.stringify(await secret.client.audit(taskId, ann))).not.toContain(CANARY);
        expect(JSON.stringify(await secret.ledger.findByTask(taskId))).not.toContain(CANARY);
      }
      const replayed = await start('shop');
      expect(replayed).toMatchObject({ replayed: true, result: { receipt: '[redacted]' } });
      expect(await secret.client.get(paid.taskId, ann)).toMatchObject({
        result: { receipt: `receipt for ${CANARY}` },
      });
    } finally {
      await secret.close();
    }
  });

  test('a worker without one refuses contracts with sensitive fields', async () => {
    const error = await errorOf(createTestHoldfast({ actions: actionsOf(bank), server }));
    expect(error.code).toBe('encryption_key_required');
  });
});

function deadEngine(): HandDrivenEngine {
  const engine = new HandDrivenEngine();
  engine.isReachable = false;
  return engine;
}

/** Payload bytes as text, so that a search sees through them. */
function encodeBytes(_key: string, value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1');
  const json = value as { type?: unknown; data?: unknown } | null;
  if (json?.type === 'Buffer' && Array.isArray(json.data))
    return Buffer.from(json.data as number[]).toString('latin1');
  return typeof value === 'bigint' ? String(value) : value;
}
