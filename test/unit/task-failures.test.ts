/** S5: what each kind of failure leads to, and what of it can be seen while it lasts. */
import { strict as assert } from 'node:assert';
import { describe, test } from 'vitest';
import { backoffDelayMs, decide } from '../../src/task/decide.ts';
import type { OperationOutcome } from '../../src/task/outcome.ts';
import { statusOf } from '../../src/task/view.ts';
import { attention, committed, doubt, notSent, rateLimited, released, unknown } from '../support/outcomes.ts';
import { planOf } from '../support/plans.ts';
import { TaskDriver, scripted } from '../support/task-driver.ts';
import type { Script } from '../support/task-driver.ts';

const CLOSED = { kind: 'closed' as const };

function driven(
  script: Script,
  overrides: Parameters<typeof planOf>[0] = {},
  random?: () => number,
): TaskDriver {
  return new TaskDriver(planOf(overrides), scripted(script), random);
}

/** Steps until the task is told to wait by the clock. */
function untilWait(driver: TaskDriver): { until: number } {
  for (let count = 0; count < 50; count += 1) {
    const verdict = decide(driver.state, driver.now);
    if (verdict.do === 'wait' && verdict.until !== null) return { until: verdict.until };
    driver.step();
  }
  throw new Error('it never waits');
}

describe('not sent, or declared not applied', () => {
  test('is retried until it succeeds, one business retry each [S5]', () => {
    const driver = driven({ attempt: [released, released, committed] }).run();
    assert.deepEqual([driver.outcome.status, driver.outcome.effect], ['completed', 'applied']);
    assert.deepEqual([driver.state.retriesSpent, driver.executions], [2, 3]);
  });

  test('is retried as often as the contract allows, then ends with nothing applied [S5]', () => {
    const attempt = [released, released, released, released];
    const driver = driven({ attempt, close: [CLOSED] }, { retry: { maximumRetries: 3 } }).run();
    assert.equal(driver.executions, 4);
    assert.deepEqual(driver.state.end, {
      status: 'failed',
      effect: 'none',
      cause: 'retries_exhausted',
      error: {
        code: 'retries_exhausted',
        message: 'Every retry failed; nothing was applied. The last: The connection was refused.',
      },
      cancelRequested: false,
    });
  });

  test('its end names why the last execution failed, not what finding out said after it [S5]', () => {
    const attempt = [unknown, unknown, released];
    const driver = driven({ attempt, close: [CLOSED] }, { retry: { maximumRetries: 1 } }).run();
    assert.match(driver.state.end?.error?.message ?? '', /The last: The reply was lost\.$/);
  });

  test('is retried without a key too: nothing was sent [S1.7][S5]', () => {
    const driver = driven({ attempt: [released, committed] }, { keyed: false, autoRetry: false }).run();
    assert.equal(driver.outcome.status, 'completed');
  });

  test('waits a random time below a doubling bound [S5]', () => {
    const bounds = [1_000, 2_000, 4_000, 5_000, 5_000];
    const script = { attempt: Array<OperationOutcome>(5).fill(released) };
    const driver = driven(script, {
      retry: { maximumRetries: 5, initialIntervalMs: 1_000, maximumIntervalMs: 5_000 },
    });
    for (const capMs of bounds) {
      const begun = driver.verdicts.length;
      untilWait(driver);
      const backoff = driver.verdicts.slice(begun).find((verdict) => verdict.do === 'backoff');
      assert.deepEqual(backoff?.do === 'backoff' && [backoff.floorMs, backoff.capMs], [0, capMs]);
      driver.step();
    }
    assert.deepEqual(
      [0, 0.25, 0.999].map((random) => backoffDelayMs({ floorMs: 0, capMs: 1_000 }, random)),
      [0, 250, 999],
    );
  });
});

