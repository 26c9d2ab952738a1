import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { HoldfastClient } from '../../src/client/index.ts';
import { HoldfastError } from '../../src/contract/error.ts';
import { defineAction, defineProcedure, implementAction } from '../../src/index.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { openLedger } from '../../src/ledger/open-ledger.ts';
import type { TaskEnd } from '../../src/task/outcome.ts';
import { HandDrivenEngine } from '../support/hand-driven-engine.ts';

const ann = { tenant: 'acme', subject: 'ann', roles: [] };
const eve = { tenant: 'other', subject: 'eve', roles: [] };

const transfer = implementAction(
  defineAction({
    name: 'transfer',
    version: 1,
    description: 'moves money',
    effect: 'conditional',
    input: z.object({ to: z.string(), amount: z.int(), note: z.string().default('') }),
    output: z.object({ id: z.string() }),
    rollback: { kind: 'outOfBand' },
    verify: { none: 'the bank says so' },
  }),
  { execute: async (_input, { operationId }) => ({ id: operationId }) },
);
const look = implementAction(
  defineAction({
    name: 'look',
    version: 1,
    description: 'reads',
    effect: 'safe',
    ledger: 'optional',
    input: z.object({ id: z.string() }),
    output: z.object({}),
  }),
  { execute: async () => ({}) },
);

const trip = defineProcedure({ name: 'pack', description: 'packs', input: z.object({}) });

let ledger: Ledger;
let engine: HandDrivenEngine;
const newClient = (own: Ledger = ledger) =>
  new HoldfastClient(
    { temporal: null as never, ledger: own, actions: [transfer, look, trip], taskQueue: 'q' },
    engine,
  );

beforeEach(async () => {
  ledger = await openLedger({ url: 'sqlite::memory:', allowEphemeral: true });
  await ledger.migrate();
  engine = new HandDrivenEngine();
});
afterEach(async () => {
  await ledger.close();
});

const call = { action: 'transfer', args: { to: 'bob', amount: 10 }, key: 'invoice-7', principal: ann };
const done = {
  status: 'completed',
  effect: 'applied',
  cause: 'committed',
  error: null,
  cancelRequested: false,
} as const;

async function errorOf(work: Promise<unknown>): Promise<HoldfastError> {
  const error: unknown = await work.then(
    () => new Error('it did not throw'),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof HoldfastError)) throw error;
  return error;
}

/** As the activity would: claimed, executed, committed with its end. */
async function commit(
  taskId: string,
  value: { id: string } = { id: 'tx' },
  end: TaskEnd | null = done,
): Promise<void> {
  const row = await ledger.findByTask(taskId);
  if (!row) throw new Error('no row');
  const { operationId, ordinal } = row;
  const answer = await ledger.claim({
    operationId,
    taskId,
    ordinal,
    attempt: 1,
    claimMs: 5_000,
    attemptMs: 5_000,
    executing: true,
    notes: [],
  });
  if (answer.kind !== 'granted') throw new Error(answer.kind);
  await ledger.commit(answer.claim, { kind: 'inline', value }, { verified: true, how: 'executed', end });
}

async function claimOnly(taskId: string): Promise<void> {
  const row = await ledger.findByTask(taskId);
  if (!row) throw new Error('no row');
  const { operationId, ordinal } = row;
  await ledger.claim({
    operationId,
    taskId,
    ordinal,
    attempt: 1,
    claimMs: 5_000,
    attemptMs: 5_000,
    executing: true,
    notes: [],
  });
}

