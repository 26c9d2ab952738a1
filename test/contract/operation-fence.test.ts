/** S2.3, S2.7, S2.11: several attempts at one operation at once, frozen ones that wake, and what comes too late. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ActionFailure, verified } from '../../src/contract/handlers.ts';
import type { ExecuteContext } from '../../src/contract/handlers.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { FAULT_POINTS } from '../../src/operation/faults.ts';
import type { FaultPoint } from '../../src/operation/faults.ts';
import { deferred } from '../support/deferred.ts';
import { Operation, STORES, honestLookup } from '../support/operation-rig.ts';
import type { OperationSpec, TestStore } from '../support/operation-rig.ts';
import { Target } from '../support/operation-target.ts';

describe.each(STORES)('attempts at one operation on $kind', ({ open }) => {
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

  test('[S2.3] begun at the same moment under one number: one effect, and the others are busy', async () => {
    for (const effect of ['conditional', 'unsafe'] as const) {
      // The target dedupes nothing: only the claim does.
      const target = new Target(false);
      const operation = await Operation.reserve(ledger, { effect, target });
      const outcomes = await Promise.all(Array.from({ length: 8 }, () => operation.attempt({ attempt: 1 })));
      const kinds = outcomes.map(({ kind }) => kind);
      expect(kinds.filter((kind) => kind === 'committed').length).toBeGreaterThanOrEqual(1);
      expect(kinds.filter((kind) => kind !== 'committed').every((kind) => kind === 'busy')).toBe(true);
      expect(target.total).toBe(1);
    }
  });

  test('[S2.11] begun at the same moment under growing numbers: one effect', async () => {
    const cases: OperationSpec[] = [
      { effect: 'unsafe', target: new Target(false) },
      { effect: 'unsafe', target: new Target(false), lookup: 'conclusive' },
      { effect: 'conditional', target: new Target(true) },
    ];
    for (const spec of cases) {
      const target = spec.target as Target;
      const handlers = spec.lookup ? { lookup: honestLookup(target) } : {};
      const operation = await Operation.reserve(ledger, { ...spec, handlers });
      await Promise.all(Array.from({ length: 6 }, () => operation.attempt()));
      expect([spec.effect, target.total]).toEqual([spec.effect, 1]);
      const { state } = await operation.row();
      expect(['committed', 'attention', 'in_flight', 'applied']).toContain(state);
    }
  });

  test.each(FAULT_POINTS)('[S2.11] died %s, it comes to one effect and a committed row', async (point) => {
    const specs: OperationSpec[] = [
      { effect: 'conditional', target: new Target(true) },
      { effect: 'conditional', target: new Target(true), lookup: 'plain' },
      { effect: 'unsafe', target: new Target(false), lookup: 'conclusive' },
    ];
    for (const spec of specs) {
      const target = spec.target as Target;
      const handlers = {
        verify: () => Promise.resolve(verified()),
        ...(spec.lookup && { lookup: honestLookup(target) }),
      };
      const plan = { deadlines: { attemptMs: 1, settleMs: 0 } };
      const operation = await Operation.reserve(ledger, { ...spec, handlers, plan });
      await operation.crash(point);
      await sleep(3);
      expect(await operation.attempt()).toMatchObject({ kind: 'committed', replayed: false });
      expect(target.total).toBe(1);
      expect(await operation.row()).toMatchObject({ state: 'committed', end: { effect: 'applied' } });
    }
  });

  test('[S2.12] a workflow that was reset numbers its attempts from one again and does nothing twice', async () => {
    const target = new Target(false);
    const operation = await Operation.reserve(ledger, { target, handlers: { lookup: honestLookup(target) } });
    await operation.crash('after_effect', { attempt: 5 });
    const stale = await operation.attempt({ attempt: 1 });
    expect(stale).toEqual({ kind: 'fenceStale', rowAttempt: 5, superseded: false });
    expect(await operation.attempt({ attempt: 6 })).toMatchObject({ kind: 'committed' });
    expect(await operation.attempt({ attempt: 1 })).toMatchObject({ kind: 'committed', replayed: false });
    expect(target.total).toBe(1);
  });

  /** One attempt stands still at `point` while another acts, then goes on. */
  async function freeze(operation: Operation, point: FaultPoint, meanwhile: () => Promise<unknown>) {
    const [reached, wake] = [deferred(), deferred()];
    const frozen = operation.attempt(
      {},
      {
        faults: async (place) => {
          if (place.point !== point) return;
          reached.resolve();
          await wake.promise;
        },
      },
    );
    await reached.promise;
    await meanwhile();
    wake.resolve();
    return frozen;
  }

  /** The target dedupes nothing; a lookup tells the truth. */
  const undeduped = (overrides: OperationSpec = {}) => {
    const target = new Target(false);
    const handlers = {
      lookup: honestLookup(target),
      verify: () => Promise.resolve(verified()),
      ...overrides.handlers,
    };
    return Operation.reserve(ledger, {
      target,
      ...overrides,
      handlers,
      plan: { deadlines: { heartbeatMs: 30 } },
    });
  };

  test.each(['before_claim', 'after_intent'] as const)(
    '[S2.11] frozen %s, it wakes after its successor has acted and sends nothing',
    async (point) => {
      const operation = await undeduped();
      const outcome = await freeze(operation, point, async () => {
        expect(await operation.attempt()).toMatchObject({ kind: 'committed' });
        await sleep(40);
      });
      expect(outcome).toEqual({ kind: 'fenceStale', rowAttempt: 2, superseded: false });
      expect(operation.target.total).toBe(1);
    },
  );

  test.each(['after_effect', 'after_verify'] as const)(
    '[S2.7][S2.11] frozen %s, what it reports changes no result and is kept',
    async (point) => {
      const operation = await undeduped();
      const outcome = await freeze(operation, point, async () => {
        expect(await operation.attempt()).toMatchObject({ kind: 'committed' });
      });
      expect(outcome).toMatchObject({ kind: 'fenceStale', rowAttempt: 2 });
      expect(await operation.row()).toMatchObject({ state: 'committed', lateOutcome: { kind: 'applied' } });
      // The successor looked it up and sent nothing: no duplicate is possible.
      expect(await operation.alerts()).toEqual([]);
      expect(operation.target.total).toBe(1);
    },
  );

  test('[S2.7] two that both sent are told to a person', async () => {
    const target = new Target(false);
    const operation = await Operation.reserve(ledger, { target, plan: { deadlines: { heartbeatMs: 30 } } });
    const outcome = await freeze(operation, 'after_effect', () => operation.attempt());
    expect(outcome).toMatchObject({ kind: 'fenceStale' });
    expect(await operation.alerts()).toMatchObject([{ type: 'possible_duplicate' }]);
  });

  test('[S2.3] frozen before its claim, it wakes after the task has ended and sends nothing', async () => {
    const operation = await undeduped();
    const { operationId, taskId, ordinal } = operation;
    const end = {
      status: 'cancelled',
      effect: 'none',
      cause: 'cancelled',
      error: null,
      cancelRequested: true,
    } as const;
    const outcome = await freeze(operation, 'before_claim', () =>
      ledger.closeTask({ operationId, taskId, ordinal, attempt: 1, end, notes: [] }),
    );
    expect(outcome).toMatchObject({ kind: 'fenceStale', superseded: false });
    expect(operation.target.total).toBe(0);
    expect(await operation.attempt({ attempt: 9 })).toEqual({ kind: 'spent', end });
  });

  test('[S2.3] a claim that has run out is taken over by an equal attempt, which looks before it sends (field case 7)', async () => {
    const operation = await undeduped();
    const deadlines = { ...operation.plan.deadlines, heartbeatMs: 2_000 };
    await operation.crash('after_effect', { attempt: 1, plan: { ...operation.plan, deadlines } });
    expect(await operation.attempt({ attempt: 1 })).toMatchObject({ kind: 'busy', reason: 'claimed' });
    const { claimedUntil } = await operation.row();
    while ((await ledger.now()) <= (claimedUntil ?? 0)) await sleep(50);
    expect(await operation.attempt({ attempt: 1 })).toMatchObject({ kind: 'committed' });
    expect(operation.target.total).toBe(1);
  });

  test('[S2.11] frozen past its claim, it sends where nobody took over meanwhile', async () => {
    const operation = await undeduped();
    // As after SIGSTOP: no renewal took place.
    const deaf = {
      ...ledger,
      renew: (...given: Parameters<Ledger['renew']>) =>
        isAwake ? ledger.renew(...given) : new Promise<never>(() => undefined),
    };
    let isAwake = false;
    const faults = async ({ point }: { point: FaultPoint }) => {
      if (point !== 'after_intent') return;
      await sleep(80);
      isAwake = true;
    };
    expect(await operation.attempt({}, { ledger: deaf, faults })).toMatchObject({ kind: 'committed' });
    expect(operation.target.total).toBe(1);
  });

  test('[S2.3] a claim is renewed for as long as the handler is at work', async () => {
    const [started, finish] = [deferred(), deferred()];
    const operation = await Operation.reserve(ledger, {
      plan: { deadlines: { heartbeatMs: 90 } },
      handlers: {
        async execute({ amount }, { operationId }) {
          started.resolve();
          await finish.promise;
          return { id: operationId, amount };
        },
      },
    });
    const working = operation.attempt({ attempt: 1 });
    await started.promise;
    const first = (await operation.row()).claimedUntil ?? 0;
    await eventually(async () => ((await operation.row()).claimedUntil ?? 0) > first + 90);
    expect(await operation.attempt({ attempt: 1 })).toMatchObject({ kind: 'busy', reason: 'claimed' });
    finish.resolve();
    expect(await working).toMatchObject({ kind: 'committed' });
  });

  test('[S2.3] an inline claim is not renewed: it lasts its deadlines', async () => {
    const calls: string[] = [];
    const operation = await Operation.reserve(ledger, {
      plan: { inline: true, deadlines: { attemptMs: 900, verifyMs: 100, heartbeatMs: 30 } },
      handlers: {
        execute: async (_input, { operationId }) => (await sleep(120), { id: operationId, amount: 5 }),
      },
    });
    const watched = {
      ...ledger,
      renew: (...given: Parameters<Ledger['renew']>) => (calls.push('renew'), ledger.renew(...given)),
    };
    const claimedAt = await ledger.now();
    const working = operation.attempt({ attempt: 1, inline: true }, { ledger: watched });
    await eventually(async () => (await operation.row()).state === 'in_flight');
    expect(((await operation.row()).claimedUntil ?? 0) - claimedAt).toBeGreaterThanOrEqual(1_000);
    expect(await working).toMatchObject({ kind: 'committed' });
    expect(calls).toEqual([]);
  });

  test('[S2.3] a ledger that is away for a while loses no claim', async () => {
    const operation = await Operation.reserve(ledger, {
      plan: { deadlines: { heartbeatMs: 60 } },
      handlers: {
        execute: async (_input, { operationId }) => (await sleep(150), { id: operationId, amount: 5 }),
      },
    });
    const away = { ...ledger, renew: () => Promise.reject(new Error('away')) };
    expect(await operation.attempt({}, { ledger: away })).toMatchObject({ kind: 'committed' });
  });

  describe('taken over while the handler is at work', () => {
    const takenOver = async (work: (context: ExecuteContext, target: Target) => Promise<unknown>) => {
      const started = deferred();
      const target = new Target(true);
      let calls = 0;
      const operation = await Operation.reserve(ledger, {
        target,
        plan: { deadlines: { heartbeatMs: 60 } },
        handlers: {
          async execute({ amount }, context) {
            if ((calls += 1) > 1) return target.apply(context.operationId, amount);
            started.resolve();
            return (await work(context, target)) as never;
          },
        },
      });
      const overtaken = operation.attempt();
      await started.promise;
      expect(await operation.attempt()).toMatchObject({ kind: 'committed' });
      return { operation, outcome: await overtaken };
    };
    const aborted = ({ signal }: ExecuteContext): Promise<void> =>
      new Promise((resolve) => {
        if (signal.aborted) resolve();
        else signal.addEventListener('abort', () => resolve());
      });

    test('[S2.3] its signal aborts and its outcome is kept as late', async () => {
      const { operation, outcome } = await takenOver(async (context, target) => {
        await aborted(context);
        return target.apply(context.operationId, 5);
      });
      expect(outcome).toEqual({ kind: 'fenceStale', rowAttempt: 2, superseded: false });
      expect(await operation.row()).toMatchObject({ state: 'committed', lateOutcome: { kind: 'applied' } });
      expect(operation.effects).toBe(1);
    });

    test('[S2.5] between two calls it learns that it is too late', async () => {
      const asserted: unknown[] = [];
      const { operation, outcome } = await takenOver(async (context) => {
        await aborted(context);
        await context.assertOwner().catch((error: unknown) => asserted.push((error as Error).name));
        throw ActionFailure.notSent('stopped before the second call');
      });
      expect(asserted).toEqual(['ClaimLost']);
      expect(outcome).toMatchObject({ kind: 'fenceStale' });
      expect(await operation.row()).toMatchObject({ state: 'committed', lateOutcome: { kind: 'failed' } });
    });

    test('[S2.7] a handler that hears nothing is left behind, and what it did is kept', async () => {
      const finish = deferred();
      const { operation, outcome } = await takenOver(async ({ operationId }, target) => {
        await finish.promise;
        return target.apply(operationId, 5);
      });
      expect(outcome).toMatchObject({ kind: 'fenceStale' });
      expect((await operation.row()).lateOutcome).toBeNull();
      finish.resolve();
      await eventually(async () => (await operation.row()).lateOutcome !== null);
      expect(await operation.row()).toMatchObject({ state: 'committed', lateOutcome: { kind: 'applied' } });
    });
  });
});
