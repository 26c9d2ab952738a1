/** S7.1 to S7.3 through the pure core: the overlay, what begins and ends under it, and the decision table row by row. */
import { strict as assert } from 'node:assert';
import { describe, test } from 'vitest';
import { decide } from '../../src/task/decide.ts';
import { statusOf } from '../../src/task/view.ts';
import { BOB, CLOSED, HOUR_MS, ending, opened, started, typesOf } from '../support/approvals.ts';
import {
  RESULT,
  attention,
  committed,
  mismatch,
  notYet,
  rateLimited,
  released,
  unknown,
} from '../support/outcomes.ts';
import { planOf } from '../support/plans.ts';
import type { PlanOverrides } from '../support/plans.ts';
import { TaskDriver, scripted } from '../support/task-driver.ts';
import type { Script } from '../support/task-driver.ts';

const DONE = ['completed', 'applied', 'committed'];
const driven = (script: Script, overrides: PlanOverrides = {}) =>
  new TaskDriver(planOf(overrides), scripted(script));
/** The answer, with an interrupt arriving while its step is under way. */
const interrupted =
  <T>(answer: T) =>
  (_verdict: unknown, driver: TaskDriver): T => (driver.interrupt(), answer);
const isAtRest = ({ state, now }: TaskDriver) => ['wait', 'nothing'].includes(decide(state, now).do);
/** Steps while there is something to do without waiting. */
const settle = (driver: TaskDriver, stepsMax = 50) => {
  for (let count = 0; !isAtRest(driver); count += 1) {
    assert(count < stepsMax, `no rest in phase ${driver.state.phase.kind}`);
    driver.step();
  }
  return driver;
};

describe('an interrupt', () => {
  test('is an overlay: the status underneath is kept, and resume returns to it [S7.1]', () => {
    const driver = settle(driven({ attempt: [rateLimited(60_000), committed] }));
    const before = driver.state.phase;
    assert.equal(statusOf(driver.state), 'backing_off');
    driver.interrupt();
    assert.deepEqual([statusOf(driver.state), driver.state.phase], ['backing_off', before]);
    driver.resume();
    assert.deepEqual([statusOf(driver.state), driver.state.phase], ['backing_off', before]);
    assert.deepEqual(ending(driver.run()), DONE);
  });

  test('a second one, or a second resume, changes nothing [S7.1]', () => {
    const driver = settle(driven({ attempt: [rateLimited(60_000)] }));
    const plain = ({ state }: TaskDriver) => ({ ...state, seq: 0 });
    const once = plain(driver.interrupt());
    assert.deepEqual(plain(driver.interrupt()), once);
    const back = plain(driver.resume());
    assert.deepEqual(plain(driver.resume()), back);
  });

  test('lets no effect, retry or rollback begin, for as long as it lasts [S7.2]', () => {
    for (const [script, overrides] of [
      [{ attempt: [committed] }, {}],
      [{ attempt: [released, committed] }, {}],
      [{ attempt: [mismatch], rollback: [{ kind: 'rolledBack' as const }] }, {}],
    ] as [Script, PlanOverrides][]) {
      const driver = driven(script, overrides);
      for (let turn = 0; turn < 20; turn += 1) {
        settle(driver.interrupt());
        if (driver.state.phase.kind === 'ended') break;
        driver.moveTo(driver.now + 60_000);
        assert.equal(decide(driver.state, driver.now).do, 'wait');
        driver.resume().step();
      }
      assert.equal(driver.state.phase.kind, 'ended');
    }
  });

  test('lets the run deadline pass: the task ends with nothing applied [S7.2][S5.3]', () => {
    const driver = driven({ close: [CLOSED] }).interrupt();
    driver.run();
    assert.deepEqual([...ending(driver), driver.executions], ['failed', 'none', 'deadline_exceeded', 0]);
  });

  test('lets an approval expire [S7.2][S4.4]', () => {
    const driver = opened({}, { close: [CLOSED] }).interrupt();
    driver.run();
    assert.deepEqual(ending(driver), ['failed', 'none', 'approval_expired']);
  });

  test('lets a cancel end the task: nothing has to begin for that [S7.2][S7.4]', () => {
    const driver = driven({ close: [CLOSED] }).interrupt();
    driver.cancel();
    driver.run();
    assert.deepEqual(ending(driver), ['cancelled', 'none', 'cancelled']);
  });

  test('lets what is in doubt be found out: looking changes nothing [S7.2]', () => {
    const driver = driven({ attempt: [interrupted(notYet), committed] });
    assert.deepEqual(ending(driver.run()), DONE);
    assert.equal(driver.executions, 1);
  });

  test('lets a person resolve; a fresh execution after that waits for the resume [S7.2][S3.5]', () => {
    const driver = driven({ attempt: [attention, committed], resolve: [{ end: null }] }).run();
    driver.interrupt().resolve('not_applied');
    settle(driver);
    assert.equal(driver.executions, 1);
    driver.resume().run();
    assert.deepEqual([...ending(driver), driver.executions], [...DONE, 2]);
  });

  test('after the end changes nothing [S7.1]', () => {
    const driver = driven({ attempt: [committed] }).run();
    driver.interrupt();
    assert.deepEqual([...ending(driver), driver.state.interrupted], [...DONE, false]);
  });
});