describe('starting', () => {
  test('the same call twice meets the same task, which is started once [S1.5]', async () => {
    const first = await newClient().start(call);
    const second = await newClient().start(call);
    expect(second.taskId).toBe(first.taskId);
    expect([...engine.starts.values()]).toEqual([1]);
    expect(first).toMatchObject({
      status: 'running',
      replayed: false,
      attached: false,
      stale: false,
      autoRetry: true,
    });
  });

  test('twenty callers at the same moment meet one task, which is started once [S1.5]', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => newClient().start(call)));
    expect(new Set(answers.map(({ taskId }) => taskId)).size).toBe(1);
    expect([...engine.starts.values()]).toEqual([1]);
  });

  test('a client that died between reserving and starting is healed by the next call [S1.5]', async () => {
    engine.isReachable = false;
    const error = await errorOf(newClient().start(call));
    expect(error).toMatchObject({
      ...{
        code: 'engine_unavailable',
        retryable: true,
        message: expect.stringMatching('safe to repeat') as string,
      },
    });
    expect(engine.runs.size).toBe(0);
    engine.isReachable = true;
    const answer = await newClient().start(call);
    expect([...engine.starts]).toEqual([[answer.taskId, 1]]);
  });

  test('a key that was used with other arguments names the paths that differ, and no value [S2.1, M1.3]', async () => {
    const { taskId } = await newClient().start(call);
    const error = await errorOf(newClient().start({ ...call, args: { to: 'bob', amount: 1_000_077 } }));
    expect(error.code).toBe('idempotency_conflict');
    expect(error.details).toMatchObject({ paths: ['/amount'], taskId });
    expect(JSON.stringify(error)).not.toMatch(/1000077|"10"/);
  });

  test('defaults written out, or another order of the arguments, are the same call [S1.4]', async () => {
    const { taskId } = await newClient().start(call);
    const again = await newClient().start({ ...call, args: { note: '', amount: 10, to: 'bob' } });
    expect(again.taskId).toBe(taskId);
  });

  test('a spent key is answered from the row, without the engine, flagged replayed [S1.5, M1.3]', async () => {
    const { taskId } = await newClient().start(call);
    await commit(taskId, { id: 'tx-1' });
    engine.isReachable = false;
    const answer = await newClient().start(call);
    expect(answer).toMatchObject({
      taskId,
      status: 'completed',
      effect: 'applied',
      replayed: true,
      result: { id: 'tx-1' },
    });
    expect(answer.statusMessage).toMatch(/nothing was sent now/);
  });

  test('a key whose task ended with nothing sent starts the next task [S1.6]', async () => {
    const first = await newClient().start(call);
    const row = await ledger.findByTask(first.taskId);
    await ledger.closeTask({
      operationId: row!.operationId,
      taskId: first.taskId,
      ordinal: 1,
      attempt: 0,
      notes: [],
      end: { status: 'cancelled', effect: 'none', cause: 'cancelled', error: null, cancelRequested: true },
    });
    engine.complete(first.taskId, { status: 'cancelled', effect: 'none', cause: 'cancelled' });
    const second = await newClient().start(call);
    expect(second.taskId).not.toBe(first.taskId);
    expect(second).toMatchObject({ status: 'running', replayed: false });
    expect(await newClient().get(first.taskId, ann)).toMatchObject({ status: 'cancelled', effect: 'none' });
  });

  test('the same key of another tenant is another operation [M7.1]', async () => {
    const mine = await newClient().start(call);
    const theirs = await newClient().start({ ...call, principal: eve });
    expect(theirs.taskId).not.toBe(mine.taskId);
  });

  test('a task that the engine closed before anything was sent ends, and the key may be used again [S3.8]', async () => {
    const first = await newClient().start(call);
    engine.kill(first.taskId);
    const second = await newClient().start(call);
    expect(second.taskId).not.toBe(first.taskId);
    expect(await newClient().get(first.taskId, ann)).toMatchObject({
      status: 'failed',
      effect: 'none',
      cause: 'engine_closed',
    });
  });

  test('a task that the engine closed in flight goes on under the next ordinal, with its own plan [S3.8]', async () => {
    const first = await newClient().start(call);
    await claimOnly(first.taskId);
    engine.kill(first.taskId);
    const second = await newClient().start(call);
    expect(second.taskId).not.toBe(first.taskId);
    expect(engine.runs.get(second.taskId)?.start).toMatchObject({
      ordinal: 2,
      input: { to: 'bob', amount: 10, note: '' },
    });
    expect((await ledger.findByTask(second.taskId))?.state).toBe('in_flight');
  });

  test('one that is read rather than called is recovered too, and still answers to its first id [S3.8]', async () => {
    const first = await newClient().start(call);
    await claimOnly(first.taskId);
    engine.kill(first.taskId);
    const read = await newClient().get(first.taskId, ann);
    expect(read).toMatchObject({ taskId: first.taskId, status: 'running' });
    expect(engine.runs.size).toBe(2);
    expect(await newClient().get(first.taskId, ann)).toMatchObject({ taskId: first.taskId });
    expect(engine.runs.size).toBe(2);
  });

  test('a client that died between recovery and restart is healed by the next reader [S3.8]', async () => {
    const first = await newClient().start(call);
    await claimOnly(first.taskId);
    engine.kill(first.taskId);
    const row = await ledger.findByTask(first.taskId);
    const recovered = await ledger.recover(row!.operationId, first.taskId); // and the client dies here
    await newClient().get(recovered.row.taskId, ann);
    expect(engine.runs.get(recovered.row.taskId)?.start).toMatchObject({ ordinal: 2 });
  });

  test('a deleted workflow of an operation in flight is started again by the next call, not by a reader without arguments', async () => {
    const first = await newClient().start(call);
    await claimOnly(first.taskId);
    engine.forget(first.taskId);
    expect(await newClient().get(first.taskId, ann)).toMatchObject({ stale: true, status: 'running' });
    expect(engine.runs.size).toBe(0);
    expect(await newClient().start(call)).toMatchObject({ taskId: first.taskId });
    expect(engine.runs.size).toBe(1);
  });

  test('a procedure whose histories can not be read goes on under the keys of the run that began its steps [S1.2, S3.8]', async () => {
    const pack = { ...call, action: 'pack', args: {}, key: 'trip-1' };
    const first = await newClient().start(pack);
    engine.areHistoriesReadable = false;
    let { taskId } = first;
    for (const ordinal of [2, 3]) {
      await claimOnly(taskId);
      engine.kill(taskId);
      ({ taskId } = await newClient().start(pack));
      const { start } = engine.runs.get(taskId) ?? {};
      expect([start?.ordinal, start?.plan.procedure]).toEqual([ordinal, { origin: first.taskId }]);
    }
    engine.forget(taskId);
    await newClient().start(pack);
    expect(engine.runs.get(taskId)?.start.plan.procedure).toEqual({ origin: first.taskId });
  });

  describe('a commit without its end, kept for a rollback that nobody asked for [S7.4]', () => {
    const goneOrReturned: [string, (taskId: string) => void][] = [
      ['is gone', (taskId) => engine.forget(taskId)],
      ['has returned', (taskId) => engine.complete(taskId, { cancelRequested: true })],
    ];
    test.each(goneOrReturned)('is ended by the next reader once the workflow %s', async (_what, close) => {
      const { taskId } = await newClient().start(call);
      await commit(taskId, { id: 'tx' }, null);
      close(taskId);
      const answer = { status: 'completed', effect: 'applied', result: { id: 'tx' } };
      expect(await newClient().get(taskId, ann)).toMatchObject(answer);
      expect((await ledger.findByTask(taskId))?.end).toMatchObject({ status: 'completed' });
    });

    test.each(goneOrReturned)(
      'is answered replayed by the next call once the workflow %s',
      async (_what, close) => {
        const { taskId } = await newClient().start(call);
        await commit(taskId, { id: 'tx' }, null);
        close(taskId);
        expect(await newClient().start(call)).toMatchObject({ taskId, status: 'completed', replayed: true });
      },
    );

    test('is still open while the workflow runs', async () => {
      const { taskId } = await newClient().start(call);
      await commit(taskId, { id: 'tx' }, null);
      expect(await newClient().start(call)).toMatchObject({ taskId, status: 'running', replayed: false });
    });
  });

  test('what the engine remembers and a younger ledger does not is never done again', async () => {
    const { taskId } = await newClient().start(call);
    engine.complete(taskId, { result: { kind: 'inline', value: { id: 'tx-old' } } });
    const younger = await openLedger({ url: 'sqlite::memory:', allowEphemeral: true });
    await younger.migrate();
    const answer = await newClient(younger).start(call);
    expect(answer).toMatchObject({ taskId, replayed: true, result: { id: 'tx-old' } });
    await younger.close();
  });

  test('an unknown action, wrong arguments and a wrong key are refused before anything is reserved [M1.2]', async () => {
    expect((await errorOf(newClient().start({ ...call, action: 'nope' }))).code).toBe('unknown_action');
    expect((await errorOf(newClient().start({ ...call, args: { to: 'bob', amount: 1.5 } }))).code).toBe(
      'invalid_arguments',
    );
    expect((await errorOf(newClient().start({ ...call, key: '' }))).code).toBe('invalid_key');
    expect(await ledger.list({ tenant: 'acme' })).toEqual([]);
  });
});

