/** The adapters between Temporal and the protocol: signals, heartbeats, errors, and planning of bare tasks. */
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createTaskActivities } from '../../activities/create-task-activities.ts';
import { defineAction } from '../../src/contract/define-action.ts';
import { HoldfastError } from '../../src/contract/error.ts';
import { verified } from '../../src/contract/handlers.ts';
import { implementAction } from '../../src/contract/implement-action.ts';
import type { Action } from '../../src/contract/implement-action.ts';
import { sensitive } from '../../src/contract/sensitive.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import type { TaskActivities } from '../../src/task/activity-api.ts';
import { Operation, STORES } from '../support/operation-rig.ts';
import type { OperationSpec, TestStore } from '../support/operation-rig.ts';

const PRINCIPAL = { tenant: 'local', subject: 'ann', roles: [] };

describe.each(STORES)('the activities on $kind', ({ open }) => {
  let store: TestStore;
  let ledger: Ledger;
  beforeAll(async () => {
    store = await open();
    ledger = store.ledger;
  });
  afterAll(() => store.close());

  const environment = (info: ConstructorParameters<typeof MockActivityEnvironment>[0] = {}) =>
    new MockActivityEnvironment({ heartbeatTimeoutMs: 900, ...info }, { logger: new DefaultLogger('ERROR') });
  const runIn = <T>(env: MockActivityEnvironment, work: () => Promise<T>): Promise<T> =>
    env.run<unknown[], T, () => Promise<T>>(work);
  const activitiesOf = ({ action }: { action: Action }, given: Ledger = ledger): TaskActivities =>
    createTaskActivities({ ledger: given, actions: [action] });
  const thrown = async (run: Promise<unknown>): Promise<ApplicationFailure> => {
    const error = await run.then(
      () => new Error('it did not throw'),
      (reason: unknown) => reason,
    );
    if (error instanceof ApplicationFailure) return error;
    throw error;
  };

  test('[S2.13] attempt, rollback, close, resolve and notes answer as the protocol does, as activities and as local ones', async () => {
    for (const isLocal of [false, true]) {
      const operation = await Operation.reserve(ledger, {
        handlers: { rollback: () => Promise.resolve(), verifyRollback: () => Promise.resolve(verified()) },
        plan: { onCancel: 'rollback' },
      });
      const { plan, input, taskId, ordinal } = operation;
      const activities = activitiesOf(operation);
      const run = <T>(work: () => Promise<T>): Promise<T> => runIn(environment({ isLocal }), work);
      expect(
        await run(() => activities.attemptOperation(operation.request({ inline: isLocal }))),
      ).toMatchObject({ kind: 'committed' });
      const rollback = {
        plan,
        input,
        taskId,
        ordinal,
        attempt: 2,
        reason: 'cancelled',
        final: false,
        journal: [],
      } as const;
      expect(await run(() => activities.rollbackOperation({ ...rollback, journal: [] }))).toEqual({
        kind: 'rolledBack',
      });
      const end = {
        status: 'cancelled',
        effect: 'none',
        cause: 'cancelled',
        error: null,
        cancelRequested: true,
      } as const;
      expect(
        await run(() => activities.closeOperation({ plan, taskId, ordinal, attempt: 3, end, journal: [] })),
      ).toEqual({ kind: 'closed' });
      const resolution = { as: 'abandoned', by: 'bob' } as const;
      const answer = await run(() =>
        activities.resolveOperation({
          plan,
          taskId,
          ordinal,
          attempt: 4,
          about: 'effect',
          resolution,
          end: null,
          journal: [],
        }),
      );
      expect(answer.end).toMatchObject({ effect: 'rolled_back' });
      await run(() =>
        activities.recordNotes({
          plan,
          taskId,
          journal: [{ type: 'cancel_requested', at: 1, data: { seq: 9 } }],
        }),
      );
      expect((await ledger.audit({ taskId })).at(-1)).toMatchObject({
        type: 'cancel_requested',
        data: { seq: 9 },
      });
    }
  });

  test('[S7.5] heartbeats densely while a handler is at work, and not at all when local', async () => {
    for (const isLocal of [false, true]) {
      const slow = async (_input: unknown, { operationId }: { operationId: string }) => (
        await sleep(400),
        { id: operationId, amount: 5 }
      );
      const operation = await Operation.reserve(ledger, { handlers: { execute: slow } });
      const env = environment({ isLocal, heartbeatTimeoutMs: 300 });
      let beats = 0;
      env.on('heartbeat', () => (beats += 1));
      await runIn(env, () =>
        activitiesOf(operation).attemptOperation(operation.request({ inline: isLocal })),
      );
      if (isLocal) expect(beats).toBe(0);
      else expect(beats).toBeGreaterThanOrEqual(3);
    }
  });

  test('[S7.5][S3.8] cancelled after sending, the outcome is unknown; before, the cancellation is passed on', async () => {
    const env = environment();
    const operation = await Operation.reserve(ledger, {
      handlers: {
        execute: (_input, { signal }) => {
          setTimeout(() => env.cancel('CANCELLED'), 20);
          return new Promise((_resolve, reject) =>
            signal.addEventListener('abort', () => reject(signal.reason as Error)),
          );
        },
      },
    });
    expect(
      await runIn(env, () => activitiesOf(operation).attemptOperation(operation.request())),
    ).toMatchObject({
      kind: 'unknown',
      attention: false,
    });

    const unsent = await Operation.reserve(ledger);
    const stopped = environment();
    stopped.cancel('WORKER_SHUTDOWN');
    await expect(
      runIn(stopped, () => activitiesOf(unsent).attemptOperation(unsent.request())),
    ).rejects.toBeInstanceOf(CancelledFailure);
    expect(unsent.effects).toBe(0);
  });

  test('[S2.10] errors cross with their code as type, never retried by the engine, without stack, cause or foreign text', async () => {
    const operation = await Operation.reserve(ledger);
    const request = operation.request();
    const unavailable = {
      ...ledger,
      find: () =>
        Promise.reject(
          new HoldfastError('ledger_unavailable', 'The ledger is away.', { details: { driverCode: 'X' } }),
        ),
    };
    const away = await thrown(
      runIn(environment(), () => activitiesOf(operation, unavailable).attemptOperation(request)),
    );
    expect(away).toMatchObject({
      type: 'ledger_unavailable',
      nonRetryable: true,
      message: 'The ledger is away.',
      details: [{ driverCode: 'X' }],
    });
    expect(away.stack).not.toMatch(/\n\s+at /);

    const broken = { ...ledger, find: () => Promise.reject(new TypeError('password=hunter2')) };
    const defect = await thrown(
      runIn(environment(), () => activitiesOf(operation, broken).attemptOperation(request)),
    );
    expect(defect).toMatchObject({
      type: 'internal_error',
      nonRetryable: true,
      message: 'A defect in Holdfast (TypeError).',
    });
    expect(defect.cause).toBeUndefined();
  });

  test('[S3.8] an action this worker does not have is for another worker', async () => {
    const operation = await Operation.reserve(ledger);
    const { plan, input, taskId, ordinal } = operation;
    const none = createTaskActivities({ ledger, actions: [] });
    const rollback = {
      plan,
      input,
      taskId,
      ordinal,
      attempt: 1,
      reason: 'cancelled',
      final: true,
      journal: [],
    } as const;
    const start = { v: 1, action: 'transfer', input: {}, principal: PRINCIPAL } as const;
    for (const run of [
      () => none.attemptOperation(operation.request()),
      () => none.rollbackOperation({ ...rollback, journal: [] }),
      () => none.planTask({ start, taskId: 'bare' }),
    ]) {
      expect(await thrown(runIn<unknown>(environment(), run))).toMatchObject({
        type: 'unknown_action',
        nonRetryable: true,
      });
    }
    expect(await operation.row()).toMatchObject({ state: 'reserved' });
  });

  describe('planning a bare task', () => {
    let started = 0;
    const bare = (args: Record<string, unknown> = { amount: 5 }, key?: string) =>
      ({
        v: 1,
        action: 'transfer',
        input: args as never,
        principal: PRINCIPAL,
        ...(key !== undefined && { key }),
      }) as const;
    const nextId = () => `bare-${ledger.kind}-${(started += 1)}`;
    const transfer = (overrides: OperationSpec['definition'] = {}): Action => {
      const contract = defineAction({
        name: 'transfer',
        version: 1,
        description: 'Moves.',
        input: z.object({ amount: z.number() }),
        output: z.object({ id: z.string(), amount: z.number() }),
        effect: 'conditional',
        rollback: { kind: 'outOfBand' },
        verify: { none: 'a test' },
        ...overrides,
      });
      return implementAction(contract, {
        execute: async (input: { amount: number }, { operationId }: { operationId: string }) =>
          Promise.resolve({ id: operationId, amount: input.amount }),
      });
    };
    const plan = (
      start: ReturnType<typeof bare>,
      taskId: string,
      action = transfer(),
      hashKey?: Uint8Array,
    ) =>
      runIn(environment(), () =>
        createTaskActivities({ ledger, actions: [action], ...(hashKey && { hashKey }) }).planTask({
          start,
          taskId,
        }),
      );

    test('[S1.5] plans and reserves under the workflow’s own id, and answers the same when it runs again', async () => {
      const taskId = nextId();
      const planned = await plan(bare({ amount: 5 }, taskId), taskId);
      expect(planned).toMatchObject({
        kind: 'planned',
        ordinal: 1,
        input: { amount: 5 },
        plan: { action: 'transfer', key: taskId, keyed: true, autoRetry: true },
      });
      expect(await plan(bare({ amount: 5 }, taskId), taskId)).toEqual(planned);
      if (planned.kind !== 'planned') throw new Error(planned.kind);
      expect(await ledger.find(planned.plan.operationId)).toMatchObject({
        taskId,
        state: 'reserved',
        ordinal: 1,
      });
    });

    test('[S1.7][S2.12] without a key it has one of its own, the same when planned again, and is not retried', async () => {
      const taskId = nextId();
      const planned = await plan(bare(), taskId);
      expect(planned).toMatchObject({ kind: 'planned', plan: { keyed: false, autoRetry: false } });
      expect(await plan(bare(), taskId)).toEqual(planned);
      const other = await plan(bare(), nextId());
      if (planned.kind !== 'planned' || other.kind !== 'planned') throw new Error(planned.kind);
      expect(other.plan.operationId).not.toBe(planned.plan.operationId);
      expect(await ledger.find(planned.plan.operationId)).toMatchObject({ keyed: false });
    });

    test('[S1.5] an operation that another open task owns is in progress there', async () => {
      const [first, second] = [nextId(), nextId()];
      await plan(bare({ amount: 5 }, `shared-${first}`), first);
      expect(await plan(bare({ amount: 5 }, `shared-${first}`), second)).toMatchObject({
        kind: 'refused',
        replayed: false,
        end: {
          status: 'failed',
          effect: 'none',
          cause: 'operation_in_progress',
          error: { code: 'operation_in_progress', details: { taskId: first } },
        },
      });
    });

    test('[S2.1] a committed one is answered as replayed, with its result', async () => {
      const operation = await Operation.reserve(ledger, { key: `committed-bare-${ledger.kind}` });
      await operation.attempt();
      const answer = await plan(bare({ amount: 5 }, `committed-bare-${ledger.kind}`), nextId());
      const result = { kind: 'inline', value: { id: operation.operationId, amount: 5 } };
      expect(answer).toEqual({
        kind: 'refused',
        replayed: true,
        operationId: operation.operationId,
        result,
        end: expect.objectContaining({ status: 'completed', effect: 'applied' }) as unknown,
      });
    });

    test('[S2.1] a rolled back one has spent its key', async () => {
      const key = `rolled-back-bare-${ledger.kind}`;
      const handlers = {
        rollback: () => Promise.resolve(),
        verifyRollback: () => Promise.resolve(verified()),
      };
      const operation = await Operation.reserve(ledger, { key, handlers, plan: { onCancel: 'rollback' } });
      await operation.attempt();
      await operation.rollback();
      expect(await plan(bare({ amount: 5 }, key), nextId())).toMatchObject({
        kind: 'refused',
        replayed: true,
        result: null,
        end: { status: 'failed', cause: 'operation_rolled_back' },
      });
    });

    test('[S2.1] other arguments under the same key are refused by path', async () => {
      const first = nextId();
      await plan(bare({ amount: 5 }, `conflict-${first}`), first);
      const end = {
        cause: 'idempotency_conflict',
        effect: 'none',
        error: { code: 'idempotency_conflict', details: { paths: ['/amount'] } },
      };
      expect(await plan(bare({ amount: 6 }, `conflict-${first}`), nextId())).toMatchObject({
        kind: 'refused',
        end,
      });
    });

    test('[M1.2] arguments, keys and principals that are none are refused before anything is reserved', async () => {
      const refused = async (start: unknown) => {
        const answer = await plan(start as ReturnType<typeof bare>, nextId());
        if (answer.kind !== 'refused') throw new Error(answer.kind);
        expect(answer).toMatchObject({
          operationId: null,
          result: null,
          end: { status: 'failed', effect: 'none' },
        });
        return [answer.end.cause, answer.end.error?.code];
      };
      expect(await refused(bare({ amount: 'five' }))).toEqual(['invalid_arguments', 'invalid_arguments']);
      expect(await refused(bare({ amount: 5 }, ''))).toEqual(['invalid_arguments', 'invalid_key']);
      expect(await refused({ ...bare(), principal: { tenant: '' } })).toEqual([
        'invalid_arguments',
        'invalid_arguments',
      ]);
      expect(await refused(bare({ amount: 5, pad: 'x'.repeat(1_048_577) }))).toEqual([
        'invalid_arguments',
        'payload_too_large',
      ]);
    });

    test('[S2.10] sensitive arguments need a key to be hashed with; without one the task waits for a worker that has it', async () => {
      const action = transfer({ input: z.object({ amount: sensitive(z.number()) }) });
      expect(await thrown(plan(bare({ amount: 5 }, nextId()), nextId(), action))).toMatchObject({
        type: 'encryption_key_required',
      });
      const taskId = nextId();
      const planned = await plan(bare({ amount: 5 }, taskId), taskId, action, Buffer.alloc(32, 7));
      if (planned.kind !== 'planned') throw new Error(planned.kind);
      const row = await ledger.find(planned.plan.operationId);
      expect(row?.arguments).toEqual({ amount: expect.stringMatching(/^hmac-sha256:/) as unknown });
    });
  });
});
