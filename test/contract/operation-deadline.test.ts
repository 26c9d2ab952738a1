/** S5.3, S7.4 and field case 4: attempts that time out or are stopped, and answers that come after. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ActionFailure, notYet, verified } from '../../src/contract/handlers.ts';
import { resolveOperation } from '../../src/operation/resolve-operation.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { deferred } from '../support/deferred.ts';
import { Operation, STORES, honestLookup } from '../support/operation-rig.ts';
import type { OperationSpec, TestStore } from '../support/operation-rig.ts';
import { Target } from '../support/operation-target.ts';

describe.each(STORES)('an attempt that does not answer in time, on $kind', ({ open }) => {
  let store: TestStore;
  let ledger: Ledger;
  beforeAll(async () => {
    store = await open();
    ledger = store.ledger;
  });
  afterAll(() => store.close());

  const eventually = async (check: () => Promise<boolean>): Promise<void> => {
    for (const deadline = Date.now() + 10_000; !(await check()); await sleep(10)) {
      if (Date.now() > deadline) throw new Error('it never came about');
    }
  };

  /** A handler that hears no signal and applies its effect once `finish` is resolved. */
  async function deaf(spec: OperationSpec = {}) {
    const [started, finish] = [deferred(), deferred()];
    const target = spec.target ?? new Target(spec.effect !== 'unsafe');
    let calls = 0;
    const operation = await Operation.reserve(ledger, {
      ...spec,
      target,
      handlers: {
        async execute({ amount }, { operationId }) {
          calls += 1;
          started.resolve();
          await finish.promise;
          return target.apply(operationId, amount);
        },
        ...spec.handlers,
      },
      plan: { deadlines: { attemptMs: 40, settleMs: 0, ...spec.plan?.deadlines } },
    });
    return { operation, started: started.promise, finish: finish.resolve, calls: () => calls };
  }

  test('[S5.3] a timed-out attempt is unknown, not failed', async () => {
    const operation = await Operation.reserve(ledger, {
      plan: { deadlines: { attemptMs: 20 } },
      handlers: {
        execute: (_input, { signal }) =>
          new Promise((_resolve, reject) =>
            signal.addEventListener('abort', () => reject(signal.reason as Error)),
          ),
      },
    });
    const outcome = await operation.attempt();
    expect(outcome).toEqual({
      kind: 'unknown',
      attention: false,
      failure: {
        kind: 'unknown',
        code: 'outcome_unknown',
        message: 'The handler gave no answer within 20 ms.',
      },
    });
    expect(await operation.row()).toMatchObject({ state: 'in_flight' });
  });

  test('[S5] aborted, a handler may still know that nothing was sent', async () => {
    const operation = await Operation.reserve(ledger, {
      effect: 'unsafe',
      plan: { deadlines: { attemptMs: 20 } },
      handlers: {
        execute: (_input, { signal }) =>
          new Promise((_resolve, reject) =>
            signal.addEventListener('abort', () => reject(ActionFailure.notSent('still in the queue'))),
          ),
      },
    });
    expect(await operation.attempt()).toMatchObject({
      kind: 'released',
      failure: { message: 'still in the queue' },
    });
  });

  test('[S2.7] the late effect of a handler that hears no signal goes into the row (field case 4)', async () => {
    const { operation, finish, calls } = await deaf();
    expect(await operation.attempt()).toMatchObject({ kind: 'unknown', attention: false });
    finish();
    await eventually(async () => (await operation.row()).state === 'applied');
    expect(await operation.attempt()).toMatchObject({ kind: 'committed', result: { value: { amount: 5 } } });
    expect([operation.effects, calls()]).toEqual([1, 1]);
  });

  test('[S2.7] a late result that the contract does not allow is kept and not taken for the result', async () => {
    const finish = deferred();
    const operation = await Operation.reserve(ledger, {
      plan: { deadlines: { attemptMs: 20 } },
      handlers: {
        async execute() {
          await finish.promise;
          return { id: 7 } as never;
        },
      },
    });
    await operation.attempt();
    finish.resolve();
    await eventually(async () => (await operation.row()).lateOutcome !== null);
    expect(await operation.row()).toMatchObject({ state: 'in_flight', lateOutcome: { kind: 'applied' } });
  });

  test('[S2.7] or, where a person was asked meanwhile, is kept for that person to see', async () => {
    const { operation, finish, calls } = await deaf({ effect: 'unsafe' });
    expect(await operation.attempt()).toMatchObject({ kind: 'unknown', attention: true });
    finish();
    await eventually(async () => (await operation.row()).lateOutcome !== null);
    expect(await operation.row()).toMatchObject({
      state: 'attention',
      lateOutcome: { kind: 'applied', result: { value: { amount: 5 } } },
    });
    expect([operation.effects, calls()]).toEqual([1, 1]);
    // Who has not looked says that it was not done: nothing is sent, the task asks again.
    const { plan, taskId, ordinal } = operation;
    const denial = { about: 'effect', resolution: { as: 'not_applied', by: 'eve' }, end: null } as const;
    const attempt = (operation.attempts += 1);
    const denied = { plan, taskId, ordinal, attempt, ...denial, journal: [] };
    expect(await resolveOperation({ ledger }, denied)).toEqual({ end: null });
    operation.attempts += 1;
    expect(await operation.attempt()).toMatchObject({ kind: 'unknown', attention: true });
    expect([operation.effects, calls()]).toEqual([1, 1]);
  });

  test('[S2.4] an unsafe request that may still be on its way is waited for, then looked up', async () => {
    const target = new Target(false);
    const { operation, finish, calls } = await deaf({
      effect: 'unsafe',
      target,
      lookup: 'conclusive',
      handlers: { lookup: honestLookup(target) },
      plan: { deadlines: { settleMs: 1_500 } },
    });
    expect(await operation.attempt()).toMatchObject({ kind: 'unknown', attention: false });
    const waiting = await operation.attempt();
    expect(waiting).toMatchObject({ kind: 'busy', reason: 'settling' });
    expect(waiting.kind === 'busy' && waiting.retryAfterMs > 0 && waiting.retryAfterMs <= 1_540).toBe(true);
    finish();
    await eventually(() => Promise.resolve(target.total === 1));
    expect(await operation.attempt()).toMatchObject({ kind: 'committed' });
    expect([target.total, calls()]).toEqual([1, 1]);
  });

  test('[S7.4] told to stop after sending, its outcome is unknown until it is looked up', async () => {
    const stop = new AbortController();
    const { operation, started, finish } = await deaf({ plan: { deadlines: { attemptMs: 60_000 } } });
    const stopped = operation.attempt({}, {}, stop.signal);
    await started;
    stop.abort(new Error('cancelled'));
    expect(await stopped).toMatchObject({
      kind: 'unknown',
      attention: false,
      failure: { message: 'The handler was stopped before it answered.' },
    });
    expect(await operation.row()).toMatchObject({ state: 'in_flight' });
    finish();
  });

  test('[S7.4] told to stop, a handler that finishes all the same is verified and committed', async () => {
    const stop = new AbortController();
    const { operation, started, finish } = await deaf({
      plan: { deadlines: { attemptMs: 60_000 } },
      handlers: {
        verify: (_input, _result, { signal }) => Promise.resolve(signal.aborted ? notYet() : verified()),
      },
    });
    const stopped = operation.attempt({}, {}, stop.signal);
    await started;
    stop.abort(new Error('cancelled'));
    finish();
    expect(await stopped).toMatchObject({ kind: 'committed' });
    expect(operation.effects).toBe(1);
  });

  test('[S3.8] told to stop while it looks up, it concludes nothing from that', async () => {
    const stop = new AbortController();
    const operation = await Operation.reserve(ledger, {
      effect: 'unsafe',
      handlers: {
        lookup: ({ signal }) => {
          stop.abort(new Error('the worker shuts down'));
          return Promise.reject(signal.reason as Error);
        },
      },
    });
    await operation.crash('after_effect');
    await expect(
      operation.attempt({ purpose: 'settle', verifyFinal: true }, {}, stop.signal),
    ).rejects.toThrow('shuts down');
    expect(await operation.row()).toMatchObject({ state: 'in_flight' });
  });

  test('[S2.4] a lookup that hangs is bounded like any other call', async () => {
    const operation = await Operation.reserve(ledger, {
      effect: 'unsafe',
      plan: { deadlines: { attemptMs: 20 } },
      handlers: { lookup: () => new Promise(() => undefined) },
    });
    await operation.crash('after_effect');
    expect(await operation.attempt()).toMatchObject({ kind: 'unknown', attention: false });
  });
});