describe('a call that meets a cancel intent [M1.4]', () => {
  const cancelled = {
    status: 'cancelled',
    effect: 'none',
    cause: 'cancelled',
    error: null,
    cancelRequested: true,
  } as const;
  /** The task that was told to cancel ends once the next call waits for that. */
  async function endLater(taskId: string, end: TaskEnd): Promise<void> {
    await vi.waitFor(() => expect(engine.awaited).toContain(taskId));
    const { operationId } = (await ledger.findByTask(taskId))!;
    if (end.effect === 'none') {
      await ledger.closeTask({ operationId, taskId, ordinal: 1, attempt: 0, end, notes: [] });
    } else await commit(taskId);
    engine.complete(taskId, end);
  }

  test('waits for the end and, as nothing was sent, starts the next task', async () => {
    const { taskId } = await newClient().start(call);
    await newClient().cancel(taskId, ann);
    const [again] = await Promise.all([newClient().start(call), endLater(taskId, cancelled)]);
    expect(again).toMatchObject({ status: 'running', cancelRequested: false });
    expect(again.taskId).not.toBe(taskId);
  });

  test('without a key takes the effect that came before the cancel for its own', async () => {
    const { key: _key, ...keyless } = call;
    const { taskId } = await newClient().start(keyless);
    await newClient().cancel(taskId, ann);
    const end = { ...done, cancelRequested: true };
    const [again] = await Promise.all([newClient().start(keyless), endLater(taskId, end)]);
    expect(again).toMatchObject({ taskId, status: 'completed', effect: 'applied' });
    expect(engine.runs.size).toBe(1);
  });
});

