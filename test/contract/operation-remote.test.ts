/** M8.4, S8.4: an execution that a server goes on with as a task of its own. The target's counter is the oracle. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ActionFailure, applied, notApplied, remoteTask } from '../../src/contract/handlers.ts';
import type { RemoteTaskHandle } from '../../src/contract/remote-server.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import type { RemoteSeen } from '../../src/task/remote.ts';
import type { JsonObject } from '../../src/task/json.ts';
import { deferred } from '../support/deferred.ts';
import { Operation, STORES } from '../support/operation-rig.ts';
import type { Handlers, OperationSpec, TestStore } from '../support/operation-rig.ts';

let handles = 0;
const freshHandle = (): RemoteTaskHandle => ({
  server: 'depot',
  tool: 'archive',
  taskId: `r-${(handles += 1)}`,
  pollIntervalMs: 1_000,
  ttlMs: null,
});

describe.each(STORES)('a remote task on $kind', ({ open }) => {
  let store: TestStore;
  let ledger: Ledger;
  beforeAll(async () => {
    store = await open();
    ledger = store.ledger;
  });
  afterAll(() => store.close());

  async function begun(spec: OperationSpec & { handlers?: Handlers } = {}) {
    const handle = freshHandle();
    let submitted = 0;
    const operation = await Operation.reserve(ledger, {
      ...spec,
      handlers: {
        execute: () => {
          submitted += 1;
          return Promise.resolve(remoteTask(handle) as never);
        },
        ...spec.handlers,
      },
    });
    return { operation, handle, submitted: () => submitted };
  }

  async function ended({ operationId }: Operation, seen: RemoteSeen, result: JsonObject | null = null) {
    const answer = await ledger.claimRemoteCall({ operationId, call: 'poll', worker: 'w', leaseMs: 60_000 });
    assert(answer.kind === 'granted');
    await ledger.settleRemoteCall(answer.claim, {
      kind: 'seen',
      seen,
      result: result === null ? null : { kind: 'inline', value: result },
      dueInMs: 0,
    });
  }

  test('[M8.4] is on record before the attempt answers, and while it may live nothing is sent again', async () => {
    const { operation, handle, submitted } = await begun();
    expect(await operation.attempt()).toEqual({ kind: 'remote', remote: handle });
    expect(await operation.row()).toMatchObject({ state: 'in_flight', executions: 1 });
    expect(await operation.attempt()).toEqual({ kind: 'remote', remote: handle });
    expect(await operation.attempt({ purpose: 'settle', verifyFinal: true })).toMatchObject({
      kind: 'remote',
    });
    expect(submitted()).toBe(1);
  });

  test('[M8.4] completed: its result is taken over, verified and committed, and execute is not called again', async () => {
    const { operation, submitted } = await begun({
      handlers: {
        remoteResult: (_input, given, { operationId }) =>
          Promise.resolve({ id: operationId, amount: Number(given['amount']) }),
      },
    });
    await operation.attempt();
    await ended(operation, { kind: 'completed' }, { amount: 7 });
    const value = { id: operation.operationId, amount: 7 };
    expect(await operation.attempt({ purpose: 'settle' })).toEqual({
      kind: 'committed',
      replayed: false,
      result: { kind: 'inline', value },
    });
    expect(submitted()).toBe(1);
  });

  test('[M8.4] a result that the ledger must not keep is fetched once more', async () => {
    const { operation } = await begun();
    await operation.attempt();
    await ended(operation, { kind: 'completed' });
    const given = { id: operation.operationId, amount: 5 };
    const status = () => Promise.resolve({ kind: 'completed', result: given } as const);
    const remotes = () => ({ status, cancel: () => Promise.resolve(), answer: () => Promise.resolve() });
    expect(await operation.attempt({ purpose: 'settle' }, { remotes })).toMatchObject({
      kind: 'committed',
      result: { value: given },
    });
  });

  test('[M8.4] completed with the tool’s own failure: known where the handler says that nothing was applied', async () => {
    const { operation } = await begun({
      handlers: { remoteResult: () => Promise.reject(ActionFailure.permanent('no such folder')) },
    });
    await operation.attempt();
    await ended(operation, { kind: 'completed' }, { isError: true });
    expect(await operation.attempt({ purpose: 'settle' })).toMatchObject({
      kind: 'failed',
      failure: { message: 'no such folder' },
    });
  });

  test('[M8.4] who reads its result is told whether an earlier execution may have been applied', async () => {
    const told: boolean[] = [];
    const { operation } = await begun({
      handlers: {
        remoteResult: async (_input, _given, { isFirstSend, assertOwner }) => {
          await assertOwner();
          told.push(isFirstSend);
          throw ActionFailure.permanent('no such folder');
        },
      },
    });
    await operation.attempt();
    await ended(operation, { kind: 'completed' }, { isError: true });
    await operation.attempt({ purpose: 'settle' });
    expect(told).toEqual([true]);
  });

  test('[S5.2] completed with what proves that nothing was applied: a retry of the execution is spent', async () => {
    const { operation } = await begun({
      handlers: { remoteResult: () => Promise.reject(ActionFailure.notSent('the shelf was full')) },
    });
    await operation.attempt();
    await ended(operation, { kind: 'completed' }, { isError: true });
    expect(await operation.attempt({ purpose: 'settle' })).toMatchObject({
      ...{ kind: 'released', ofExecution: true },
    });
  });

  test('[M8.4] completed with what nobody can read: a person is asked, nothing is sent', async () => {
    const { operation, submitted } = await begun({
      effect: 'unsafe',
      handlers: { remoteResult: () => Promise.reject(new Error('what is this')) },
    });
    await operation.attempt();
    await ended(operation, { kind: 'completed' }, { isError: true });
    expect(await operation.attempt({ purpose: 'settle' })).toMatchObject({
      kind: 'unknown',
      attention: true,
    });
    expect(submitted()).toBe(1);
  });

  test.each([
    [
      'a refused connection',
      Object.assign(new Error('refused'), { code: 'ECONNREFUSED', syscall: 'connect' }),
    ],
    ['a server that answers "later"', ActionFailure.rateLimited('later', 1_000)],
  ])('[M8.4] %s while its result is read says nothing about the effect', async (_what, error) => {
    for (const isSync of [true, false]) {
      const { operation, submitted } = await begun({
        effect: 'unsafe',
        handlers: {
          remoteResult: () => {
            if (isSync) throw error;
            return Promise.reject(error);
          },
        },
      });
      await operation.attempt();
      await ended(operation, { kind: 'completed' }, { files: 3 });
      expect(await operation.attempt()).toMatchObject({ kind: 'unknown', attention: true });
      expect(submitted()).toBe(1);
    }
  });

  test('[M8.4] a result that could not be fetched is asked for again; one that is forgotten goes to a person', async () => {
    const answers = [
      () => Promise.reject(new Error('no route')),
      () => Promise.resolve({ kind: 'not_found' } as const),
    ];
    const remotes = () => ({
      status: () => (answers.shift() as () => Promise<{ kind: 'not_found' }>)(),
      ...{ cancel: () => Promise.resolve(), answer: () => Promise.resolve() },
    });
    const { operation, submitted } = await begun({ effect: 'unsafe' });
    await operation.attempt();
    await ended(operation, { kind: 'completed' });
    const settle = (deps: object, verifyFinal = false) =>
      operation.attempt({ purpose: 'settle', verifyFinal }, deps);
    expect(await settle({ remotes })).toMatchObject({ kind: 'unknown', attention: false });
    expect(await settle({ remotes: () => undefined })).toMatchObject({ kind: 'unknown', attention: false });
    expect(await settle({ remotes })).toMatchObject({ kind: 'unknown', attention: true });
    expect(submitted()).toBe(1);
  });

  test('[S5.3] a result that can not be fetched at the last look goes to a person', async () => {
    const { operation } = await begun({ effect: 'unsafe' });
    await operation.attempt();
    await ended(operation, { kind: 'completed' });
    expect(await operation.attempt({ purpose: 'settle', verifyFinal: true })).toMatchObject({
      kind: 'unknown',
      attention: true,
    });
  });

  test.each(['failed', 'cancelled'] as const)(
    '[M8.4] %s proves nothing about the effect: an unsafe one goes to a person',
    async (kind) => {
      const { operation, submitted } = await begun({ effect: 'unsafe' });
      await operation.attempt();
      await ended(operation, { kind, message: 'disk full' });
      expect(await operation.attempt()).toMatchObject({
        kind: 'unknown',
        attention: true,
        failure: { message: expect.stringContaining('disk full') as string },
      });
      expect(submitted()).toBe(1);
    },
  );

  test('[M8.4] failed and looked up as not applied: may be sent again, as another remote task', async () => {
    const handlesOf = [freshHandle(), freshHandle()];
    let submitted = 0;
    const { operation } = await begun({
      effect: 'unsafe',
      lookup: 'conclusive',
      plan: { deadlines: { attemptMs: 0, settleMs: 0 } },
      handlers: {
        execute: () =>
          Promise.resolve(remoteTask(handlesOf[(submitted += 1) - 1] as RemoteTaskHandle) as never),
        lookup: () => Promise.resolve(notApplied()),
      },
    });
    await operation.attempt();
    await ended(operation, { kind: 'failed', message: 'disk full' });
    expect(await operation.attempt()).toEqual({ kind: 'remote', remote: handlesOf[1] });
    expect(submitted).toBe(2);
  });

  test('[M8.4] a safe one that failed has changed nothing', async () => {
    const { operation } = await begun({ effect: 'safe' });
    await operation.attempt();
    await ended(operation, { kind: 'failed', message: 'disk full' });
    expect(await operation.attempt({ purpose: 'settle' })).toMatchObject({ kind: 'released' });
  });

  test('[M8.4] forgotten by the server: unknown, and not sent again whatever a lookup does not find', async () => {
    for (const effect of ['unsafe', 'conditional'] as const) {
      const { operation, submitted } = await begun({
        effect,
        lookup: 'conclusive',
        plan: { deadlines: { attemptMs: 0, settleMs: 0 } },
        handlers: { lookup: () => Promise.resolve(notApplied()) },
      });
      await operation.attempt();
      await ended(operation, { kind: 'not_found' });
      expect(await operation.attempt()).toMatchObject({ kind: 'unknown', attention: true });
      expect(submitted()).toBe(1);
    }
  });

  test('[M8.4] forgotten and looked up as applied: committed', async () => {
    const { operation } = await begun({
      handlers: { lookup: ({ operationId }) => Promise.resolve(applied({ id: operationId, amount: 5 })) },
    });
    await operation.attempt();
    await ended(operation, { kind: 'not_found' });
    expect(await operation.attempt({ purpose: 'settle' })).toMatchObject({ kind: 'committed' });
  });

  test('[S8.4] lost submit response: unsafe goes to a person, conditional meets the task it made by the same key', async () => {
    const unsafe = await begun({ effect: 'unsafe' });
    await unsafe.operation.crash('after_effect');
    expect(await unsafe.operation.attempt()).toMatchObject({ kind: 'unknown', attention: true });
    expect(unsafe.submitted()).toBe(1);
    const conditional = await begun({ effect: 'conditional' });
    await conditional.operation.crash('after_effect');
    expect(await conditional.operation.attempt()).toEqual({ kind: 'remote', remote: conditional.handle });
    expect(await conditional.operation.attempt()).toMatchObject({ kind: 'remote' });
    expect(conditional.submitted()).toBe(2);
  });

  test('[S8.3] an overtaken attempt registers nothing; what it began is kept as late and alerts', async () => {
    const { operation } = await begun({
      handlers: {
        execute: async (_input, { attempt }) => {
          if (attempt === 1) await operation.attempt({ attempt: 2 });
          return remoteTask({
            ...freshHandle(),
            taskId: `made-by-${attempt}-${operation.operationId}`,
          });
        },
      },
    });
    expect(await operation.attempt()).toMatchObject({ kind: 'fenceStale' });
    const row = await ledger.findRemoteTask(operation.operationId);
    expect(row?.handle.taskId).toMatch(/^made-by-2/);
    expect((await operation.row()).lateOutcome).toMatchObject({ kind: 'remote' });
    expect((await operation.alerts()).map(({ type }) => type)).toContain('possible_duplicate');
  });

  test('[S2.7] a handle that comes after its claim was lost is no applied effect', async () => {
    const { operation } = await begun({
      handlers: {
        execute: async (_input, { attempt, assertOwner }) => {
          if (attempt === 1) {
            await operation.attempt({ attempt: 2 });
            await assertOwner().catch(() => undefined);
          }
          const taskId = `made-by-${attempt}-${operation.operationId}`;
          return remoteTask({ ...freshHandle(), taskId });
        },
      },
    });
    expect(await operation.attempt()).toMatchObject({ kind: 'fenceStale' });
    const { state, lateOutcome } = await operation.row();
    expect([state, lateOutcome]).toEqual(['in_flight', expect.objectContaining({ kind: 'remote' })]);
    expect((await ledger.findRemoteTask(operation.operationId))?.handle.taskId).toMatch(/^made-by-2/);
  });

  test('[S2.7] a handle that comes after its deadline is watched by the next attempt', async () => {
    const answered = deferred();
    const { operation, handle, submitted } = await begun({
      plan: { deadlines: { attemptMs: 50 } },
      handlers: {
        execute: () => answered.promise.then(() => remoteTask(handle) as never),
      },
    });
    expect(await operation.attempt()).toMatchObject({ kind: 'unknown', attention: false });
    answered.resolve();
    await expect
      .poll(async () => (await ledger.findRemoteTask(operation.operationId))?.handle, { timeout: 10_000 })
      .toEqual(handle);
    expect(await operation.row()).toMatchObject({ state: 'in_flight' });
    expect(await operation.attempt()).toEqual({ kind: 'remote', remote: handle });
    expect(submitted()).toBe(0);
  });

  test('[M8.4] what is no handle goes to a person', async () => {
    const { operation } = await begun({
      handlers: { execute: () => Promise.resolve(remoteTask({ ...freshHandle(), taskId: '' }) as never) },
    });
    expect(await operation.attempt()).toMatchObject({ kind: 'unknown', attention: true });
  });
});