describe('an unknown outcome', () => {
  test('is asked about again with the same operation and a higher attempt, and counts as a retry [S5]', () => {
    const driver = driven({ attempt: [unknown, committed] }).run();
    assert.deepEqual(
      [driver.outcome.status, driver.state.attempt, driver.state.retriesSpent],
      ['completed', 2, 1],
    );
  });

  test('that another server’s task reports at its end spends a retry each time [S5.2]', () => {
    const remote = { server: 'depot', tool: 'archive', taskId: 'r', pollIntervalMs: 1_000, ttlMs: null };
    const handedOver = { kind: 'remote', remote } as const;
    const refused = { ...released, ofExecution: true } as OperationOutcome;
    const script: Script = { attempt: [handedOver, refused, handedOver, refused], close: [CLOSED] };
    const driver = driven(script, { retry: { maximumRetries: 1 } });
    for (const spent of [0, 1]) {
      const { attempt, retriesSpent } = driver.runTo('remote').state;
      assert.equal(retriesSpent, spent);
      const report = { kind: 'ended', how: 'completed' } as const;
      driver.append({ type: 'remote_told', data: { attempt, report } });
    }
    driver.run();
    assert.deepEqual(purposes(driver), ['execute', 'settle', 'execute', 'settle']);
    assert.deepEqual([driver.outcome.cause, driver.outcome.effect], ['retries_exhausted', 'none']);
  });

  test('whose retries are spent is settled before the task ends [S5.3]', () => {
    const script: Script = { attempt: [unknown, unknown, released], close: [CLOSED] };
    const driver = driven(script, { retry: { maximumRetries: 1 } }).run();
    assert.deepEqual(purposes(driver), ['execute', 'execute', 'settle']);
    assert.deepEqual([driver.outcome.cause, driver.outcome.effect], ['retries_exhausted', 'none']);
  });

  test('that settles as applied completes the task although its retries were spent [S5.3]', () => {
    const driver = driven({ attempt: [unknown, unknown, committed] }, { retry: { maximumRetries: 1 } }).run();
    assert.deepEqual([driver.outcome.status, driver.outcome.effect], ['completed', 'applied']);
  });

  test('that nobody can look up waits for a person and begins nothing more [S5][S3.5]', () => {
    const driver = driven({ attempt: [attention] }, { effect: 'unsafe' }).run();
    assert.equal(driver.outcome.status, 'needs_attention');
    assert.equal(driver.outcome.effect, null);
    assert.deepEqual(decide(driver.state, driver.now + 1e9), { do: 'wait', until: null, person: true });
  });

  test('that stays unknown is settled at ever longer intervals, and at last with one final look [S5.3]', () => {
    const attempt = [unknown, unknown, unknown, unknown, attention];
    const driver = driven(
      { attempt },
      { retry: { maximumRetries: 2, initialIntervalMs: 1_000 } },
      () => 0.999,
    );
    driver.step();
    driver.cancel();
    driver.run();
    const attempts = driver.verdicts.filter((verdict) => verdict.do === 'attempt');
    assert.deepEqual(
      attempts.map(({ purpose, verifyFinal }) => [purpose, verifyFinal]),
      [
        ['execute', false],
        ['settle', false],
        ['settle', false],
        ['settle', true],
        ['settle', true],
      ],
    );
    assert.deepEqual(backoffs(driver), [1_000, 2_000, 4_000]);
    assert.equal(driver.outcome.status, 'needs_attention');
    assert.equal(driver.state.retriesSpent, 0);
  });
});

describe('rate limited or unavailable, said by the target before applying', () => {
  test('is retried exactly when the provider said [S5]', () => {
    const driver = driven({ attempt: [rateLimited(7_500), committed] }, {}, () => 0.01);
    const { until } = untilWait(driver);
    assert.equal(until, driver.now + 7_500);
    driver.run();
    assert.equal(driver.outcome.status, 'completed');
  });

  test('backs off with full jitter where the provider said nothing [S5]', () => {
    const driver = driven({ attempt: [rateLimited(), committed] }, {}, () => 0.5);
    assert.equal(untilWait(driver).until, driver.now + 500);
  });

  test.each([-1, null, 1e300, 0.5])('is not led astray by a Retry-After of %s [S5]', (value) => {
    const driver = driven({ attempt: [rateLimited(value as number), committed] });
    const { until } = untilWait(driver);
    assert(Number.isSafeInteger(until) && until <= driver.state.startedAt + driver.plan.deadlines.runMs);
  });

  test('spends the same budget as other retries [S5]', () => {
    const driver = driven(
      { attempt: [rateLimited(1), rateLimited(1)], close: [CLOSED] },
      { retry: { maximumRetries: 1 } },
    ).run();
    assert.equal(driver.outcome.cause, 'retries_exhausted');
  });
});