describe('without a key', () => {
  const keyless = { action: 'transfer', args: { to: 'bob', amount: 10 }, principal: ann };

  test('an equal call while the first is open attaches to it, and says so [M1.4]', async () => {
    const first = await newClient().start(keyless);
    const second = await newClient().start(keyless);
    expect(second).toMatchObject({ taskId: first.taskId, attached: true, autoRetry: false });
    expect(second.statusMessage).toMatch(/without an idempotency key/);
  });

  test('it does not where attaching is switched off, for another subject, or once the task has ended [M1.4]', async () => {
    const first = await newClient().start(keyless);
    expect((await newClient().start({ ...keyless, attach: false })).taskId).not.toBe(first.taskId);
    expect((await newClient().start({ ...keyless, principal: { ...ann, subject: 'bob' } })).taskId).not.toBe(
      first.taskId,
    );
    await commit(first.taskId);
    expect((await newClient().start(keyless)).taskId).not.toBe(first.taskId);
  });

  test('where nobody says whether it was started, the task is named; a repeat without a key is not called safe [M1.5] [M1.4]', async () => {
    engine.isReachable = false;
    const attaching = await errorOf(newClient().start(keyless));
    const alone = await errorOf(newClient().start({ ...keyless, attach: false }));
    engine.isReachable = true;
    expect(attaching).toMatchObject({
      code: 'engine_unavailable',
      message: expect.stringMatching('Ask for the task before') as string,
    });
    expect(alone).toMatchObject({
      code: 'engine_unavailable',
      message: expect.stringMatching('Ask for the task before') as string,
    });
    const { taskId } = alone.toJSON().details as { taskId: string };
    expect(await newClient().get(taskId, ann)).toMatchObject({ taskId, status: 'proposed' });
  });

  test('a call that attaches to one never started starts it under that one’s own identity [M1.4, S1.5]', async () => {
    engine.isReachable = false;
    await errorOf(newClient().start(keyless));
    engine.isReachable = true;
    const { taskId, operationId } = await newClient().start(keyless);
    const row = (await ledger.findByTask(taskId))!;
    expect(row.operationId).toBe(operationId);
    expect(engine.runs.get(taskId)?.start.plan).toMatchObject({
      operationId: row.operationId,
      key: row.key,
      keyed: false,
    });
  });
});

describe('while the ledger is away', () => {
  const broken = (): Ledger =>
    new Proxy(ledger, {
      get(target, name) {
        if (name === 'onOutbox' || name === 'kind') return target[name as 'kind'];
        return () => Promise.reject(new HoldfastError('ledger_unavailable', 'The ledger does not answer.'));
      },
    });

  test('nothing that changes the world is started', async () => {
    const error = await errorOf(newClient(broken()).start(call));
    expect(error).toMatchObject({ code: 'ledger_unavailable', retryable: true });
    expect(engine.runs.size).toBe(0);
  });

  test('a read whose contract allows it runs unrecorded, and is found by its tenant alone', async () => {
    const client = newClient(broken());
    const { taskId } = await client.start({ action: 'look', args: { id: 'x' }, principal: ann });
    expect(engine.runs.get(taskId)?.start.plan.recorded).toBe(false);
    expect(await client.get(taskId, ann)).toMatchObject({ taskId, action: 'look' });
    expect((await errorOf(client.get(taskId, eve))).code).toBe('task_not_found');
  });
});

describe('a program that calls it wrong', () => {
  test.each([5, null, undefined, {}, 'no such'])('is told that no action has the name %j', async (action) => {
    const error = await errorOf(newClient().start({ ...call, action: action as string }));
    expect(error.code).toBe('unknown_action');
  });

  test.each([null, undefined, 'applied', 5, {}, { as: 'done' }])(
    'is told how a resolution is written, not %j',
    async (input) => {
      const { taskId } = await newClient().start(call);
      const error = await errorOf(newClient().resolve(taskId, ann, input as never));
      expect(error).toMatchObject({ code: 'invalid_resolution' });
      expect(error.message).toContain('abandoned');
    },
  );
});
