/** S7.4: what a cancel leads to before, during and after the effect, and what it can no longer change. */
import { strict as assert } from 'node:assert';
import { describe, test } from 'vitest';
import { decide } from '../../src/task/decide.ts';
import type { OperationOutcome } from '../../src/task/outcome.ts';
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
const ROLLS_BACK: PlanOverrides = { onCancel: 'rollback' };
/** The answer, with a cancel arriving while its attempt is under way. */
const cancelled =
  <T>(answer: T) =>
  (_verdict: unknown, driver: TaskDriver): T => (driver.cancel(), answer);

const driven = (script: Script, overrides: PlanOverrides = {}) =>
  new TaskDriver(planOf(overrides), scripted(script));
const ending = ({ outcome }: TaskDriver) => [
  outcome.status,
  outcome.effect,
  outcome.cause,
  outcome.cancelRequested,
];
const CANCELLED = ['cancelled', 'none', 'cancelled', true];
const KEPT = ['completed', 'applied', 'committed', true];
const UNDONE = ['cancelled', 'rolled_back', 'cancelled_after_commit', true];

describe('a cancel before the effect', () => {
  test('that comes with the start begins nothing [S7.4]', () => {
    const driver = driven({ close: [CLOSED] });
    driver.cancel();
    driver.run();
    assert.deepEqual([...ending(driver), driver.executions], [...CANCELLED, 0]);
  });

  test('ends the wait for the next try at once [S7.4]', () => {
    const driver = driven({ attempt: [released], close: [CLOSED] });
    while (driver.state.phase.kind !== 'ready' || driver.state.attempt === 0) driver.step();
    const { now } = driver;
    driver.cancel();
    driver.run();
    assert.deepEqual([...ending(driver), driver.now], [...CANCELLED, now]);
  });

  test('that comes between a failure and its retry begins no retry [S7.4]', () => {
    const driver = driven({ attempt: [cancelled(released)], close: [CLOSED] }).run();
    assert.deepEqual([...ending(driver), driver.executions], [...CANCELLED, 1]);
  });

  test('closes the operation in the ledger before it is said [S2.7][S7.4]', () => {
    const driver = driven({ close: [CLOSED] });
    driver.cancel();
    driver.run();
    const types = driver.events.map((event) => event.type);
    assert.deepEqual(types, [
      'task_started',
      'cancel_requested',
      'close_scheduled',
      'close_finished',
      'task_ended',
    ]);
  });

  test('overrules a need for approval [S7.4]', () => {
    const answer: OperationOutcome = { kind: 'needsApproval', reason: 'More than 100.' };
    assert.deepEqual(ending(driven({ attempt: [cancelled(answer)], close: [CLOSED] }).run()), CANCELLED);
  });
});

