/** Workflow `action` on the time-skipping server: each way a task can go, what it asks for and what it writes. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AttemptRequest } from '../../src/task/activity-api.ts';
import {
  attention,
  committed,
  mismatch,
  notSent,
  notYet,
  rateLimited,
  released,
  unknown,
} from '../support/outcomes.ts';
import { planOf } from '../support/plans.ts';
import type { PlanOverrides } from '../support/plans.ts';
import { away } from '../support/scripted-activities.ts';
import type { ActivityScript } from '../support/scripted-activities.ts';
import {
  WorkflowStage,
  eventsOf,
  historyOf,
  isInPhase,
  planned,
  stateOf,
  stateWhen,
} from '../support/workflow-stage.ts';
import type { Played } from '../support/workflow-stage.ts';
import type { TaskOutcome } from '../../src/task/outcome.ts';

let stage: WorkflowStage;
beforeAll(async () => {
  stage = await WorkflowStage.open('time-skipping');
});
afterAll(() => stage.close());

const play = (script: ActivityScript, overrides: PlanOverrides = {}) =>
  stage.play(planned(overrides), script);
const ending = ({ outcome }: { outcome: TaskOutcome }) => [outcome.status, outcome.effect, outcome.cause];
const nothingElse = ({ scripted }: Played) => expect(scripted.unscripted).toEqual([]);

describe('the happy path', () => {
  test('dispatched is one activity and 11 events [S2]', async () => {
    const played = await play({ attempt: [committed] });
    expect(played.outcome).toEqual({
      taskId: played.handle.workflowId,
      operationId: 'op_test',
      action: 'reserve_inventory',
      status: 'completed',
      effect: 'applied',
      cause: 'committed',
      replayed: false,
      autoRetry: true,
      cancelRequested: false,
      result: { kind: 'inline', value: { reservationId: 'r-1' } },
      error: null,
    });
    expect(await historyOf(played.handle)).toEqual([
      'WORKFLOW_EXECUTION_STARTED',
      'ACTIVITY_TASK_SCHEDULED',
      'ACTIVITY_TASK_STARTED',
      'ACTIVITY_TASK_COMPLETED',
      'WORKFLOW_EXECUTION_COMPLETED',
    ]);
    expect(await eventsOf(played.handle)).toHaveLength(11);
    nothingElse(played);
  });

  test('inline is no activity but one marker, and 6 events [S2.13]', async () => {
    const played = await play({ attempt: [committed] }, { inline: true });
    expect(ending(played)).toEqual(['completed', 'applied', 'committed']);
    expect(await historyOf(played.handle)).toEqual([
      'WORKFLOW_EXECUTION_STARTED',
      'MARKER_RECORDED',
      'WORKFLOW_EXECUTION_COMPLETED',
    ]);
    expect(await eventsOf(played.handle)).toHaveLength(6);
    expect(played.scripted.attempts.map(({ inline }) => inline)).toEqual([true]);
    nothingElse(played);
  });

  test('an inline attempt that fails goes on dispatched [S2.13]', async () => {
    const played = await play({ attempt: [released, committed] }, { inline: true });
    expect(played.scripted.attempts.map(({ inline, attempt }) => [inline, attempt])).toEqual([
      [true, 1],
      [false, 2],
    ]);
    expect(await historyOf(played.handle)).toContain('ACTIVITY_TASK_COMPLETED');
  });
});

describe('what an activity is given', () => {
  test('is the whole frozen plan, the input and the place in the task [S2.12][S10.3]', async () => {
    const { scripted, handle } = await play({ attempt: [released, committed] });
    const second: AttemptRequest | undefined = scripted.attempts[1];
    expect(second).toEqual({
      plan: planOf(),
      input: { sku: 'A-1', quantity: 1 },
      taskId: handle.workflowId,
      ordinal: 1,
      attempt: 2,
      purpose: 'execute',
      inline: false,
      verifyFinal: false,
      journal: [],
    });
  });

  test('by the engine: one try, with deadlines above the handler’s own [S5.2][S5.3][case 4]', async () => {
    const { handle } = await play({ attempt: [released, committed] });
    const scheduled = (await eventsOf(handle)).flatMap(
      ({ activityTaskScheduledEventAttributes: given }) => given ?? [],
    );
    const seconds = (duration: { seconds?: unknown } | null | undefined) => Number(duration?.seconds ?? 0);
    expect(scheduled.map(({ startToCloseTimeout }) => seconds(startToCloseTimeout))).toEqual([23, 33]);
    for (const given of scheduled) {
      expect(given.retryPolicy?.maximumAttempts).toBe(1);
      expect(seconds(given.heartbeatTimeout)).toBe(5);
    }
  });
});

describe('retries', () => {
  test('wait by timer, at the time that the task shows [S5][S5.2]', async () => {
    const played = await play({ attempt: [rateLimited(7_000), released, committed] });
    expect(ending(played)).toEqual(['completed', 'applied', 'committed']);
    const state = await stateOf(played.handle);
    const [first, second] = state.attempts;
    expect((second?.startedAt ?? 0) - (first?.finishedAt ?? 0)).toBeGreaterThanOrEqual(7_000);
    expect((second?.startedAt ?? 0) - (first?.finishedAt ?? 0)).toBeLessThan(8_000);
    expect(
      (await historyOf(played.handle)).filter((name) => name === 'TIMER_FIRED').length,
    ).toBeGreaterThanOrEqual(1);
    nothingElse(played);
  });

  test('end with the budget, closed in the ledger first [S5]', async () => {
    const played = await play(
      { attempt: [released, released], close: [{ kind: 'closed' }] },
      { retry: { maximumRetries: 1 } },
    );
    expect(ending(played)).toEqual(['failed', 'none', 'retries_exhausted']);
    expect(played.scripted.names).toEqual(
      ['attemptOperation', 'attemptOperation', 'recordNotes', 'closeOperation'].filter(
        (name) => name !== 'recordNotes',
      ),
    );
    expect(played.scripted.notes.map(({ type }) => type)).toEqual(['retries_exhausted']);
    nothingElse(played);
  });

  test('reconcile what is unknown under the same operation [S5]', async () => {
    const played = await play({ attempt: [unknown, committed] });
    expect(ending(played)).toEqual(['completed', 'applied', 'committed']);
    expect(played.scripted.attempts.map(({ plan, attempt }) => [plan.operationId, attempt])).toEqual([
      ['op_test', 1],
      ['op_test', 2],
    ]);
  });

  test('of a lost activity spend nothing, and the loss is in the audit [S5.2][S3.8][S10.3]', async () => {
    const played = await play({ attempt: [away, away, committed] }, { retry: { maximumRetries: 0 } });
    expect(ending(played)).toEqual(['completed', 'applied', 'committed']);
    expect((await stateOf(played.handle)).retriesSpent).toBe(0);
    expect(played.scripted.notes.map(({ type }) => type)).toEqual(['step_lost', 'step_lost']);
  });
});

describe('verification', () => {
  test('over 30 days keeps the history bounded: it continues as new with state, journal and budget [S2.6][S3.6][case 28]', async () => {
    const day = 86_400_000;
    const answer = ({ verifyFinal }: AttemptRequest) => (verifyFinal ? committed : notYet);
    const attempt = Array<typeof answer>(1_000).fill(answer);
    const played = await play({ attempt }, { deadlines: { verifyMs: 30 * day, runMs: day } });
    expect(ending(played)).toEqual(['completed', 'applied', 'committed']);
    const state = await stateOf(played.handle);
    expect(state.verifyPolls).toBeGreaterThan(720);
    expect([state.attempt, state.attempts.length]).toEqual([state.verifyPolls + 1, 100]);
    expect(state.updatedAt - state.startedAt).toBeGreaterThanOrEqual(30 * day);
    expect(state.retriesSpent).toBe(0);
    const [first] = await eventsOf(played.handle);
    expect(first?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId).not.toBe('');
    expect((await eventsOf(played.handle)).length).toBeLessThan(4_100);
    const events = await played.handle.query<{ seq: number }[]>('events');
    expect([events.length, events.at(-1)?.seq]).toEqual([200, state.seq]);
    nothingElse(played);
  }, 120_000);

  test('that ends in a mismatch undoes the effect [S2.6][S6.2]', async () => {
    const retry = { kind: 'retry' as const, failure: notSent };
    const played = await play({
      attempt: [mismatch],
      rollback: [retry, { kind: 'rolledBack', remains: 'a fee' }],
    });
    expect(ending(played)).toEqual(['failed', 'rolled_back', 'verify_failed']);
    expect(played.outcome.error?.details).toEqual({ remains: 'a fee' });
    expect(played.scripted.names).toEqual(['attemptOperation', 'rollbackOperation', 'rollbackOperation']);
    nothingElse(played);
  });
});

describe('the run deadline', () => {
  test('stops a task that waits for its next try [S5.3]', async () => {
    const played = await play(
      { attempt: [rateLimited(60_000)], close: [{ kind: 'closed' }] },
      { deadlines: { runMs: 5_000 } },
    );
    expect(ending(played)).toEqual(['failed', 'none', 'deadline_exceeded']);
    expect(played.scripted.notes.map(({ type }) => type)).toEqual(['run_deadline_passed']);
    nothingElse(played);
  });

  test('in doubt settles first [S5.3]', async () => {
    const slow = { kind: 'released' as const, failure: notSent };
    const played = await play(
      { attempt: [unknown, unknown, unknown, slow], close: [{ kind: 'closed' }] },
      {
        deadlines: { runMs: 1 },
      },
    );
    expect(ending(played)).toEqual(['failed', 'none', 'deadline_exceeded']);
  });
});

describe('a task that only a person can move on', () => {
  test('is in the inbox while it waits, and the audit has its notes before it does [S3.5][S10.3]', async () => {
    const played = await stage.start(planned(), {
      attempt: [away, attention],
      resolve: [({ end }) => ({ end })],
    });
    await stage.server.env.sleep('2 seconds');
    const state = await stateWhen(played.handle, isInPhase('needs_attention'));
    expect(played.scripted.names).toEqual(['attemptOperation', 'attemptOperation']);
    expect(state.phase).toMatchObject({ about: 'effect' });
    const shown = async () => {
      const { typedSearchAttributes } = await played.handle.describe();
      const all = typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value] as const);
      // The engine's own names the patches that the run went by.
      return Object.fromEntries(all.filter(([name]) => name !== 'TemporalChangeVersion'));
    };
    expect(await shown()).toMatchObject({
      HoldfastStatus: 'needs_attention',
      HoldfastWaitingSince: expect.any(Date),
    });
    await played.handle.signal('resolve', { as: 'abandoned', by: 'eve' });
    const outcome = await played.handle.result();
    expect(ending({ outcome })).toEqual(['failed', 'unknown', 'abandoned']);
    expect(await shown()).toEqual({});
  });
});