describe('what came back, and what is true now', () => {
  test('a decision, still running and ours: appended, and acted on [S7.3]', () => {
    const driver = opened({}, { attempt: [committed] });
    assert.equal(driver.decide().code, 'approved');
    assert.equal(typesOf(driver).at(-1), 'approval_decided');
    assert.deepEqual(ending(driver.run()), DONE);
  });

  test('a decision, interrupted: recorded, starts nothing until the resume [S7.3][S7.2]', () => {
    const driver = opened({}, { attempt: [committed] }).interrupt();
    assert.equal(driver.decide().code, 'approved');
    settle(driver);
    assert.deepEqual([driver.executions, statusOf(driver.state)], [0, 'running']);
    driver.resume().run();
    assert.deepEqual([...ending(driver), driver.executions], [...DONE, 1]);
  });

  test('a decision, stale: starts nothing, and is answered with what is the case [S7.3][S4.3]', () => {
    const driver = opened({}, { close: [CLOSED] }).interrupt();
    driver.decide({ kind: 'reject' });
    driver.run();
    assert.equal(driver.decide({ by: BOB }).code, 'already_decided');
    assert.deepEqual([...ending(driver), driver.executions], ['failed', 'none', 'approval_rejected', 0]);
  });

  test('approval needed, interrupted: the pause is recorded under the overlay [S7.3]', () => {
    const driver = started().interrupt().runTo('awaiting_approval');
    assert.deepEqual([statusOf(driver.state), driver.state.interrupted], ['awaiting_approval', true]);
    assert.equal(decide(driver.state, driver.now + HOUR_MS - 1).do, 'wait');
  });

  test('allowed, interrupted: the effect is not started [S7.3]', () => {
    const driver = settle(driven({ attempt: [committed] }).interrupt());
    assert.deepEqual(typesOf(driver), ['task_started', 'interrupted']);
    assert.deepEqual([...ending(driver.resume().run()), driver.executions], [...DONE, 1]);
  });

  test('effect done, interrupted: its outcome is recorded, once, and the overlay kept [S7.3]', () => {
    const driver = driven({ attempt: [interrupted(committed)] }, { onCancel: 'rollback' });
    driver.run();
    assert.deepEqual([...ending(driver), driver.state.interrupted], [...DONE, true]);
    assert.equal(typesOf(driver).filter((type) => type === 'attempt_finished').length, 1);
  });

  test('retryable error, interrupted: attempt and schedule are recorded, the next attempt waits [S7.3]', () => {
    const driver = settle(driven({ attempt: [interrupted(released), committed] }));
    assert.equal(typesOf(driver).at(-1), 'backoff_scheduled');
    assert.deepEqual([driver.state.attempts[0]?.outcome, driver.state.retriesSpent], ['released', 1]);
    assert(driver.state.nextEligibleAt !== null);
    driver.moveTo(driver.now + 600_000);
    assert.equal(decide(driver.state, driver.now).do, 'wait');
    driver.resume().run();
    assert.deepEqual([...ending(driver), driver.executions], [...DONE, 2]);
  });

  test('unknown, interrupted: it is not sent again, only looked after [S7.3][S5.1]', () => {
    const driver = settle(driven({ attempt: [interrupted(unknown), committed] }));
    driver.moveTo(driver.now + 600_000);
    assert.equal(decide(driver.state, driver.now).do, 'wait');
    assert.equal(driver.executions, 1);
  });

  test('anything, stale fence: changes no result [S7.3][S2.7]', () => {
    const stale = { kind: 'fenceStale', rowAttempt: 3, superseded: true } as const;
    const driver = driven({ attempt: [interrupted(stale)] }).run();
    assert.deepEqual(ending(driver), ['failed', 'none', 'superseded']);
    const before = driver.state;
    driver.append({
      type: 'attempt_finished',
      data: { attempt: 1, outcome: { kind: 'committed', result: RESULT, replayed: false } },
    });
    assert.deepEqual({ ...driver.state, seq: 0 }, { ...before, seq: 0 });
  });
});
