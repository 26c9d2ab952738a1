/** S6: the rollback is an operation of its own: claimed, sent, seen, recorded, and told to a person where it can't be done. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rollbackOperationId } from '../../src/contract/ids.ts';
import {
  ActionFailure,
  applied,
  mismatch,
  notApplied,
  notYet,
  unknown,
  verified,
} from '../../src/contract/handlers.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { resolveOperation } from '../../src/operation/resolve-operation.ts';
import type { FaultPoint } from '../../src/operation/faults.ts';
import { deferred } from '../support/deferred.ts';
import { Operation, STORES, honestLookup } from '../support/operation-rig.ts';
import type { Handlers, OperationSpec, TestStore } from '../support/operation-rig.ts';
import { Target } from '../support/operation-target.ts';

const NEVER_VERIFIED = { deadlines: { verifyMs: 0 } };

describe.each(STORES)('a rollback on $kind', ({ open }) => {
  let store: TestStore;
  let ledger: Ledger;
  beforeAll(async () => {
    store = await open();
    ledger = store.ledger;
  });
  afterAll(() => store.close());

  /** Committed, and still open for a cancel to undo it. */
  async function committed(handlers: Handlers = {}, spec: OperationSpec = {}): Promise<Operation> {
    const target = spec.target ?? new Target(true);
    const operation = await Operation.reserve(ledger, {
      lookup: 'conclusive',
      ...spec,
      target,
      handlers: {
        rollback: (_input, _result, { originalOperationId }) =>
          Promise.resolve(target.undo(originalOperationId)),
        lookup: honestLookup(target),
        ...handlers,
      },
      plan: { onCancel: 'rollback', ...spec.plan },
    });
    expect(await operation.attempt()).toMatchObject({ kind: 'committed' });
    return operation;
  }
  const undone = (operation: Operation): number => operation.target.undone.get(operation.operationId) ?? 0;
  const rollbackRow = (operation: Operation) => ledger.find(rollbackOperationId(operation.operationId));

  test('[S6.2] undoes the effect once and records the end of its task', async () => {
    const operation = await committed();
    expect(await operation.rollback({ reason: 'cancelled' })).toEqual({ kind: 'rolledBack' });
    expect(undone(operation)).toBe(1);
    const end = {
      status: 'cancelled',
      effect: 'rolled_back',
      cause: 'cancelled_after_commit',
      cancelRequested: true,
    };
    expect(await operation.row()).toMatchObject({ state: 'rolled_back', end });
    expect(await rollbackRow(operation)).toMatchObject({
      state: 'committed',
      executions: 1,
      parentOperationId: operation.operationId,
    });
    expect(await operation.rollback({ reason: 'cancelled' })).toEqual({ kind: 'rolledBack' });
    expect(undone(operation)).toBe(1);
  });

  test('[S6.2] after a failed verification the task ends as failed and rolled back', async () => {
    const operation = await Operation.reserve(ledger, {
      handlers: {
        verify: () => Promise.resolve(mismatch('odd')),
        rollback: () => Promise.resolve(),
        verifyRollback: () => Promise.resolve(verified()),
      },
    });
    expect(await operation.attempt()).toMatchObject({ kind: 'mismatch' });
    expect(await operation.rollback()).toEqual({ kind: 'rolledBack' });
    expect((await operation.row()).end).toMatchObject({
      status: 'failed',
      effect: 'rolled_back',
      cause: 'verify_failed',
      cancelRequested: false,
    });
  });

  test('[S6.2] its handler gets its own operation id, the same in every attempt, and the effect’s own beside it', async () => {
    const seen: unknown[] = [];
    const operation = await committed({
      rollback: async (input, result, { operationId, originalOperationId, attempt, fence, assertOwner }) => {
        await assertOwner();
        seen.push({ input, result, operationId, originalOperationId, attempt, fence });
        throw new Error('reset');
      },
    });
    await operation.rollback();
    await operation.rollback();
    const { operationId, input } = operation;
    const same = {
      input,
      result: { id: operationId, amount: 5 },
      operationId: rollbackOperationId(operationId),
      originalOperationId: operationId,
    };
    expect(seen).toEqual([
      { ...same, attempt: 2, fence: '1.2.1' },
      { ...same, attempt: 3, fence: '1.3.2' },
    ]);
  });

  test('[S6.2] says what remains', async () => {
    const operation = await committed({
      rollback: (_input, _result, { originalOperationId }) =>
        Promise.resolve((operation.target.undo(originalOperationId), { remains: 'a fee of 2' })),
    });
    expect(await operation.rollback()).toEqual({ kind: 'rolledBack', remains: 'a fee of 2' });
    expect((await operation.row()).end?.error?.details).toEqual({ remains: 'a fee of 2' });
    expect(await operation.rollback()).toEqual({ kind: 'rolledBack', remains: 'a fee of 2' });
  });

  test.each([
    ['by itself', {}],
    ['in a transaction', { transactional: true }],
  ])('[S6.2] [S3.5] of an effect whose end is on record ends with a person, %s', async (_name, changed) => {
    const operation = await committed({}, { plan: { onCancel: 'keep' } });
    expect((await operation.row()).end).toMatchObject({ status: 'completed', effect: 'applied' });
    const plan = { ...operation.plan, ...changed };
    for (const final of [false, true]) {
      const outcome = await operation.rollback({ plan, reason: 'cancelled', final });
      expect(outcome).toMatchObject({ kind: 'attention', failure: { code: 'rollback_failed' } });
    }
    expect(operation.effects).toBe(1);
    expect(undone(operation)).toBe(0);
    const alerts = await ledger.alerts({ tenant: operation.plan.principal.tenant, taskId: operation.taskId });
    expect(alerts[0]).toMatchObject({ type: 'rollback_failed' });
    // What the person says changes nothing of the row: its own end is what the task ends with.
    const { taskId, ordinal, attempts } = operation;
    const about = 'rollback' as const;
    const request = { plan, taskId, ordinal, attempt: attempts + 1, about, end: null, journal: [] };
    const resolution = { as: 'applied', by: 'bob' } as const;
    expect(await resolveOperation({ ledger }, { ...request, resolution })).toMatchObject({
      end: { status: 'completed', effect: 'applied' },
    });
  });

  test('[S6.2] that fails is tried again, whatever is known of it', async () => {
    for (const failure of [
      ActionFailure.notSent('down'),
      ActionFailure.rateLimited('later', 700),
      new Error('reset'),
    ]) {
      let calls = 0;
      const operation: Operation = await committed({
        rollback(_input, _result, { originalOperationId }) {
          if ((calls += 1) === 1) return Promise.reject(failure);
          return Promise.resolve(operation.target.undo(originalOperationId));
        },
      });
      const outcome = await operation.rollback();
      expect(outcome).toMatchObject({ kind: 'retry' });
      expect(outcome.kind === 'retry' && outcome.failure.retryAfterMs).toBe(
        failure.message === 'later' ? 700 : undefined,
      );
      expect(await rollbackRow(operation)).toMatchObject({ state: 'released' });
      expect(await operation.row()).toMatchObject({ state: 'rolling_back', end: null });
      expect(await operation.rollback()).toEqual({ kind: 'rolledBack' });
      expect(undone(operation)).toBe(1);
    }
  });

  test('[S6.2][S6.5] at its last try, or refused for good, it goes to a person with an alert', async () => {
    for (const [failure, final] of [
      [new Error('reset'), true],
      [ActionFailure.permanent('already shipped'), false],
    ] as const) {
      const operation = await committed({ rollback: () => Promise.reject(failure) });
      expect(await operation.rollback({ final })).toMatchObject({ kind: 'attention' });
      expect(await operation.row()).toMatchObject({
        state: 'attention',
        attentionAbout: 'rollback',
        end: null,
      });
      expect(await operation.alerts()).toMatchObject([{ type: 'rollback_failed' }]);
      expect(await operation.rollback()).toMatchObject({ kind: 'attention' });
      expect(await operation.alerts()).toHaveLength(1);
    }
  });

  test('[S6.1] what Holdfast does not undo itself goes to a person at once', async () => {
    for (const rollback of [{ kind: 'outOfBand' }, { kind: 'none', reason: 'sent' }] as const) {
      const operation = await Operation.reserve(ledger, {
        definition: { rollback },
        plan: { onCancel: 'rollback' },
      });
      await operation.attempt();
      expect(await operation.rollback()).toMatchObject({
        kind: 'attention',
        failure: { code: 'rollback_failed' },
      });
      expect(await operation.alerts()).toMatchObject([{ type: 'rollback_failed' }]);
      expect(operation.effects).toBe(1);
    }
  });

  test('[S6.2] counts only once it was seen: by verifyRollback, or by a lookup that no longer finds the effect', async () => {
    const cases: [Handlers, string][] = [
      [{ verifyRollback: () => Promise.resolve(verified()) }, 'rolledBack'],
      [{ verifyRollback: () => Promise.resolve(notYet()) }, 'retry'],
      [{ verifyRollback: () => Promise.resolve(mismatch('the amount is still 5')) }, 'retry'],
      [{ verifyRollback: () => Promise.reject(new Error('down')) }, 'retry'],
      [{ lookup: () => Promise.resolve(notApplied()) }, 'rolledBack'],
      [{ lookup: ({ operationId }) => Promise.resolve(applied({ id: operationId, amount: 5 })) }, 'retry'],
      [{ lookup: () => Promise.resolve(unknown()) }, 'retry'],
      [{ lookup: () => Promise.reject(new Error('down')) }, 'retry'],
    ];
    for (const [handlers, kind] of cases) {
      const operation = await committed(handlers, { plan: NEVER_VERIFIED });
      expect([handlers, (await operation.rollback()).kind]).toEqual([handlers, kind]);
      const last = await operation.rollback({ final: true });
      expect(last.kind).toBe(kind === 'retry' ? 'attention' : 'rolledBack');
    }
  });

  test('[S6.2] may be seen only after a while', async () => {
    let looks = 0;
    const operation = await committed({
      verifyRollback: () => Promise.resolve((looks += 1) < 3 ? notYet() : verified()),
    });
    expect(await operation.rollback()).toEqual({ kind: 'rolledBack' });
    expect(looks).toBe(3);
  });

  test.each(['before_claim', 'after_intent', 'after_effect', 'after_verify', 'after_commit'] as const)(
    '[S2.11][S6.6] dies %s and is finished by the next attempt, undone once',
    async (point: FaultPoint) => {
      const operation = await committed();
      const died = new Error('died');
      const faults = (place: { point: FaultPoint }) =>
        place.point === point ? Promise.reject(died) : Promise.resolve();
      await expect(operation.rollback({}, { faults })).rejects.toBe(died);
      expect(await operation.rollback()).toEqual({ kind: 'rolledBack' });
      expect(undone(operation)).toBe(1);
      expect(await operation.row()).toMatchObject({ state: 'rolled_back' });
    },
  );

  test('[S2.3] one older than the row’s is stale; an equal one at work makes it wait', async () => {
    const [started, finish] = [deferred(), deferred()];
    const operation: Operation = await committed({
      async rollback(_input, _result, { originalOperationId }) {
        started.resolve();
        await finish.promise;
        operation.target.undo(originalOperationId);
      },
    });
    const working = operation.rollback({ attempt: 5 });
    await started.promise;
    expect(await operation.rollback({ attempt: 4 })).toEqual({ kind: 'fenceStale', rowAttempt: 5 });
    const busy = await operation.rollback({ attempt: 5 });
    expect(busy).toMatchObject({ kind: 'retry', failure: { kind: 'notApplied' } });
    expect(busy.kind === 'retry' && (busy.failure.retryAfterMs ?? 0) > 0).toBe(true);
    finish.resolve();
    expect(await working).toEqual({ kind: 'rolledBack' });
    expect(undone(operation)).toBe(1);
  });

  test('[S2.7] taken over while at work it is late, and its outcome is kept', async () => {
    const started = deferred();
    let calls = 0;
    const operation: Operation = await committed(
      {
        async rollback(_input, _result, { originalOperationId, signal }) {
          if ((calls += 1) > 1) return void operation.target.undo(originalOperationId);
          started.resolve();
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
        },
      },
      { plan: { onCancel: 'rollback', deadlines: { heartbeatMs: 60 } } },
    );
    const overtaken = operation.rollback();
    await started.promise;
    expect(await operation.rollback()).toEqual({ kind: 'rolledBack' });
    expect(await overtaken).toMatchObject({ kind: 'fenceStale' });
    expect(await rollbackRow(operation)).toMatchObject({
      state: 'committed',
      lateOutcome: { kind: 'undone' },
    });
  });

  test('[S5.3] a handler that hears no signal is left behind and called again', async () => {
    let calls = 0;
    const operation: Operation = await committed(
      {
        rollback: (_input, _result, { originalOperationId }) =>
          (calls += 1) === 1
            ? new Promise(() => undefined)
            : Promise.resolve(operation.target.undo(originalOperationId)),
      },
      { plan: { onCancel: 'rollback', deadlines: { attemptMs: 20 } } },
    );
    expect(await operation.rollback()).toMatchObject({ kind: 'retry', failure: { kind: 'unknown' } });
    await sleep(1);
    expect(await operation.rollback()).toEqual({ kind: 'rolledBack' });
  });

  test('[S3.5] a person may say that it is gone, or that it stands and is to be undone again', async () => {
    const stuck = async () => {
      let calls = 0;
      const operation: Operation = await committed({
        rollback: (_input, _result, { originalOperationId }) =>
          (calls += 1) === 1
            ? Promise.reject(new Error('reset'))
            : Promise.resolve(operation.target.undo(originalOperationId)),
      });
      await operation.rollback({ final: true });
      operation.attempts += 2;
      return operation;
    };
    const resolveAs = (
      { operationId, taskId, ordinal, attempts }: Operation,
      as: 'applied' | 'not_applied',
      end: Parameters<Ledger['resolve']>[0]['end'],
    ) =>
      ledger.resolve({
        operationId,
        taskId,
        ordinal,
        attempt: attempts - 1,
        resolution: { as, by: 'bob' },
        end,
        notes: [],
      });
    const gone = await stuck();
    const end = {
      status: 'failed',
      effect: 'rolled_back',
      cause: 'verify_failed',
      error: null,
      cancelRequested: false,
    } as const;
    await resolveAs(gone, 'not_applied', end);
    expect(await gone.rollback()).toMatchObject({ kind: 'rolledBack' });
    const stands = await stuck();
    await resolveAs(stands, 'applied', null);
    expect(await stands.rollback()).toEqual({ kind: 'rolledBack' });
    expect(undone(stands)).toBe(1);
  });
});
