/** S4 over time: how an approval opens, waits, runs out and is asked for anew, through the pure core. */
import { strict as assert } from 'node:assert';
import { describe, test } from 'vitest';
import { decide } from '../../src/task/decide.ts';
import type { TaskEvent } from '../../src/task/event.ts';
import { noteOf } from '../../src/task/notes.ts';
import { reduce } from '../../src/task/reduce.ts';
import { upcastState } from '../../src/task/upcast.ts';
import { statusOf } from '../../src/task/view.ts';
import {
  BOB,
  CAT,
  CLOSED,
  DAN,
  HOUR_MS,
  asking,
  decision,
  editedPlan,
  ending,
  opened,
  started,
  typesOf,
} from '../support/approvals.ts';
import { attention, committed, released, unknown } from '../support/outcomes.ts';
import { planOf } from '../support/plans.ts';
import { TaskDriver, scripted } from '../support/task-driver.ts';

const runs = { attempt: [committed], close: [CLOSED] };
const DONE = ['completed', 'applied', 'committed'];
const EXPIRED = ['failed', 'none', 'approval_expired'];
const openOf = ({ state }: TaskDriver) => {
  assert(state.phase.kind === 'awaiting_approval');
  return state.phase.approval;
};

describe('an approval', () => {
  test('opens before anything is sent, bound to its callId and to the arguments as planned [S4.1]', () => {
    const driver = started();
    assert.equal(statusOf(driver.state), 'proposed');
    driver.runTo('awaiting_approval');
    assert.deepEqual(typesOf(driver), ['task_started', 'preview_scheduled', 'approval_opened']);
    assert.equal(statusOf(driver.state), 'awaiting_approval');
    const { callId, fingerprint, expiresAt, openedAt } = openOf(driver);
    assert.deepEqual([callId, fingerprint, expiresAt - openedAt], ['action#1', 'input-hash', HOUR_MS]);
    assert.equal(driver.outcome.effect, 'none');
  });

  test('whose view could not be read is read again, and a cancel meanwhile ends the task at once [S4.7][S7.4]', () => {
    const driver = started({}, runs);
    driver.append({ type: 'preview_scheduled', data: { callId: 'action#1' } });
    driver.append({
      type: 'step_lost',
      data: { attempt: null, failure: { kind: 'unknown', code: 'internal_error', message: 'lost' } },
    });
    assert.equal(driver.step().do, 'backoff');
    driver.cancel();
    assert.equal(driver.step().do, 'close');
    driver.run();
    assert.deepEqual(ending(driver), ['cancelled', 'none', 'cancelled']);
  });

  test('is asked for by a plan only: without one nobody is waited for [S4.5]', () => {
    const driver = new TaskDriver(planOf({ approval: null }), scripted({ attempt: [committed] })).run();
    assert.deepEqual(ending(driver), DONE);
    assert.equal(driver.decide().code, 'already_ended');
  });

  test('is no licence for the decider: an execution that nobody approved is a programmer’s error [S4.1]', () => {
    const { state } = opened();
    const forged = {
      ...state,
      phase: { kind: 'ready', step: { kind: 'attempt', purpose: 'execute' }, notBefore: 0, waiting: 'no' },
    } as const;
    assert.throws(() => decide(forged, state.updatedAt), /nobody approved/);
  });

  test('of an operation that an earlier run of it has sent waits until that is settled [S2.4][S3.8]', () => {
    const plan = asking();
    const seen = { kind: 'overtaken', rowAttempt: 4 } as const;
    const applied = new TaskDriver(plan, {
      ...scripted({ attempt: [committed] }),
      preview: () => seen,
    }).run();
    assert.deepEqual([...ending(applied), applied.executions], [...DONE, 0]);
    let looks = 0;
    const notApplied = new TaskDriver(plan, {
      ...scripted({ attempt: [unknown, released, committed] }),
      preview: () => ((looks += 1) === 1 ? seen : { kind: 'view', view: {} }),
    }).runTo('awaiting_approval');
    assert.equal(notApplied.state.attempt, 6);
    notApplied.decide();
    notApplied.run();
    assert.deepEqual([...ending(notApplied), notApplied.executions], [...DONE, 1]);
  });
});

