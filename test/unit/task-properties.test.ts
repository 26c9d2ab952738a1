/**
 * The core against generated histories. `TaskDriver` checks the invariants that hold at every step; here are the worlds
 * it is driven through: one that follows the operation protocol and counts effects, and one that answers anything.
 */
import { strict as assert } from 'node:assert';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { decide } from '../../src/task/decide.ts';
import type { NewEvent, TaskEvent } from '../../src/task/event.ts';
import type { CloseOutcome, OperationOutcome, RollbackOutcome } from '../../src/task/outcome.ts';
import type { Plan } from '../../src/task/plan.ts';
import { reduce } from '../../src/task/reduce.ts';
import { statusOf } from '../../src/task/view.ts';
import { ModelLedger } from '../support/model-ledger.ts';
import type { Turn } from '../support/model-ledger.ts';
import { planOf } from '../support/plans.ts';
import { holds } from '../support/property.ts';
import { LOST, TaskDriver } from '../support/task-driver.ts';
import type { Steps } from '../support/task-driver.ts';

const plans: fc.Arbitrary<Plan> = fc
  .record({
    effect: fc.constantFrom('safe' as const, 'conditional' as const, 'unsafe' as const),
    keyed: fc.boolean(),
    lookup: fc.constantFrom('none' as const, 'plain' as const, 'conclusive' as const),
    verify: fc.boolean(),
    onCancel: fc.constantFrom('keep' as const, 'rollback' as const),
    cancelAttempt: fc.constantFrom('finish' as const, 'abort' as const),
    maximumRetries: fc.integer({ min: 0, max: 4 }),
    runMs: fc.constantFrom(1, 3_000, 3_600_000),
    verifyMs: fc.constantFrom(0, 1_000, 3_600_000),
    inline: fc.boolean(),
    leased: fc.boolean(),
  })
  .map(
    ({
      effect,
      keyed,
      lookup,
      verify,
      onCancel,
      cancelAttempt,
      maximumRetries,
      runMs,
      verifyMs,
      inline,
      leased,
    }) =>
      planOf({
        effect,
        keyed,
        autoRetry: keyed || effect === 'safe',
        handlers: { lookup, verify },
        onCancel: effect === 'safe' ? 'keep' : onCancel,
        cancelAttempt,
        retry: { maximumRetries },
        deadlines: { runMs, verifyMs },
        inline: inline && !leased,
        ...(leased && { lease: { id: 'lease_1', resource: 'printer', leaseMs: 33_000 } }),
      }),
  );

const turns: fc.Arbitrary<Turn> = fc.record({
  crash: fc.constantFrom(
    'never',
    'never',
    'never',
    'before_claim',
    'after_intent',
    'after_effect',
    'after_verify',
    'after_commit',
    'frozen',
  ),
  wakesAfter: fc.integer({ min: 0, max: 4 }),
  deed: fc.constantFrom(
    'applies',
    'applies',
    'not_sent',
    'rate_limited',
    'permanent',
    'unknown_applied',
    'unknown_not_applied',
  ),
  lookup: fc.constantFrom('truth', 'truth', 'unknown', 'threw'),
  verify: fc.constantFrom('verified', 'verified', 'not_yet', 'mismatch', 'threw'),
  precondition: fc.constantFrom(true, true, true, false),
  approval: fc.constantFrom(false, false, false, true),
  busyMs: fc.constantFrom(null, null, null, 0, 700),
  fenceRaisedBy: fc.constantFrom(0, 0, 0, 1, 3),
  undo: fc.constantFrom('undone', 'undone', 'fails'),
});

/** Something from outside, at the n-th chance there is: between two steps, or while one is under way. */
interface Interruption {
  chance: number;
  what: 'cancel' | 'deadline' | 'late_resolve';
}
const interruptions: fc.Arbitrary<Interruption[]> = fc.array(
  fc.record({
    chance: fc.integer({ min: 0, max: 25 }),
    what: fc.constantFrom('cancel' as const, 'deadline' as const, 'late_resolve' as const),
  }),
  { maxLength: 3 },
);

const randoms = fc.array(fc.double({ min: 0, max: 0.999, noNaN: true }), { minLength: 1, maxLength: 5 });

/** Steps that first let the interruptions of this chance happen. */
function interrupted(steps: Steps, strike: (driver: TaskDriver) => void): Steps {
  return {
    attempt: (verdict, driver) => (strike(driver), steps.attempt(verdict, driver)),
    rollback: (verdict, driver) => (strike(driver), steps.rollback(verdict, driver)),
    close: (verdict, driver) => (strike(driver), steps.close(verdict, driver)),
    resolve: (verdict, driver) => (strike(driver), steps.resolve(verdict, driver)),
  };
}

