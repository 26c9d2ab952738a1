/** interfaces.md "Closing" and S3.5: how a task's hold on its operation ends. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ActionFailure, verified } from '../../src/contract/handlers.ts';
import { sensitive } from '../../src/contract/sensitive.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { closeOperation } from '../../src/operation/close-operation.ts';
import { resolveOperation } from '../../src/operation/resolve-operation.ts';
import type { ResolveRequest } from '../../src/task/activity-api.ts';
import { committedEnd, endedWith, resolvedEnd } from '../../src/task/ends.ts';
import type { TaskEnd } from '../../src/task/outcome.ts';
import { ruleOf } from '../support/approvals.ts';
import { Operation, STORES } from '../support/operation-rig.ts';
import type { OperationSpec, TestStore } from '../support/operation-rig.ts';

const CANCELLED = endedWith(
  { plan: null, cancelRequested: true },
  'cancelled',
  'Cancelled before anything was applied.',
);

describe.each(STORES)('the end of a task on $kind', ({ open }) => {
  let store: TestStore;
  let ledger: Ledger;
  beforeAll(async () => {
    store = await open();
    ledger = store.ledger;
  });
  afterAll(() => store.close());

  const close = (
    { plan, taskId, ordinal, attempts }: Operation,
    end: TaskEnd = CANCELLED,
    attempt = attempts,
  ) =>
    closeOperation(
      { ledger },
      {
        plan,
        taskId,
        ordinal,
        attempt,
        end,
        journal: [{ type: 'cancel_requested', at: 1, data: { seq: 1 } }],
      },
    );

  test('[S6.5][S9] an approval that expired and was denied is alerted with the end, once; one a person gave up is not', async () => {
    const EXPIRED = endedWith({ plan: null, cancelRequested: false }, 'approval_expired', 'Nobody decided.');
    const operation = await Operation.reserve(ledger, { plan: { approval: ruleOf() } });
    for (let repeat = 0; repeat < 2; repeat += 1) await close(operation, EXPIRED, 0);
    expect(await operation.alerts()).toMatchObject([
      { type: 'approval_expired', message: 'Nobody decided.', state: 'waiting' },
    ]);
    const other = await Operation.reserve(ledger, { plan: { approval: ruleOf({ onExpiry: 'halt' }) } });
    await close(other, EXPIRED, 0);
    expect(await other.alerts()).toEqual([]);
  });

  test('[S3.8][S1.6] closes an operation that was never sent, past every attempt, and frees its key', async () => {
    for (const execute of [undefined, () => Promise.reject(ActionFailure.notSent('down'))]) {
      const operation = await Operation.reserve(ledger, execute ? { handlers: { execute } } : {});
      if (execute) await operation.attempt();
      expect(await close(operation, CANCELLED, 7)).toEqual({ kind: 'closed' });
      expect(await operation.row()).toMatchObject({
        end: { status: 'cancelled', effect: 'none' },
        attempt: 8,
      });
      expect(await operation.attempt({ attempt: 7 })).toMatchObject({ kind: 'spent', end: CANCELLED });
      expect(await close(operation, CANCELLED, 7)).toEqual({ kind: 'closed' });
      expect(operation.effects).toBe(0);
      const types = (await ledger.audit({ taskId: operation.taskId })).map(({ type }) => type);
      expect(types.filter((type) => type === 'cancel_requested')).toHaveLength(1);
    }
  });

  test('[S3.4] closes nothing that may have been sent: it must be settled first', async () => {
    const operation = await Operation.reserve(ledger);
    await operation.crash('after_effect');
    expect(await close(operation)).toEqual({ kind: 'inFlight', rowAttempt: 1 });
    expect(await operation.row()).toMatchObject({ state: 'in_flight', end: null });
    const inAttention = await Operation.reserve(ledger, {
      effect: 'unsafe',
      handlers: { execute: () => Promise.reject(new Error('reset')) },
    });
    await inAttention.attempt();
    expect(await close(inAttention)).toMatchObject({ kind: 'inFlight' });
  });

  test('[S3.4] an operation that committed after all is answered with its result', async () => {
    const operation = await Operation.reserve(ledger);
    await operation.attempt();
    expect(await close(operation)).toEqual({
      kind: 'committed',
      result: { kind: 'inline', value: { id: operation.operationId, amount: 5 } },
    });
    expect((await operation.row()).end).toMatchObject({ status: 'completed' });
  });

  test('[S7.4] records the end of a task that committed and was not cancelled', async () => {
    const operation = await Operation.reserve(ledger, { plan: { onCancel: 'rollback' } });
    await operation.attempt();
    const end = committedEnd({ plan: operation.plan, cancelRequested: false });
    expect(await close(operation, end)).toEqual({ kind: 'closed' });
    expect(await operation.row()).toMatchObject({ state: 'committed', end });
    expect(await close(operation, end)).toEqual({ kind: 'closed' });
  });

  test('[S1.5] a task whose operation belongs to a later one is superseded', async () => {
    const operation = await Operation.reserve(ledger);
    const { plan, ordinal } = operation;
    expect(
      await closeOperation(
        { ledger },
        { plan, taskId: 'another-task', ordinal, attempt: 1, end: CANCELLED, journal: [] },
      ),
    ).toEqual({ kind: 'superseded' });
  });

  test('[S10.1] a task that ran unrecorded has nothing to close', async () => {
    const operation = await Operation.reserve(ledger, { effect: 'safe', plan: { recorded: false } });
    expect(await close(operation)).toEqual({ kind: 'closed' });
    expect(await operation.row()).toMatchObject({ end: null });
  });

  describe('by a person', () => {
    const inAttention = async (spec: OperationSpec = {}) => {
      let calls = 0;
      const operation = await Operation.reserve(ledger, {
        ...spec,
        effect: 'unsafe',
        handlers: {
          execute: ({ amount }, { operationId }) =>
            (calls += 1) === 1
              ? Promise.reject(new Error('reset'))
              : Promise.resolve({ id: operationId, amount }),
          ...spec.handlers,
        },
      });
      await operation.attempt();
      return operation;
    };
    const resolve = (
      operation: Operation,
      resolution: ResolveRequest['resolution'],
      end: TaskEnd | null = null,
    ) => {
      const { plan, taskId, ordinal } = operation;
      const attempt = (operation.attempts += 1);
      return resolveOperation(
        { ledger },
        { plan, taskId, ordinal, attempt, about: 'effect', resolution, end, journal: [] },
      );
    };

    test('[S3.5] given up, its effect stays unknown and its key is spent', async () => {
      const operation = await inAttention();
      const resolution = { as: 'abandoned', by: 'bob' } as const;
      const end = resolvedEnd({ plan: operation.plan, cancelRequested: false }, resolution, null);
      expect(await resolve(operation, resolution, end)).toEqual({ end });
      expect(end).toMatchObject({ status: 'failed', effect: 'unknown', cause: 'abandoned' });
      expect(await operation.row()).toMatchObject({ state: 'abandoned', end });
      // The activity again, its answer lost.
      expect(await resolve(operation, resolution, end)).toEqual({ end });
    });

    test('[S3.5] not applied, it goes on; said twice it changes nothing', async () => {
      const operation = await inAttention();
      expect(await resolve(operation, { as: 'not_applied', by: 'bob' })).toEqual({ end: null });
      expect(await operation.row()).toMatchObject({ state: 'released' });
      expect(await resolve(operation, { as: 'not_applied', by: 'bob' })).toEqual({ end: null });
      operation.attempts += 1;
      expect(await operation.attempt()).toMatchObject({ kind: 'committed' });
    });

    test('[S3.5][S2.10] applied, with the result a person gives, redacted in the row', async () => {
      const operation = await inAttention({
        definition: { output: z.object({ id: z.string(), amount: sensitive(z.number()) }) },
        handlers: { verify: () => Promise.resolve(verified()) },
      });
      const result = { kind: 'inline', value: { id: 'by hand', amount: 12_345 } } as const;
      expect(
        await resolve(operation, { as: 'applied', by: 'bob', note: 'seen in the ledger', result }),
      ).toEqual({ end: null });
      expect((await operation.row()).result).toEqual({
        kind: 'inline',
        value: { id: 'by hand', amount: '[redacted]' },
      });
      operation.attempts += 1;
      expect(await operation.attempt({ purpose: 'settle' })).toMatchObject({ kind: 'committed' });
      expect(JSON.stringify(await ledger.audit({ taskId: operation.taskId }))).not.toMatch(/12345/);
    });
  });
});