describe('a decision that comes early', () => {
  test('is held and applied when its approval opens [S4.3]', () => {
    const driver = started({}, runs);
    assert.equal(driver.decide().code, 'held');
    driver.run();
    assert.deepEqual([...ending(driver), driver.executions], [...DONE, 1]);
    assert.deepEqual(typesOf(driver).slice(0, 6), [
      ...['task_started', 'decision_held', 'preview_scheduled', 'approval_opened'],
      ...['held_decision_taken', 'approval_decided'],
    ]);
  });

  test('is judged like any other then: wrong role, wrong fingerprint, the requester [S4.3][S4.5]', () => {
    const driver = started({ roles: ['cfo'] }, runs);
    driver.decide({ by: BOB });
    driver.decide({ by: CAT, fingerprint: 'of something else' });
    driver.decide({ kind: 'reject', by: { ...CAT, subject: 'ann' } });
    driver.runTo('awaiting_approval');
    for (let count = 0; count < 3; count += 1) assert.equal(driver.step().do, 'judge_held');
    const codes = driver.events.flatMap((event) =>
      event.type === 'decision_ignored' ? [event.data.code] : [],
    );
    assert.deepEqual(codes, ['not_allowed', 'fingerprint_mismatch', 'not_allowed']);
    assert.equal(driver.decide({ by: CAT }).code, 'approved');
  });

  test('the first of several held counts [S4.3]', () => {
    const driver = started({}, runs);
    driver.decide({ kind: 'reject' });
    driver.decide({ by: CAT });
    driver.run();
    assert.deepEqual([...ending(driver), driver.executions], ['failed', 'none', 'approval_rejected', 0]);
  });

  test('for the approval after an edit is held only with the fingerprint of what is not known yet [S4.1][S4.3]', () => {
    const driver = opened({}, runs);
    assert.equal(driver.decide({ callId: 'action#2', by: CAT }).code, 'not_open');
    assert.equal(driver.decide({ callId: 'action#2', by: CAT, fingerprint: 'edited-input' }).code, 'held');
    const plan = editedPlan(driver.plan);
    driver.decide({ kind: 'edit', arguments: {} }, { plan, needsApproval: true });
    driver.run();
    assert.deepEqual([...ending(driver), driver.executions], [...DONE, 1]);
  });

  test('is refused where no approval will open: without a policy, once it runs, once it is cancelled [S4.3]', () => {
    const unasked = new TaskDriver(planOf(), scripted(runs));
    assert.equal(unasked.decide().code, 'not_open');
    const approved = opened({}, runs);
    approved.decide();
    assert.equal(approved.decide({ callId: 'action#2', fingerprint: 'x' }).code, 'not_open');
    const cancelled = started();
    cancelled.cancel();
    assert.equal(cancelled.decide().code, 'already_ended');
  });

  test('as an edit is refused: it can be planned only against what is open [S4.3]', () => {
    assert.equal(started().decide({ kind: 'edit', arguments: {} }).code, 'not_open');
  });

  test('is held up to a bound [S4.3]', () => {
    const driver = started();
    for (let count = 0; count < 50; count += 1) assert.equal(driver.decide().code, 'held');
    assert.equal(driver.decide().code, 'not_open');
    const roles = Array.from({ length: 100 }, () => 'r'.repeat(255));
    const long = started();
    assert.deepEqual(
      [1, 2, 3].map(() => long.decide({ by: { ...BOB, roles } }).code),
      ['held', 'held', 'not_open'],
    );
  });
});

