/** S2.6 and S6: effects that can't be seen yet, that are not as promised, that are undone, and that a person must judge. */
import { strict as assert } from 'node:assert';
import { describe, test } from 'vitest';
import { decide } from '../../src/task/decide.ts';
import type { OperationOutcome, RollbackOutcome } from '../../src/task/outcome.ts';
import { statusOf } from '../../src/task/view.ts';
import {
  RESULT,
  attention,
  committed,
  doubt,
  mismatch,
  notSent,
  notYet,
  released,
  unknown,
} from '../support/outcomes.ts';
import { planOf } from '../support/plans.ts';
import type { PlanOverrides } from '../support/plans.ts';
import { TaskDriver, scripted } from '../support/task-driver.ts';
import type { Script } from '../support/task-driver.ts';

const CLOSED = { kind: 'closed' as const };
const asked: NonNullable<Script['resolve']> = [(verdict) => ({ end: verdict.end })];
const driven = (script: Script, overrides: PlanOverrides = {}) =>
  new TaskDriver(planOf(overrides), scripted(script), () => 0.999);
const ending = ({ outcome }: TaskDriver) => [outcome.status, outcome.effect, outcome.cause];
const attemptsOf = (driver: TaskDriver) => driver.verdicts.filter((verdict) => verdict.do === 'attempt');

describe('an effect that is not visible yet', () => {
  test('is looked at again, ever more rarely, without executing again [S2.6]', () => {
    const attempt: OperationOutcome[] = [...Array<OperationOutcome>(13).fill(notYet), committed];
    const driver = driven({ attempt }, { deadlines: { verifyMs: 10_000_000, runMs: 1e9 } }).run();
    const begun = driver.state.attempts.map(({ startedAt }) => startedAt);
    const pauses = begun.slice(1).map((at, index) => at - (begun[index] ?? 0));
    assert.deepEqual(pauses.slice(0, 5), [500, 1_000, 2_000, 4_000, 8_000]);
    assert.equal(Math.max(...pauses), 300_000);
    assert.deepEqual([driver.executions, driver.outcome.status], [1, 'completed']);
  });

  test('gets its last look when the verify deadline passes, and then a person [S2.6]', () => {
    const driver = driven(
      { attempt: [notYet, notYet, notYet, attention] },
      { deadlines: { verifyMs: 2_000 } },
    ).run();
    assert.deepEqual(
      attemptsOf(driver).map(({ verifyFinal }) => verifyFinal),
      [false, false, false, true],
    );
    assert.equal(driver.now, driver.state.startedAt + 2_000);
    assert.deepEqual(ending(driver), ['needs_attention', null, null]);
  });

  test('keeps its deadline also while looking itself fails [S2.6]', () => {
    const attempt = [
      notYet,
      unknown,
      unknown,
      null,
      { kind: 'busy', retryAfterMs: 60_000, reason: 'claimed' } as const,
      attention,
    ];
    const driver = driven(
      { attempt },
      { deadlines: { verifyMs: 30_000 }, retry: { maximumRetries: 0 } },
    ).run();
    assert.deepEqual(
      attemptsOf(driver).map(({ verifyFinal }) => verifyFinal),
      [false, false, false, false, false, true],
    );
  });

  test('with a verify deadline of 0 gets one more look, after a moment [S2.6]', () => {
    const driver = driven({ attempt: [notYet, attention] }, { deadlines: { verifyMs: 0 } }).run();
    assert.deepEqual(
      attemptsOf(driver).map(({ verifyFinal }) => verifyFinal),
      [false, true],
    );
    assert.equal(driver.now, driver.state.startedAt + 500);
  });

  test('does not make the task spin, even if the last look was not the last [S2.6]', () => {
    const attempt = [...Array<OperationOutcome>(20).fill(notYet), committed];
    assert.equal(
      driven({ attempt }, { deadlines: { verifyMs: 0, runMs: 1e9 } }).run().outcome.status,
      'completed',
    );
  });

  test('outlives the run deadline: no new execution is in question [S5.3]', () => {
    const driver = driven(
      { attempt: [notYet, notYet, notYet, committed] },
      { deadlines: { runMs: 600, verifyMs: 60_000 } },
    ).run();
    assert.deepEqual(ending(driver), ['completed', 'applied', 'committed']);
  });

  test('that turns out never to have been applied is executed anew within the budget [S2.4]', () => {
    const driver = driven({ attempt: [notYet, released, committed] }).run();
    assert.deepEqual(
      attemptsOf(driver).map(({ purpose }) => purpose),
      ['execute', 'settle', 'execute'],
    );
    assert.equal(driver.state.verifyUntil, null);
  });
});