function striker(planned: Interruption[]): (driver: TaskDriver) => void {
  let chance = 0;
  return (driver) => {
    const now = planned.filter((entry) => entry.chance === chance);
    chance += 1;
    for (const { what } of now) {
      if (what === 'cancel') driver.cancel();
      else if (what === 'late_resolve')
        driver.append({ type: 'message_ignored', data: { message: 'resolve', code: 'not_in_attention' } });
      else driver.moveTo(driver.state.startedAt + driver.plan.deadlines.runMs);
    }
  };
}

function drawing(values: number[]): () => number {
  let index = 0;
  return () => values[index++ % values.length] ?? 0;
}

/** A person who looks at the world before they answer. */
function answerTruly(driver: TaskDriver, ledger: ModelLedger, givesUp: boolean): void {
  if (givesUp) driver.resolve('abandoned');
  else driver.resolve(ledger.world.standing > 0 ? 'applied' : 'not_applied');
}

function runToEnd(
  driver: TaskDriver,
  strike: (driver: TaskDriver) => void,
  answer: (times: number) => void,
): void {
  let answers = 0;
  for (let steps = 0; steps < 3_000; steps += 1) {
    strike(driver);
    const verdict = driver.step();
    if (verdict.do === 'nothing') return;
    if (verdict.do === 'wait' && verdict.until === null) {
      assert(verdict.person, 'waits for nobody');
      answer((answers += 1));
    }
  }
  throw new Error(`no end, in phase ${driver.state.phase.kind}`);
}

function checkEnd({ state, events }: TaskDriver): void {
  assert(state.end);
  const { status, effect, cause } = state.end;
  assert.equal(statusOf(state), status);
  assert.equal(events.filter((event) => event.type === 'task_ended').length, 1);
  if (status === 'cancelled') assert(effect === 'none' || effect === 'rolled_back');
  if (effect === 'unknown') assert.equal(cause, 'abandoned');
  if (status === 'completed') assert.equal(cause, 'committed');
  assert.deepEqual(
    events.map((event) => event.seq),
    events.map((_, index) => index + 1),
  );
}

/** Whatever comes after the end changes nothing but the journal's length. */
function checkNothingFollows(driver: TaskDriver): void {
  const before = driver.state;
  const late: NewEvent[] = [
    { type: 'cancel_requested', data: { by: 'late' } },
    {
      type: 'attempt_finished',
      data: { attempt: before.attempt, outcome: { kind: 'refused', reason: 'late' } },
    },
    { type: 'resolve_requested', data: { resolution: { as: 'applied', by: 'late' } } },
    {
      type: 'task_ended',
      data: {
        end: { status: 'failed', effect: 'none', cause: 'cancelled', error: null, cancelRequested: true },
        result: null,
        replayed: false,
      },
    },
    { type: 'step_lost', data: { attempt: null, failure: LOST } },
  ];
  for (const event of late) driver.append(event);
  assert.deepEqual({ ...driver.state, seq: 0, updatedAt: 0 }, { ...before, seq: 0, updatedAt: 0 });
  assert.deepEqual(decide(driver.state, driver.now + 1e9), { do: 'nothing' });
}

describe('a task against a world that follows the protocol', () => {
  test('ends once, with what the world says, whatever is lost, late, cancelled or out of time [S2.11][S3.1][S3.2][S3.4][S5.2][S5.3][S7.4]', () => {
    const cases = fc.record({
      plan: plans,
      script: fc.array(turns, { maxLength: 12 }),
      planned: interruptions,
      draws: randoms,
      givesUpAt: fc.constantFrom(2, 2, 1),
    });
    holds(
      'task-world',
      cases,
      ({ plan, script, planned, draws, givesUpAt }) => {
        const ledger = new ModelLedger(plan, script);
        const strike = striker(planned);
        const driver = new TaskDriver(plan, interrupted(ledger, strike), drawing(draws));
        runToEnd(driver, strike, (times) =>
          answerTruly(driver, ledger, times > 3 * givesUpAt - 3 && times % givesUpAt === 0),
        );
        checkEnd(driver);
        const { end } = driver.state;
        assert(end);
        const { standing, broughtAbout } = ledger.world;
        if (end.effect === 'none' || end.effect === 'rolled_back')
          assert.equal(standing, 0, `${end.effect}, yet it stands`);
        if (end.effect === 'applied') assert.equal(standing, 1);
        const undone = driver.events.filter((event) => event.type === 'rollback_scheduled').length;
        assert(broughtAbout <= 1 + undone, `brought about ${broughtAbout} times`);
        if (ledger.end)
          assert.deepEqual(
            [ledger.end.status, ledger.end.effect, ledger.end.cause],
            [end.status, end.effect, end.cause],
            'row and task disagree',
          );
        else assert.equal(ledger.state, 'committed');
        ledger.wakeAll();
        assert.equal(ledger.world.standing, standing, 'a frozen attempt acted after the end');
        checkNothingFollows(driver);
      },
      400,
    );
  });
});

