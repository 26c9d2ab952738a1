/** How workflow `action` is started: bare, by mistake, without a worker for days; and what a worker that dies leaves behind. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { WorkflowFailedError } from '@temporalio/client';
import type { BareStart, PlanTaskResult } from '../../src/task/activity-api.ts';
import { RESULT, committed, notYet, released } from '../support/outcomes.ts';
import { deferred } from '../support/deferred.ts';
import { planOf } from '../support/plans.ts';
import { away } from '../support/scripted-activities.ts';
import {
  WorkflowStage,
  eventsOf,
  historyOf,
  planned,
  stateOf,
  stateWhen,
} from '../support/workflow-stage.ts';
import type { ActionHandle } from '../support/workflow-stage.ts';

let stage: WorkflowStage;
beforeAll(async () => {
  stage = await WorkflowStage.open('time-skipping');
});
afterAll(() => stage.close());

const BARE: BareStart = {
  v: 1,
  action: 'reserve_inventory',
  input: { sku: 'A-1', quantity: 1 },
  key: 'order-1',
  principal: { tenant: 'local', subject: 'ann', roles: [] },
};
const PLANNED: PlanTaskResult = {
  kind: 'planned',
  plan: planOf({ inline: true }),
  input: { sku: 'A-1', quantity: 1 },
  ordinal: 2,
};

describe('started bare, by any Temporal client', () => {
  test('it plans and reserves in its first activity, under its own id, then acts: two activities [S1.5][S2.13]', async () => {
    const { scripted, outcome, handle } = await stage.play(BARE, { plan: [PLANNED], attempt: [committed] });
    expect(scripted.names).toEqual(['planTask', 'attemptOperation']);
    expect(scripted.calls[0]?.request).toEqual({ start: BARE, taskId: handle.workflowId });
    expect(scripted.attempts[0]).toMatchObject({ ordinal: 2, attempt: 1, inline: false });
    expect([outcome.status, outcome.operationId]).toEqual(['completed', 'op_test']);
    expect((await historyOf(handle)).filter((name) => name === 'ACTIVITY_TASK_COMPLETED')).toHaveLength(2);
  });

  test.each([
    [
      'arguments that do not fit',
      {
        status: 'failed',
        effect: 'none',
        cause: 'invalid_arguments',
        error: { code: 'invalid_arguments', message: 'No.' },
      },
      null,
      false,
    ],
    [
      'a key that another open task owns',
      {
        status: 'failed',
        effect: 'none',
        cause: 'operation_in_progress',
        error: { code: 'operation_in_progress', message: 'Open.', details: { taskId: 'other' } },
      },
      null,
      false,
    ],
    [
      'a key that committed before',
      { status: 'completed', effect: 'applied', cause: 'committed', error: null },
      RESULT,
      true,
    ],
  ] as const)(
    'with %s it ends with what planning says, and acts not at all [S1.5][S2.1]',
    async (_name, end, result, replayed) => {
      const refused: PlanTaskResult = {
        kind: 'refused',
        end: { ...end, cancelRequested: false },
        operationId: 'op_test',
        result,
        replayed,
      };
      const { scripted, outcome } = await stage.play(BARE, { plan: [refused] });
      expect(scripted.names).toEqual(['planTask']);
      expect(outcome).toMatchObject({ ...end, result, replayed, action: 'reserve_inventory' });
    },
  );

  test('it plans until the ledger is there, for hours or weeks, without filling its history [S3.6][S5.2]', async () => {
    const late: PlanTaskResult = { ...PLANNED, plan: planOf({ deadlines: { runMs: 1e10 } }) };
    const plan = [...Array<() => never>(400).fill(away), late];
    const { outcome, handle } = await stage.play(BARE, { plan, attempt: [committed] });
    expect(outcome.status).toBe('completed');
    expect((await eventsOf(handle)).length).toBeLessThan(4_100);
    expect((await stateOf(handle)).seq).toBeGreaterThan(1_200);
  });

  test('and cancelled while it plans it closes what it reserved [S7.4]', async () => {
    const gate = deferred();
    const asked = deferred();
    const plan = async () => (asked.resolve(), await gate.promise, PLANNED);
    const { outcome, scripted } = await stage.play(
      BARE,
      { plan: [plan], close: [{ kind: 'closed' }] },
      async (handle) => {
        await asked.promise;
        await handle.signal('cancel', { by: 'ann' });
        gate.resolve();
      },
    );
    expect([outcome.status, outcome.effect]).toEqual(['cancelled', 'none']);
    expect(scripted.names).toEqual(['planTask', 'closeOperation']);
  });
});

describe('misuse fails at once, with a message that says how it is meant', () => {
  const failureOf = (argument: unknown, options = {}) =>
    stage.start(argument, {}, options).then(({ handle, scripted }) =>
      handle.result().then(
        () => expect.unreachable(),
        ({ cause }: WorkflowFailedError) => ({ cause, scripted }),
      ),
    );

  test('a retry policy on the workflow is refused, and nothing ran twice: nothing ran [case 5]', async () => {
    const { cause, scripted } = await failureOf(planned(), { retry: { maximumAttempts: 3 } });
    expect(cause).toMatchObject({
      type: 'invalid_arguments',
      message: expect.stringContaining('retry policy'),
    });
    expect(scripted.names).toEqual([]);
  });

  test.each([
    ['nothing', undefined],
    ['null', null],
    ['text', 'reserve_inventory'],
    ['a list', []],
    ['another version', { ...BARE, v: 2 }],
    ['no principal', { ...BARE, principal: undefined }],
    ['half a principal', { ...BARE, principal: { tenant: 'local' } }],
    ['no input', { ...BARE, input: undefined }],
    ['a key that is no text', { ...BARE, key: 7 }],
    ['a plan without deadlines', { ...planned(), plan: { ...planOf(), deadlines: undefined } }],
    [
      'a plan with a deadline that is no number',
      { ...planned(), plan: planOf({ deadlines: { runMs: Number.NaN } }) },
    ],
    ['a plan without ordinal', { ...planned(), ordinal: undefined }],
  ])('%s is refused [S1.4]', async (_name, argument) => {
    const { cause, scripted } = await failureOf(argument);
    expect(cause).toMatchObject({
      type: 'invalid_arguments',
      message: expect.stringContaining('{v: 1, plan, input, ordinal}'),
    });
    expect(scripted.names).toEqual([]);
  });
});

describe('without a worker', () => {
  test('a task waits, and runs once there is one [S5.2]', async () => {
    await stage.stopWorker();
    const played = await stage.start(planned(), { attempt: [committed] });
    await stage.startWorker();
    expect((await played.handle.result()).status).toBe('completed');
  });

  test('past its run deadline nothing is executed any more: the deadline counts from the start [S5.3]', async () => {
    await stage.stopWorker();
    const late = planned({ deadlines: { runMs: 1 }, inline: true });
    const played = await stage.start(late, { close: [{ kind: 'closed' }] });
    await stage.startWorker();
    const outcome = await played.handle.result();
    expect([outcome.status, outcome.effect, outcome.cause]).toEqual(['failed', 'none', 'deadline_exceeded']);
    expect(played.scripted.names).toEqual(['closeOperation']);
  });

  test.each([
    ['signal', (handle: ActionHandle) => handle.signal('cancel', { by: 'ann' })],
    ['the engine', (handle: ActionHandle) => handle.cancel()],
  ])(
    'a cancel by %s waits with the task, and is heard before anything begins [S7.4][S7.5]',
    async (_way, cancel) => {
      await stage.stopWorker();
      const played = await stage.start(planned({ inline: true }), { close: [{ kind: 'closed' }] });
      await cancel(played.handle);
      await stage.startWorker();
      expect((await played.handle.result()).status).toBe('cancelled');
      expect(played.scripted.names).toEqual(['closeOperation']);
    },
  );
});

describe('a worker that restarts with a cold cache', () => {
  test('with every workflow evicted after each task replays the same way [S3.1][case 15]', async () => {
    await stage.stopWorker();
    await stage.startWorker({ maxCachedWorkflows: 0 });
    const { outcome, scripted } = await stage.play(
      planned({ onCancel: 'rollback' }),
      {
        attempt: [released, away, notYet, committed],
        rollback: [
          { kind: 'retry', failure: { kind: 'notApplied', code: 'x', message: 'x' } },
          { kind: 'rolledBack' },
        ],
      },
      async (handle) => {
        await stateWhen(handle, ({ attempts }) => attempts.length >= 1);
        await handle.signal('cancel');
      },
    );
    expect(outcome.status).toMatch(/cancelled|completed/);
    expect(scripted.attempts.map(({ attempt }) => attempt)).toEqual(
      scripted.attempts.map((_, index) => index + 1),
    );
    await stage.stopWorker();
    await stage.startWorker();
  });
});