describe('an effect that is not as promised', () => {
  test('is undone, and the task fails saying so [S6.2][S6.5]', () => {
    const driver = driven({
      attempt: [mismatch],
      rollback: [{ kind: 'rolledBack', remains: 'a fee of 1' }],
    }).run();
    assert.deepEqual(ending(driver), ['failed', 'rolled_back', 'verify_failed']);
    assert.deepEqual(driver.outcome.error?.details, { remains: 'a fee of 1' });
  });

  test('but provably absent fails with nothing applied [S2.6]', () => {
    const failure = { kind: 'permanent' as const, code: 'verify_failed', message: 'It is not there.' };
    assert.deepEqual(ending(driven({ attempt: [{ kind: 'failed', failure }] }).run()), [
      'failed',
      'none',
      'verify_failed',
    ]);
  });
});

describe('a rollback', () => {
  const retry: RollbackOutcome = { kind: 'retry', failure: notSent };

  test('is retried with its own budget, the last try known as such [S6.2]', () => {
    const rollback: RollbackOutcome[] = [retry, retry, { kind: 'attention', failure: doubt }];
    const driver = driven(
      { attempt: [released, mismatch], rollback },
      { retry: { maximumRetries: 2 } },
    ).run();
    const finals = driver.verdicts.flatMap((verdict) => (verdict.do === 'rollback' ? [verdict.final] : []));
    assert.deepEqual(finals, [false, false, true]);
    assert.deepEqual([driver.state.retriesSpent, driver.state.rollbackRetriesSpent], [1, 2]);
    assert.deepEqual(ending(driver), ['needs_attention', null, null]);
  });

  test('lost by the infrastructure spends nothing and is repeated until it answers [S6.2][S5.2]', () => {
    const driver = driven({ attempt: [mismatch], rollback: [null, null, { kind: 'rolledBack' }] }).run();
    assert.equal(driver.state.rollbackRetriesSpent, 0);
    assert.equal(driver.outcome.effect, 'rolled_back');
  });

  test('fenced off goes on above the row, with pauses [S6.2][S2.3]', () => {
    const rollback: RollbackOutcome[] = [{ kind: 'fenceStale', rowAttempt: 9 }, { kind: 'rolledBack' }];
    const driver = driven({ attempt: [mismatch], rollback }).run();
    assert.deepEqual([driver.state.attempt, driver.outcome.effect], [10, 'rolled_back']);
    assert(driver.now > driver.state.startedAt);
  });

  test('takes longer than the run deadline if it must [S6.2]', () => {
    const driver = driven(
      { attempt: [mismatch], rollback: [retry, { kind: 'rolledBack' }] },
      { deadlines: { runMs: 1 } },
    ).run();
    assert.equal(driver.outcome.effect, 'rolled_back');
  });

  test.each([
    ['not_applied', [], ['failed', 'rolled_back', 'verify_failed']],
    ['abandoned', [], ['failed', 'unknown', 'abandoned']],
    ['applied', [committed], ['completed', 'applied', 'committed']],
  ] as ['not_applied' | 'abandoned' | 'applied', OperationOutcome[], unknown[]][])(
    'that could not finish is resolved by a person as %s [S3.5][S6.2]',
    (as, attempts, expected) => {
      const script: Script = {
        attempt: [mismatch, ...attempts],
        rollback: [{ kind: 'attention', failure: doubt }],
        resolve: [...asked],
      };
      assert.deepEqual(ending(driven(script).run().resolve(as).run()), expected);
    },
  );

  test('after a cancel that a person undid by hand ends cancelled [S3.5][S7.4]', () => {
    const script: Script = {
      attempt: [(_, driver) => (driver.cancel(), committed)],
      rollback: [{ kind: 'attention', failure: doubt }],
      resolve: [...asked],
    };
    const driver = driven(script, { onCancel: 'rollback' }).run().resolve('not_applied').run();
    assert.deepEqual(ending(driver), ['cancelled', 'rolled_back', 'cancelled_after_commit']);
  });

  test('that a person declined is not begun again by the same cancel [S3.5][S7.4]', () => {
    const script: Script = {
      attempt: [(_, driver) => (driver.cancel(), committed), committed],
      rollback: [{ kind: 'attention', failure: doubt }],
      resolve: [...asked],
    };
    const driver = driven(script, { onCancel: 'rollback' }).run().resolve('applied').run();
    assert.deepEqual(ending(driver), ['completed', 'applied', 'committed']);
    assert.equal(driver.outcome.cancelRequested, true);
  });
});