describe('an approval that nobody gives', () => {
  const past = (driver: TaskDriver) => (driver.moveTo(driver.now + HOUR_MS), driver);

  test('deny: ends the task with nothing done [S4.4][case 24]', () => {
    const driver = opened({ onExpiry: 'deny' }, runs).run();
    assert.deepEqual([...ending(driver), driver.executions], [...EXPIRED, 0]);
  });

  test('halt: alerts, and waits for a person to ask anew or to give it up [S4.4][S3.5][case 24]', () => {
    const driver = past(opened({ onExpiry: 'halt' }, runs)).run();
    assert.equal(statusOf(driver.state), 'needs_attention');
    assert(typesOf(driver).includes('alert_recorded'));
    assert.equal(driver.decide().code, 'approval_expired');
    driver.resolve('not_applied').runTo('awaiting_approval');
    assert.equal(openOf(driver).callId, 'action#2');
    assert.equal(driver.decide().code, 'approved');
    driver.run();
    assert.deepEqual(ending(driver), DONE);
    const givenUp = past(opened({ onExpiry: 'halt' }, runs))
      .run()
      .resolve('abandoned')
      .run();
    assert.deepEqual([...ending(givenUp), givenUp.executions], [...EXPIRED, 0]);
  });

  test('halt: a cancel ends it without asking anybody: nothing was sent [S7.4]', () => {
    const driver = past(opened({ onExpiry: 'halt' }, runs)).run();
    driver.cancel();
    driver.run();
    assert.deepEqual(ending(driver), ['cancelled', 'none', 'cancelled']);
  });

  test('remind: alerts again and again, and stays open, with the same callId, until somebody decides [S4.4]', () => {
    const driver = opened({ onExpiry: 'remind' }, runs);
    for (let term = 1; term <= 3; term += 1) {
      past(driver);
      assert.deepEqual([driver.step().do, driver.step().do], ['append', 'alert']);
    }
    assert.equal(openOf(driver).callId, 'action#1');
    driver.decide();
    driver.run();
    assert.deepEqual(ending(driver), DONE);
  });

  test('remind: a decision that meets the reminder’s very moment counts: nothing expired [S4.4]', () => {
    assert.equal(past(opened({ onExpiry: 'remind' })).decide().code, 'approved');
  });

  test('escalate: the others may decide too, once; then it is denied [S4.4]', () => {
    const escalates = { onExpiry: 'escalate', roles: ['chief'], escalateTo: ['owner'] } as const;
    const olga = { ...DAN, subject: 'olga', roles: ['owner'] };
    const driver = opened({ ...escalates, roles: ['chief'], escalateTo: ['owner'] }, runs);
    assert.equal(driver.decide({ by: olga }).code, 'not_allowed');
    past(driver).step();
    assert.deepEqual(openOf(driver).roles, ['chief', 'owner']);
    assert.equal(driver.decide({ by: olga }).code, 'approved');
    const nobody = opened({ ...escalates, roles: ['chief'], escalateTo: ['owner'] }, runs).run();
    assert.deepEqual([...ending(nobody), nobody.executions], [...EXPIRED, 0]);
    assert.equal(typesOf(nobody).filter((type) => type === 'approval_expired').length, 2);
  });

  test('two alerts of the same kind tell themselves apart [S6.5]', () => {
    const driver = opened({ onExpiry: 'remind' });
    past(driver).step();
    const [first] = driver.state.alertsDue;
    driver.step();
    past(driver).step();
    assert.notDeepEqual(driver.state.alertsDue[0], first);
  });
});