const outcomes: fc.Arbitrary<OperationOutcome> = fc.oneof(
  fc.record({
    kind: fc.constant('committed' as const),
    result: fc.constant({ kind: 'inline' as const, value: 1 }),
    replayed: fc.boolean(),
  }),
  fc.constant({ kind: 'refused' as const, reason: 'no' }),
  fc.constant({
    kind: 'released' as const,
    failure: { kind: 'notApplied' as const, code: 'attempt_failed', message: 'no' },
  }),
  fc.constant({
    kind: 'released' as const,
    failure: { kind: 'rateLimited' as const, code: 'rate_limited', message: 'later', retryAfterMs: 0 },
  }),
  fc.constant({
    kind: 'failed' as const,
    failure: { kind: 'permanent' as const, code: 'permanent_failure', message: 'never' },
  }),
  fc.constant({ kind: 'notYet' as const }),
  fc.constant({ kind: 'mismatch' as const, reason: 'other' }),
  fc.boolean().map((attention) => ({ kind: 'unknown' as const, failure: LOST, attention })),
  fc.constant({ kind: 'busy' as const, retryAfterMs: 0, reason: 'claimed' as const }),
  fc.record({
    kind: fc.constant('fenceStale' as const),
    rowAttempt: fc.integer({ min: 0, max: 50 }),
    superseded: fc.constantFrom(false, false, true),
  }),
  fc.record({ kind: fc.constant('conflict' as const), paths: fc.constant<string[]>(['/amount']) }),
  fc.constant({ kind: 'needsApproval' as const, reason: 'much' }),
);
const rollbacks: fc.Arbitrary<RollbackOutcome> = fc.oneof(
  fc.constant({ kind: 'rolledBack' as const }),
  fc.constant({ kind: 'retry' as const, failure: LOST }),
  fc.constant({ kind: 'attention' as const, failure: LOST }),
  fc.record({ kind: fc.constant('fenceStale' as const), rowAttempt: fc.integer({ min: 0, max: 50 }) }),
);
const closes: fc.Arbitrary<CloseOutcome> = fc.oneof(
  fc.constant({ kind: 'closed' as const }),
  fc.constant({ kind: 'inFlight' as const, rowAttempt: 3 }),
  fc.constant({ kind: 'committed' as const, result: { kind: 'inline' as const, value: 1 } }),
  fc.constant({ kind: 'superseded' as const }),
);
const lost = <T>(answers: fc.Arbitrary<T>) => fc.option(answers, { freq: 4, nil: null });

describe('a task against a world that answers anything', () => {
  test('keeps its invariants, never spins, and closes nothing in doubt [S3.1][S3.4]', () => {
    const cases = fc.record({
      plan: plans,
      attempts: fc.array(lost(outcomes), { maxLength: 25 }),
      rollbacks: fc.array(lost(rollbacks), { maxLength: 10 }),
      closes: fc.array(lost(closes), { maxLength: 10 }),
      planned: interruptions,
      draws: randoms,
    });
    holds(
      'task-chaos',
      cases,
      ({ plan, attempts, rollbacks: undos, closes: closings, planned, draws }) => {
        const next = <T>(queue: T[], last: T): T => (queue.length > 0 ? (queue.shift() as T) : last);
        const strike = striker(planned);
        const steps: Steps = {
          attempt: () =>
            next(attempts, { kind: 'committed', result: { kind: 'inline', value: 1 }, replayed: false }),
          rollback: () => next(undos, { kind: 'rolledBack' }),
          close: () => next(closings, { kind: 'closed' }),
          resolve: (verdict) => ({ end: verdict.end }),
        };
        const driver = new TaskDriver(plan, interrupted(steps, strike), drawing(draws));
        const answers = ['not_applied', 'applied', 'abandoned'] as const;
        runToEnd(driver, strike, (times) => driver.resolve(answers[times % 3] ?? 'abandoned'));
        checkEnd(driver);
        checkNothingFollows(driver);
        const replayed = driver.events.reduce<ReturnType<typeof reduce> | null>(
          (state, event: TaskEvent) => reduce(state, event),
          null,
        );
        assert.deepEqual(replayed, driver.state, 'the journal alone makes the state');
      },
      400,
    );
  });
});
