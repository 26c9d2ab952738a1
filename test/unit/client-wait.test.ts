/** Waiting and messages over a hand-driven engine: what real servers do only when they are ill. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createHints, HoldfastClient } from '../../src/client/index.ts';
import type { Hints } from '../../src/client/index.ts';
import { defineAction, implementAction } from '../../src/index.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { openLedger } from '../../src/ledger/open-ledger.ts';
import type { TaskState } from '../../src/task/state.ts';
import { ruleOf } from '../support/approvals.ts';
import { HandDrivenEngine } from '../support/hand-driven-engine.ts';

const ann = { tenant: 'acme', subject: 'ann', roles: [] };
const transfer = implementAction(
  defineAction({
    name: 'transfer',
    version: 1,
    description: 'moves money',
    effect: 'conditional',
    input: z.object({ amount: z.int() }),
    output: z.object({ id: z.string() }),
    approval: () => false,
    rollback: { kind: 'outOfBand' },
    verify: { none: 'the bank says so' },
  }),
  { execute: async (_input, { operationId }) => ({ id: operationId }) },
);

let ledger: Ledger;
let engine: HandDrivenEngine;
let hints: Hints;
let client: HoldfastClient;
let taskId: string;
beforeEach(async () => {
  ledger = await openLedger({ url: 'sqlite::memory:', allowEphemeral: true });
  await ledger.migrate();
  engine = new HandDrivenEngine();
  hints = createHints();
  client = new HoldfastClient(
    { temporal: null as never, ledger, actions: [transfer], taskQueue: 'q', hints },
    engine,
  );
  ({ taskId } = await client.start({ action: 'transfer', args: { amount: 1 }, key: 'k', principal: ann }));
});
afterEach(() => ledger.close());

const wait = (timeoutMs = 5_000) => client.wait(taskId, ann, { timeoutMs });
const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('waiting', () => {
  test('answers what the workflow returned, without asking a worker', async () => {
    const waiting = wait();
    await settle();
    engine.isWorkerAlive = false;
    engine.complete(taskId, { result: { kind: 'inline', value: { id: 'tx' } } });
    expect(await waiting).toMatchObject({ status: 'completed', result: { id: 'tx' }, stale: false });
  });

  test('looks at once when a hint says that a person is needed', async () => {
    const row = await ledger.findByTask(taskId);
    const looks: number[] = [];
    const sight = engine.sight.bind(engine);
    engine.sight = (id) => {
      looks.push(Date.now());
      return sight(id);
    };
    const waiting = wait(300);
    await settle();
    hints.publish(taskId, 2, 'running');
    hints.publish(taskId, 3, 'verifying');
    await settle();
    expect(looks).toEqual([]);
    hints.publish(taskId, 4, 'needs_attention');
    await expect.poll(() => looks.length).toBe(1);
    expect(row?.end).toBeNull();
    await waiting;
  });

  /** From now on a worker says that the task waits for its approval. */
  const openApproval = (): void => {
    const sight = engine.sight.bind(engine);
    const approval = {
      ...{ callId: 'action#1', openedAt: 1, expiresAt: 2, fingerprint: 'f', view: {} },
      ...{ roles: [], approvedBy: [], wrongAnswers: 0, hasEscalated: false },
    };
    engine.sight = async (id) => {
      const { record, state } = await sight(id);
      const plan = state?.plan ? { ...state.plan, approval: ruleOf() } : null;
      const phase: TaskState['phase'] = { kind: 'awaiting_approval', approval, toJudge: [] };
      return { record, state: state && { ...state, plan, phase } };
    };
  };

  test('ends with a hint that an approval opened, and says what is asked [M3.1] [S4.7]', async () => {
    const waiting = wait();
    await settle();
    openApproval();
    hints.publish(taskId, 2, 'awaiting_approval');
    expect(await waiting).toMatchObject({
      status: 'awaiting_approval',
      approval: { callId: 'action#1', mayAnswerOverMcp: false },
    });
  });

  test('ends at an approval without a hint too: a row that stays reserved is looked into [M3.1]', async () => {
    const waiting = wait(20_000);
    openApproval();
    expect(await waiting).toMatchObject({ status: 'awaiting_approval', approval: { callId: 'action#1' } });
  });

  test('outlives an engine that goes away and comes back', async () => {
    const waiting = wait();
    await settle();
    engine.isReachable = false;
    engine.complete(taskId, {}); // wakes the poll, which finds the engine away
    setTimeout(() => (engine.isReachable = true), 50);
    expect(await waiting).toMatchObject({ status: 'completed' });
  });

  test('with the engine away answers the last known state at its end, marked stale', async () => {
    engine.isReachable = false;
    expect(await wait(50)).toMatchObject({ stale: true, status: 'proposed' });
  });

  test('of no time at all is a read', async () => {
    expect(await wait(0)).toMatchObject({ status: 'running' });
  });

  test('with a signal aborted before it began returns at once', async () => {
    const answer = await client.wait(taskId, ann, { timeoutMs: 5_000, signal: AbortSignal.abort() });
    expect(answer.status).toBe('running');
  });
});

describe('messages', () => {
  test('a cancel no worker takes is stored by the engine and said to be requested [S7.4]', async () => {
    engine.isWorkerAlive = false;
    expect(await client.cancel(taskId, ann)).toEqual({
      accepted: true,
      code: 'requested',
      status: 'proposed',
    });
    expect(engine.runs.get(taskId)?.told).toEqual(['cancel']);
  });

  test('a cancel of a task that the engine closed in flight goes to its successor [S3.8]', async () => {
    const { operationId } = (await ledger.findByTask(taskId))!;
    const claim = { operationId, taskId, ordinal: 1, attempt: 1, claimMs: 5_000, attemptMs: 5_000 };
    await ledger.claim({ ...claim, executing: true, notes: [] });
    engine.kill(taskId);
    expect(await client.cancel(taskId, ann)).toMatchObject({ accepted: true, code: 'requested' });
    const successor = await ledger.find(operationId);
    expect(successor?.taskId).not.toBe(taskId);
    expect(engine.runs.get(successor!.taskId)?.told).toEqual(['cancel']);
  });

  test('while the engine is away they fail as retryable, and promise nothing', async () => {
    engine.isReachable = false;
    await expect(client.cancel(taskId, ann)).rejects.toMatchObject({
      code: 'engine_unavailable',
      retryable: true,
    });
  });

  test('a resolution of another shape is refused with its issues', async () => {
    await expect(client.resolve(taskId, ann, { as: 'maybe' as never })).rejects.toMatchObject({
      code: 'invalid_resolution',
    });
    await expect(client.resolve(taskId, ann, { as: 'applied', result: 7 })).rejects.toMatchObject({
      code: 'invalid_resolution',
    });
  });
});