describe('the human’s wait', () => {
  test('is in none of the tool’s budgets: after 54 minutes the whole run is left [S5.3][case 23]', () => {
    const driver = opened({}, runs, { deadlines: { runMs: 5_000 } });
    driver.moveTo(driver.now + 54 * 60_000);
    driver.decide();
    assert.equal(driver.step().do, 'attempt');
    driver.run();
    assert.deepEqual(ending(driver), DONE);
  });

  test('is counted over several approvals, reminders and a halt [S5.3]', () => {
    const driver = opened({ onExpiry: 'halt' }, runs, { deadlines: { runMs: 5_000 } });
    driver.run();
    driver.moveTo(driver.now + 70 * HOUR_MS);
    driver.resolve('not_applied').runTo('awaiting_approval');
    driver.moveTo(driver.now + 60_000);
    const plan = editedPlan(driver.plan);
    driver.decide({ kind: 'edit', arguments: {} }, { plan, needsApproval: true });
    driver.runTo('awaiting_approval');
    driver.moveTo(driver.now + 60_000);
    driver.decide();
    assert.equal(driver.state.humanWaitMs, 71 * HOUR_MS + 120_000);
    driver.run();
    assert.deepEqual(ending(driver), DONE);
  });

  test('is none of them where a person says what became of an effect: it is executed after that [S5.3][S3.5]', () => {
    const script = { attempt: [attention, committed], resolve: [{ end: null }], close: [CLOSED] };
    const driver = new TaskDriver(planOf({ deadlines: { runMs: 5_000 } }), scripted(script));
    driver.runTo('needs_attention');
    driver.moveTo(driver.now + 54 * 60_000);
    driver.resolve('not_applied').run();
    assert.deepEqual(ending(driver), DONE);
    assert.equal(driver.state.humanWaitMs, 54 * 60_000);
  });

  test('for nothing counts too: what nobody approved is given up, and the time stays people’s [S5.3]', () => {
    const driver = opened({ onExpiry: 'halt' }, runs).run();
    driver.moveTo(driver.now + HOUR_MS);
    driver.resolve('abandoned');
    assert.equal(driver.state.humanWaitMs, 2 * HOUR_MS);
  });

  test('does not lengthen what the tool itself spends: its run deadline passes after the approval [S5.3]', () => {
    const driver = opened(
      {},
      { attempt: [unknown, released], close: [CLOSED] },
      { deadlines: { runMs: 5_000 } },
    );
    driver.moveTo(driver.now + 60_000);
    driver.decide();
    driver.step();
    driver.moveTo(driver.now + 5_000);
    driver.run();
    assert.deepEqual([...ending(driver), driver.executions], ['failed', 'none', 'deadline_exceeded', 1]);
  });
});

describe('what is kept', () => {
  test('first answers, the newest 200 [S4.3]', () => {
    const driver = opened({ roles: ['nobody'] });
    for (let count = 0; count < 250; count += 1) driver.decide({ decisionId: `d-${count}` });
    assert.equal(driver.state.answers.length, 200);
    assert.equal(driver.state.answers[0]?.decisionId, 'd-50');
  });

  test('in the audit: who decided what about which call and why; no phrase, no plan, no unredacted argument [S10.4][S2.10]', () => {
    const driver = started();
    driver.decide(decision({ challengeAnswer: 'typed', reason: 'early', fingerprint: 'input-hash' }));
    const held = driver.events.at(-1) as TaskEvent;
    assert.deepEqual(noteOf(held)?.data, {
      ...{ seq: 2, kind: 'approve', callId: 'action#1', by: 'bob', roles: ['chief'] },
      ...{ reason: 'early', fingerprint: 'input-hash' },
    });
    const editing = opened();
    const plan = editedPlan(editing.plan);
    editing.decide({ kind: 'edit', arguments: { secret: 1 }, by: CAT }, { plan, needsApproval: false });
    assert.deepEqual(noteOf(editing.events.at(-1) as TaskEvent)?.data, {
      ...{ seq: 4, callId: 'action#1', by: 'cat', roles: ['chief', 'cfo'], decision: 'edited' },
      ...{ needsApproval: false, shown: { arguments: {} } },
      fingerprint: { sent: 'edited-sent', input: 'edited-input' },
    });
  });

  test('of a task of 0.1, which knew no approvals, everything it had [S3.3]', () => {
    const { state } = new TaskDriver(planOf(), scripted({}));
    const added = [
      'interrupted',
      'approvalCycle',
      'decided',
      'humanWaitMs',
      'heldDecisions',
      'answers',
      'alertsDue',
    ];
    const old = Object.fromEntries(Object.entries(state).filter(([name]) => !added.includes(name)));
    assert.deepEqual(upcastState({ ...old, v: 1 }), state);
  });

  test('the state is what the journal says, nothing else [S3.1]', () => {
    const driver = opened({ onExpiry: 'remind' }, runs);
    driver.moveTo(driver.now + HOUR_MS);
    driver.step();
    driver.decide({ decisionId: 'd-1' });
    driver.run();
    const again = driver.events.reduce<ReturnType<typeof reduce> | null>(
      (state, event) => reduce(state, event),
      null,
    );
    assert.deepEqual(again, driver.state);
  });
});