describe('a cancel while an attempt runs', () => {
  test('leaves it to finish: committed under keep completes, and says that a cancel was asked for [S7.4]', () => {
    const driver = driven({ attempt: [cancelled(committed)] }).run();
    assert.deepEqual(ending(driver), KEPT);
    assert.deepEqual(driver.outcome.result, RESULT);
  });

  test('leaves it to finish: committed under rollback is undone [S7.4]', () => {
    const driver = driven(
      { attempt: [cancelled(committed)], rollback: [{ kind: 'rolledBack' }] },
      ROLLS_BACK,
    ).run();
    assert.deepEqual(ending(driver), UNDONE);
    assert.equal(driver.outcome.result, null);
  });

  test('is acknowledged while the task stays at work [S7.4]', () => {
    let seen: string | null = null;
    driven({ attempt: [(_, driver) => (driver.cancel(), (seen = statusOf(driver.state)), committed)] }).run();
    assert.equal(seen, 'running');
  });

  test('aborts it only where the contract allows, and only an execution [S7.4]', () => {
    const aborts = (overrides: PlanOverrides) => {
      let verdict;
      driven(
        {
          attempt: [
            (_, driver) => (driver.cancel(), (verdict = decide(driver.state, driver.now)), committed),
          ],
        },
        overrides,
      ).run();
      return verdict;
    };
    assert.deepEqual(aborts({ cancelAttempt: 'abort' }), { do: 'await', abort: true });
    assert.deepEqual(aborts({ cancelAttempt: 'finish' }), { do: 'await', abort: false });
    let settling;
    const script: Script = {
      attempt: [cancelled(unknown), (_, driver) => ((settling = decide(driver.state, driver.now)), released)],
      close: [CLOSED],
    };
    driven(script, { cancelAttempt: 'abort' }).run();
    assert.deepEqual(settling, { do: 'await', abort: false });
  });

  test('asks for the abort once [S7.4]', () => {
    const script: Script = {
      attempt: [
        (_, driver) => {
          driver.cancel();
          driver.append({ type: 'attempt_abort_requested', data: { attempt: 1 } });
          assert.deepEqual(decide(driver.state, driver.now), { do: 'await', abort: false });
          return null;
        },
        released,
      ],
      close: [CLOSED],
    };
    assert.deepEqual(ending(driven(script, { cancelAttempt: 'abort' }).run()), CANCELLED);
  });

  test.each([
    ['not applied', [released], CANCELLED],
    ['applied', [committed], KEPT],
    ['nobody knows', [attention], ['needs_attention', null, null, true]],
  ] as [string, OperationOutcome[], unknown[]][])(
    'that is lost is settled first: %s [S7.4][S3.8]',
    (_name, settled, expected) => {
      const driver = driven({ attempt: [cancelled(null), ...settled], close: [CLOSED] }).run();
      assert.deepEqual(ending(driver), expected);
      assert.equal(driver.executions, 1);
    },
  );

  test('finds an attempt that a frozen worker finished meanwhile: never cancelled with an effect [S3.4][S7.4]', () => {
    const script: Script = { attempt: [cancelled(released)], close: [{ kind: 'committed', result: RESULT }] };
    assert.deepEqual(ending(driven(script).run()), KEPT);
    const undone: Script = {
      ...script,
      attempt: [cancelled(released)],
      close: [{ kind: 'committed', result: RESULT }],
      rollback: [{ kind: 'rolledBack' }],
    };
    assert.deepEqual(ending(driven(undone, ROLLS_BACK).run()), UNDONE);
  });

  test('finds an attempt of a frozen worker in flight: settled before it is closed [S3.4][S7.4]', () => {
    const script: Script = {
      attempt: [cancelled(released), committed],
      close: [{ kind: 'inFlight', rowAttempt: 4 }],
    };
    const driver = driven(script).run();
    assert.deepEqual(ending(driver), KEPT);
    const settle = driver.verdicts.findLast((verdict) => verdict.do === 'attempt');
    assert.deepEqual([settle?.purpose, settle?.attempt], ['settle', 5]);
  });

  test('found in flight shows as reconciling, its effect unknown, until it is settled [S3.4]', () => {
    const driver = driven({ attempt: [cancelled(released)], close: [{ kind: 'inFlight', rowAttempt: 1 }] });
    while (!driver.events.some((event) => event.type === 'close_finished')) driver.step();
    assert.deepEqual([driver.outcome.status, driver.outcome.effect], ['reconciling', null]);
  });

  test('found in flight again and again is looked at with pauses, until it is settled [S3.4]', () => {
    const inFlight = { kind: 'inFlight' as const, rowAttempt: 1 };
    const script: Script = {
      attempt: [cancelled(released), released, released],
      close: [inFlight, inFlight, CLOSED],
    };
    const driver = driven(script).run();
    assert.deepEqual([...ending(driver), driver.now], [...CANCELLED, 1_000_200]);
  });

  test('that was refused meanwhile ends as the row says [S2.2]', () => {
    const end = {
      status: 'failed',
      effect: 'none',
      cause: 'precondition_failed',
      error: null,
      cancelRequested: false,
    } as const;
    const driver = driven({ attempt: [cancelled(released)], close: [{ kind: 'closed', end }] }).run();
    assert.deepEqual(driver.state.end, end);
  });
});