describe('a person who resolves', () => {
  test('as applied has the result verified before the task completes [S3.5]', () => {
    const driver = driven({ attempt: [attention, committed], resolve: [...asked] })
      .run()
      .resolve('applied')
      .run();
    assert.deepEqual(
      attemptsOf(driver).map(({ purpose }) => purpose),
      ['execute', 'settle'],
    );
    assert.deepEqual(
      [...ending(driver), driver.outcome.result],
      ['completed', 'applied', 'committed', RESULT],
    );
  });

  test('as applied, while it can’t be seen yet, waits under a new verify deadline [S3.5][S2.6]', () => {
    const attempt = [notYet, notYet, attention, notYet, committed];
    const driver = driven({ attempt, resolve: [...asked] }, { deadlines: { verifyMs: 500 } })
      .run()
      .resolve('applied')
      .run();
    assert.equal(driver.outcome.status, 'completed');
    assert.equal(attemptsOf(driver)[3]?.verifyFinal, false);
  });

  test('as not applied has it executed again, above the raised fence, whatever budget was spent [S3.5]', () => {
    const script: Script = { attempt: [unknown, attention, committed], resolve: [...asked] };
    const driver = driven(script, { retry: { maximumRetries: 1 } })
      .run()
      .resolve('not_applied')
      .run();
    assert.deepEqual(
      attemptsOf(driver).map(({ purpose, attempt }) => [purpose, attempt]),
      [
        ['execute', 1],
        ['execute', 2],
        ['execute', 4],
      ],
    );
    assert.equal(driver.outcome.status, 'completed');
  });

  test('as not applied past the run deadline ends the task with nothing applied [S3.5][S5.3]', () => {
    const late: Script['attempt'] = [(_, running) => (running.moveTo(1e9), attention)];
    const driver = driven({ attempt: late, resolve: [...asked], close: [CLOSED] }).run();
    assert.deepEqual(ending(driver.resolve('not_applied').run()), ['failed', 'none', 'deadline_exceeded']);
  });

  test('as abandoned ends the one kind of task whose effect stays unknown [S3.4][S3.5]', () => {
    const driver = driven({ attempt: [attention], resolve: [...asked] })
      .run()
      .resolve('abandoned')
      .run();
    assert.deepEqual(
      [...ending(driver), driver.outcome.error?.code],
      ['failed', 'unknown', 'abandoned', 'operation_abandoned'],
    );
  });

  test('is not asked again when the ledger was away: the resolution is carried through [S3.5]', () => {
    const script: Script = { attempt: [attention], resolve: [null, null, ...asked] };
    const driver = driven(script).run().resolve('abandoned').run();
    assert.equal(driver.outcome.cause, 'abandoned');
    assert.equal(driver.state.attempt, 4);
  });

  test('whose resolution the row took over before is told the row’s end [S3.5]', () => {
    const end = {
      status: 'failed',
      effect: 'unknown',
      cause: 'abandoned',
      error: null,
      cancelRequested: false,
    } as const;
    const driver = driven({ attempt: [attention], resolve: [null, { end }] })
      .run()
      .resolve('abandoned')
      .run();
    assert.deepEqual(driver.state.end, end);
  });

  test('changes nothing while nobody asked [S3.5]', () => {
    const driver = driven({ attempt: [released, committed] });
    driver.step();
    const before = driver.state;
    driver.resolve('abandoned');
    assert.deepEqual({ ...driver.state, seq: 0, updatedAt: 0 }, { ...before, seq: 0, updatedAt: 0 });
  });

  test('is waited for without any timer, through every deadline [S5.3][S3.5]', () => {
    const driver = driven({ attempt: [attention] }).run();
    assert.deepEqual(decide(driver.state, driver.now + 1e12), { do: 'wait', until: null, person: true });
  });
});

test('a task that needs attention says since when [S3.5]', () => {
  const driver = driven({ attempt: [released, attention] }).run();
  const { phase } = driver.state;
  assert(phase.kind === 'needs_attention');
  assert.equal(phase.since, driver.now);
  assert.equal(statusOf(driver.state), 'needs_attention');
});