describe('what is never retried', () => {
  test.each([
    [
      'a permanent domain error',
      { kind: 'failed', failure: { kind: 'permanent', code: 'card_declined', message: 'Declined.' } },
      'permanent_failure',
      'card_declined',
    ],
    [
      'a false precondition',
      { kind: 'refused', reason: 'Out of stock.' },
      'precondition_failed',
      'precondition_failed',
    ],
    [
      'a key used with other arguments',
      { kind: 'conflict', paths: ['/amount'] },
      'idempotency_conflict',
      'idempotency_conflict',
    ],
    [
      'an operation that another run took over',
      { kind: 'fenceStale', rowAttempt: 1, superseded: true },
      'superseded',
      'superseded',
    ],
  ] as [string, OperationOutcome, string, string][])(
    '%s ends the task with nothing applied [S5][S2.1][S2.2]',
    (_name, outcome, cause, code) => {
      const driver = driven({ attempt: [outcome] }).run();
      const { status, effect, error } = driver.outcome;
      assert.deepEqual([status, effect, driver.outcome.cause, error?.code], ['failed', 'none', cause, code]);
      assert.equal(driver.executions, 1);
    },
  );

  test('a conflict names the paths that differ, in words and in details [S2.1]', () => {
    const driver = driven({ attempt: [{ kind: 'conflict', paths: ['/amount', '/to'] }] }).run();
    assert.deepEqual(driver.outcome.error, {
      code: 'idempotency_conflict',
      message: 'The key was used with other arguments; they differ at /amount, /to.',
      details: { paths: ['/amount', '/to'] },
    });
  });

  test('a call that needs approval is closed, not failed over and over [S5]', () => {
    const driver = driven({
      attempt: [{ kind: 'needsApproval', reason: 'More than 100.' }],
      close: [CLOSED],
    }).run();
    assert.deepEqual(
      [driver.outcome.status, driver.outcome.effect, driver.outcome.cause],
      ['failed', 'none', 'approval_required'],
    );
  });

  test('a spent key is answered with the end of the task that spent it [S2.1]', () => {
    const end = {
      status: 'cancelled',
      effect: 'rolled_back',
      cause: 'cancelled_after_commit',
      error: null,
      cancelRequested: true,
    } as const;
    const driver = driven({ attempt: [{ kind: 'spent', end }] }).run();
    const { status, effect, cause, replayed } = driver.outcome;
    assert.deepEqual(
      [status, effect, cause, replayed],
      ['failed', 'rolled_back', 'operation_rolled_back', true],
    );
  });

  test('a committed operation of an earlier task is answered as replayed [S2.1]', () => {
    const driver = driven({ attempt: [{ ...committed, replayed: true } as OperationOutcome] }).run();
    assert.deepEqual([driver.outcome.status, driver.outcome.replayed], ['completed', true]);
  });
});

describe('an attempt lost by the infrastructure', () => {
  test('spends no business retry, however often, and is paced up to 30 s [S5.2]', () => {
    const attempt = [...Array<null>(10).fill(null), committed];
    const driver = driven({ attempt }, { retry: { maximumRetries: 0 } }, () => 0.999).run();
    assert.deepEqual(
      [driver.outcome.status, driver.state.retriesSpent, driver.executions],
      ['completed', 0, 11],
    );
    assert.deepEqual(
      backoffs(driver),
      [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000, 30_000],
    );
  });

  test('is bounded by the run deadline, and what it may have done is settled first [S5.2][S5.3]', () => {
    const script: Script = { attempt: [null, null, null, released], close: [CLOSED] };
    const driver = driven(script, { deadlines: { runMs: 1_400 } }, () => 0.999).run();
    assert.deepEqual(purposes(driver), ['execute', 'execute', 'settle', 'settle']);
    assert.deepEqual([driver.outcome.cause, driver.outcome.effect], ['deadline_exceeded', 'none']);
  });

  test('that had been applied is found by the next one [S2.11]', () => {
    const driver = driven({ attempt: [null, committed] }).run();
    assert.deepEqual([driver.outcome.status, driver.outcome.replayed], ['completed', false]);
  });

  test('is no failed task: it shows as reconciling [S5.3]', () => {
    const driver = driven({ attempt: [null, committed] });
    untilWait(driver);
    assert.equal(statusOf(driver.state), 'reconciling');
    assert.equal(driver.outcome.effect, null);
  });

  test('before its end is recorded is closed again, not ended [S3.5]', () => {
    const driver = driven(
      { attempt: [released], close: [null, CLOSED] },
      { retry: { maximumRetries: 0 } },
    ).run();
    assert.equal(driver.outcome.cause, 'retries_exhausted');
  });
});

describe('a fence that was raised by someone else', () => {
  const stale = (rowAttempt: number): OperationOutcome => ({
    kind: 'fenceStale',
    rowAttempt,
    superseded: false,
  });

  test('makes the task go on above the row’s attempt [S2.3]', () => {
    const driver = driven({ attempt: [stale(7), committed] }).run();
    const attempts = driver.verdicts
      .filter((verdict) => verdict.do === 'attempt')
      .map(({ attempt }) => attempt);
    assert.deepEqual(attempts, [1, 8]);
    assert.equal(driver.state.retriesSpent, 0);
  });

  test('again and again is paced ever more, so that two who raise each other’s fence don’t spin [S2.3]', () => {
    const attempt = [stale(7), stale(20), stale(40), committed];
    const driver = driven({ attempt }, {}, () => 0.999).run();
    assert.deepEqual(backoffs(driver), [500, 1_000, 2_000]);
  });

  test('by another run, while an attempt of ours is in doubt, is a person’s to judge [S3.5]', () => {
    const superseded: OperationOutcome = { kind: 'fenceStale', rowAttempt: 1, superseded: true };
    const driver = driven({ attempt: [null, superseded] }).run();
    assert.deepEqual([driver.outcome.status, driver.outcome.effect], ['needs_attention', null]);
  });
});