describe('a cancel after the effect', () => {
  test('while it is not visible yet waits for the proof, then keeps it or undoes it [S7.4][S2.6]', () => {
    const script = (): Script => ({
      attempt: [notYet, cancelled(notYet), committed],
      rollback: [{ kind: 'rolledBack' }],
    });
    assert.deepEqual(ending(driven(script()).run()), KEPT);
    assert.deepEqual(ending(driven(script(), ROLLS_BACK).run()), UNDONE);
  });

  test('that is being undone because it was not as promised changes nothing [S7.4]', () => {
    const driver = driven({
      attempt: [mismatch],
      rollback: [cancelled({ kind: 'rolledBack' as const })],
    }).run();
    assert.deepEqual(ending(driver), ['failed', 'rolled_back', 'verify_failed', true]);
  });

  test('does not undo what an earlier task of this key committed [S2.1][S7.4]', () => {
    const replayed: OperationOutcome = { ...committed, replayed: true } as OperationOutcome;
    assert.deepEqual(ending(driven({ attempt: [cancelled(replayed)] }, ROLLS_BACK).run()), KEPT);
  });

  test('has nothing to undo for a safe action [S7.4]', () => {
    const driver = driven({ attempt: [cancelled(committed)] }, { ...ROLLS_BACK, effect: 'safe' }).run();
    assert.deepEqual(ending(driver), ['completed', 'none', 'committed', true]);
  });

  test('is too late once the end is decided [S7.4]', () => {
    const driver = driven({ attempt: [committed] }, ROLLS_BACK);
    while (driver.state.phase.kind !== 'finished') driver.step();
    driver.cancel();
    driver.run();
    assert.deepEqual(ending(driver), ['completed', 'applied', 'committed', false]);
  });

  test('a second cancel during the rollback does not interrupt it [S7.4]', () => {
    const retry = { kind: 'retry' as const, failure: notSent };
    const script: Script = {
      attempt: [cancelled(committed)],
      rollback: [cancelled(retry), { kind: 'rolledBack' }],
    };
    assert.deepEqual(ending(driven(script, ROLLS_BACK).run()), UNDONE);
  });
});

describe('a cancel while a person is waited for', () => {
  test('is recorded and decides nothing: the effect is not known [S3.4][S3.5][S7.4]', () => {
    const driver = driven({ attempt: [attention] }).run();
    driver.cancel();
    assert.deepEqual(decide(driver.state, driver.now), { do: 'wait', until: null, person: true });
    assert.equal(statusOf(driver.state), 'needs_attention');
  });

  test.each([
    ['not_applied', [], CANCELLED],
    ['applied', [committed], KEPT],
    ['abandoned', [], ['failed', 'unknown', 'abandoned', true]],
  ] as ['not_applied' | 'applied' | 'abandoned', OperationOutcome[], unknown[]][])(
    'then resolved as %s [S3.5][S7.4]',
    (as, attempts, expected) => {
      const script: Script = {
        attempt: [attention, ...attempts],
        resolve: [(verdict) => ({ end: verdict.end })],
        close: [CLOSED],
      };
      const driver = driven(script).run();
      driver.cancel();
      assert.deepEqual(ending(driver.resolve(as).run()), expected);
    },
  );
});

test('a cancelled task never says that the effect is there or unknown, whatever its attempt says [S3.4]', () => {
  const outcomes: OperationOutcome[] = [
    committed,
    released,
    mismatch,
    { kind: 'failed', failure: { kind: 'permanent', code: 'x', message: 'x' } },
    { kind: 'refused', reason: 'x' },
    { kind: 'unknown', failure: doubt, attention: false },
  ];
  for (const outcome of outcomes) {
    const script: Script = {
      attempt: [cancelled(outcome), released],
      close: [CLOSED],
      rollback: [{ kind: 'rolledBack' }],
    };
    const [status, effect] = ending(driven(script).run());
    if (status === 'cancelled') assert.equal(effect, 'none');
  }
});