describe('while a task waits', () => {
  test('attempt, next eligible time, last failure and deadline can be seen [S5.2]', () => {
    const driver = driven({ attempt: [released, committed] }, {}, () => 0.5);
    const { until } = untilWait(driver);
    const { attempt, nextEligibleAt, lastFailure, startedAt, plan, attempts } = driver.state;
    assert.deepEqual([attempt, nextEligibleAt, lastFailure], [1, until, notSent]);
    assert.equal(startedAt + (plan?.deadlines.runMs ?? 0), 1_000_000 + 3_600_000);
    assert.deepEqual(attempts, [
      {
        attempt: 1,
        purpose: 'execute',
        inline: false,
        startedAt: 1_000_000,
        finishedAt: 1_000_000,
        outcome: 'released',
        failure: notSent,
      },
    ]);
    assert.equal(statusOf(driver.state), 'backing_off');
    driver.run();
    assert.equal(driver.state.nextEligibleAt, null);
  });

  test('the newest 100 attempts can be seen [S5.2]', () => {
    const driver = driven(
      { attempt: [...Array<null>(120).fill(null), committed] },
      { deadlines: { runMs: 1e10 } },
    ).run(2_000);
    assert.deepEqual([driver.state.attempts.length, driver.state.attempts.at(-1)?.attempt], [100, 121]);
  });

  test('for a busy row it asks again when told, but never at once [S2.3]', () => {
    const busy = (retryAfterMs: number): OperationOutcome => ({
      kind: 'busy',
      retryAfterMs,
      reason: 'claimed',
    });
    const driver = driven({ attempt: [busy(4_000), busy(0), committed] });
    assert.equal(untilWait(driver).until, driver.now + 4_000);
    driver.step();
    assert.equal(untilWait(driver).until, driver.now + 100);
    driver.run();
    assert.deepEqual([driver.outcome.status, driver.state.retriesSpent], ['completed', 0]);
  });
});

describe('the run deadline', () => {
  test('ends a task that waits for its next try, at the deadline and not later [S5.3]', () => {
    const driver = driven(
      { attempt: [rateLimited(60_000)], close: [CLOSED] },
      { deadlines: { runMs: 5_000 } },
    ).run();
    assert.equal(driver.now, 1_005_000);
    assert.deepEqual([driver.outcome.cause, driver.outcome.effect], ['deadline_exceeded', 'none']);
  });

  test('stops new executions only: an attempt under way finishes and counts [S5.3]', () => {
    const driver = driven(
      { attempt: [(_, running) => (running.moveTo(2_000_000), committed)] },
      { deadlines: { runMs: 5_000 } },
    ).run();
    assert.equal(driver.outcome.status, 'completed');
  });

  test('with a claimed operation reconciles first, and an unknown effect goes to a person [S5.3]', () => {
    const driver = driven(
      { attempt: [(_, running) => (running.moveTo(2_000_000), unknown), attention] },
      { deadlines: { runMs: 5_000 } },
    ).run();
    assert.deepEqual(purposes(driver), ['execute', 'settle']);
    assert.equal(driver.outcome.status, 'needs_attention');
  });

  test('that passed before any worker came begins nothing [S5.3]', () => {
    const driver = driven({ close: [CLOSED] });
    driver.moveTo(1_000_000 + 3_600_000);
    driver.run();
    assert.deepEqual([driver.executions, driver.outcome.cause], [0, 'deadline_exceeded']);
  });
});

function purposes(driver: TaskDriver): string[] {
  return driver.verdicts.flatMap((verdict) => (verdict.do === 'attempt' ? [verdict.purpose] : []));
}

function backoffs(driver: TaskDriver): number[] {
  return driver.verdicts.flatMap((verdict) => (verdict.do === 'backoff' ? [verdict.capMs] : []));
}

test('the failure of the last attempt is what is shown [S5.2]', () => {
  const driver = driven({ attempt: [released, unknown, committed] });
  driver.run();
  assert.deepEqual(driver.state.lastFailure, doubt);
});
