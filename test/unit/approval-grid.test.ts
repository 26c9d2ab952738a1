/** S4, decision by decision: the approval grid, through the pure core. What a decision does, and what it no longer does. */
import { strict as assert } from 'node:assert';
import { describe, test } from 'vitest';
import type { DecisionMessage } from '../../src/task/approval.ts';
import { committed } from '../support/outcomes.ts';
import { ANN, BOB, CAT, CLOSED, DAN, HOUR_MS, ending, opened, typesOf } from '../support/approvals.ts';
import { editedPlan } from '../support/approvals.ts';
import type { TaskDriver } from '../support/task-driver.ts';

const runs = { attempt: [committed], close: [CLOSED] };
const REJECTED = ['failed', 'none', 'approval_rejected'];
const DONE = ['completed', 'applied', 'committed'];

/** The code of each decision in turn, then how the task ended and how often it executed. */
function grid(driver: TaskDriver, ...decisions: Partial<DecisionMessage>[]): unknown[] {
  const codes = decisions.map((message) => driver.decide(message).code);
  driver.run();
  return [...codes, ...ending(driver), driver.executions];
}

const reject = { kind: 'reject' } as const;

describe('the approval grid', () => {
  test('an approval lets the call be executed, once [S4.1]', () => {
    assert.deepEqual(grid(opened({}, runs), {}), ['approved', ...DONE, 1]);
  });

  test('a rejection ends it with nothing sent, and says who and why [S4.2]', () => {
    const driver = opened({}, runs);
    assert.deepEqual(grid(driver, { ...reject, reason: 'too much' }), ['rejected', ...REJECTED, 0]);
    assert.equal(driver.outcome.error?.message, 'Rejected by bob: too much');
  });

  test('a second approval changes nothing, whoever gives it [S4.3]', () => {
    assert.deepEqual(grid(opened({}, runs), {}, {}, { by: CAT }), [
      ...['approved', 'already_decided', 'already_decided'],
      ...[...DONE, 1],
    ]);
  });

  test('deny, then approve in the same millisecond: the denial stands [S4.3][case 18]', () => {
    const driver = opened({}, runs);
    assert.deepEqual(grid(driver, reject, { by: CAT }), ['rejected', 'already_decided', ...REJECTED, 0]);
    assert.equal(driver.decide({ by: CAT }).code, 'already_decided');
    const ignored = driver.events.filter(({ type }) => type === 'decision_ignored');
    assert.equal(ignored.length, 2);
  });

  test('approve, then deny: the approval stands [S4.3]', () => {
    assert.deepEqual(grid(opened({}, runs), {}, reject), ['approved', 'already_decided', ...DONE, 1]);
  });

  test('a decision after a cancel is refused, before the task has noticed and after its end [S4.3][S7.4]', () => {
    const driver = opened({}, runs);
    driver.cancel();
    assert.equal(driver.decide().code, 'already_ended');
    driver.run();
    assert.deepEqual(ending(driver), ['cancelled', 'none', 'cancelled']);
    assert.equal(driver.decide().code, 'already_ended');
    assert.equal(driver.executions, 0);
  });

  test('a decision at the very moment of expiry is refused, and after it [S4.3][S4.4][case 24]', () => {
    const driver = opened({}, runs);
    driver.moveTo(driver.now + HOUR_MS);
    assert.equal(driver.decide().code, 'approval_expired');
    driver.run();
    assert.deepEqual(ending(driver), ['failed', 'none', 'approval_expired']);
    assert.equal(driver.decide().code, 'approval_expired');
    assert.equal(driver.executions, 0);
  });

  test('a decision one millisecond before expiry counts [S4.4]', () => {
    const driver = opened({}, runs);
    driver.moveTo(driver.now + HOUR_MS - 1);
    assert.deepEqual(grid(driver, {}), ['approved', ...DONE, 1]);
  });

  test('the same decisionId gets its first answer, also once the task has ended [S4.3][case 19]', () => {
    const driver = opened({}, runs);
    const twice = { decisionId: 'd-1' };
    assert.deepEqual(grid(driver, twice, twice, { ...reject, ...twice }), [
      ...['approved', 'approved', 'approved'],
      ...[...DONE, 1],
    ]);
    assert.equal(driver.decide(twice).code, 'approved');
    assert.equal(typesOf(driver).filter((type) => type === 'approval_decided').length, 1);
  });

  test('a refusal, too, is the first answer to its decisionId [S4.3]', () => {
    const driver = opened({ roles: ['cfo'] }, runs);
    assert.equal(driver.decide({ decisionId: 'd-1' }).code, 'not_allowed');
    assert.equal(driver.decide({ decisionId: 'd-1', by: CAT }).code, 'not_allowed');
    assert.equal(driver.decide({ decisionId: 'd-2', by: CAT }).code, 'approved');
  });

  test('a callId that is none of the task, or of a later approval, is refused [S4.1][S4.3]', () => {
    for (const callId of [
      '',
      'other#1',
      'action#0',
      'action#01',
      'action#3',
      'action#-1',
      'action#1 ',
      'action',
    ])
      assert.equal(opened().decide({ callId }).code, 'not_open', callId);
  });

  test('the fingerprint that the approver saw must be the call’s [S4.1]', () => {
    const driver = opened({}, runs);
    assert.equal(driver.decide({ fingerprint: 'of something else' }).code, 'fingerprint_mismatch');
    assert.equal(driver.decide({ ...reject, fingerprint: 'of something else' }).code, 'fingerprint_mismatch');
    assert.deepEqual(grid(driver, { fingerprint: 'input-hash' }), ['approved', ...DONE, 1]);
  });

  test('a decision of another tenant finds nothing [S4.5]', () => {
    const driver = opened();
    const by = { ...BOB, tenant: 'other' };
    assert.equal(driver.decide({ by }).code, 'not_open');
    assert.equal(driver.decide({ by, callId: 'action#2', fingerprint: 'x' }).code, 'not_open');
    assert.equal(driver.state.heldDecisions.length, 0);
  });
});

describe('who may decide', () => {
  test('not the requester: neither approve, nor edit, nor reject, unless policy says so [S4.5]', () => {
    for (const kind of ['approve', 'edit', 'reject'] as const)
      assert.equal(opened().decide({ kind, by: ANN, arguments: {} }).code, 'not_allowed');
    assert.equal(opened({ requesterMayDecide: true }).decide({ by: ANN }).code, 'approved');
  });

  test('only someone with one of the roles, where there are any [S4.5]', () => {
    const roles = ['cfo', 'owner'];
    assert.equal(opened({ roles }).decide({ by: BOB }).code, 'not_allowed');
    assert.equal(opened({ roles }).decide({ kind: 'reject', by: DAN }).code, 'not_allowed');
    assert.equal(opened({ roles }).decide({ by: CAT }).code, 'approved');
    assert.equal(opened().decide({ by: DAN }).code, 'approved');
  });

  test('nobody over the connection that asked, unless policy lets it [S4.6]', () => {
    assert.equal(opened().decide({ channel: 'mcp' }).code, 'not_allowed');
    assert.equal(opened().decide({ channel: 'mcp', kind: 'reject' }).code, 'not_allowed');
    assert.equal(opened({ mayAnswerOverMcp: true }).decide({ channel: 'mcp' }).code, 'approved');
  });

  test('as many distinct approvers as the quorum asks for; the same one counts once [S4.5]', () => {
    const driver = opened({ quorum: 2 }, runs);
    assert.deepEqual(grid(driver, {}, {}, { by: CAT }), [
      ...['approval_recorded', 'already_decided', 'approved'],
      ...[...DONE, 1],
    ]);
  });

  test('one rejection ends it, however many approved before [S4.5]', () => {
    assert.deepEqual(grid(opened({ quorum: 3 }, runs), {}, { by: CAT }, { ...reject, by: DAN }), [
      ...['approval_recorded', 'approval_recorded', 'rejected'],
      ...[...REJECTED, 0],
    ]);
  });
});

describe('challenge and response', () => {
  const challenge = 'wire bob 100';

  test('the phrase, typed back, approves; space around it is forgiven [S4.6]', () => {
    assert.equal(opened({ challenge }).decide({ challengeAnswer: challenge }).code, 'approved');
    assert.equal(opened({ challenge }).decide({ challengeAnswer: ` ${challenge}\n` }).code, 'approved');
  });

  test('three wrong answers, whoever gives them, reject the call [S4.6]', () => {
    const driver = opened({ challenge }, runs);
    const wrong = { challengeAnswer: 'wire bob 1000' };
    assert.deepEqual(grid(driver, wrong, { ...wrong, by: CAT }, wrong, { challengeAnswer: challenge }), [
      ...['wrong_challenge', 'wrong_challenge', 'wrong_challenge', 'already_decided'],
      ...[...REJECTED, 0],
    ]);
    assert.match(driver.outcome.error?.message ?? '', /wrong 3 times/);
  });

  test('two wrong answers and a right one approve [S4.6]', () => {
    const wrong = { challengeAnswer: 'no' };
    assert.deepEqual(grid(opened({ challenge }, runs), wrong, wrong, { challengeAnswer: challenge }), [
      ...['wrong_challenge', 'wrong_challenge', 'approved'],
      ...[...DONE, 1],
    ]);
  });

  test('an approval without any answer is asked for one and costs none of the three [S4.6]', () => {
    const driver = opened({ challenge }, runs);
    assert.deepEqual(grid(driver, {}, {}, {}, { challengeAnswer: challenge }).slice(0, 4), [
      ...['wrong_challenge', 'wrong_challenge', 'wrong_challenge', 'approved'],
    ]);
  });

  test('the same wrong decision sent twice costs one [S4.3][S4.6]', () => {
    const driver = opened({ challenge });
    driver.decide({ challengeAnswer: 'no', decisionId: 'd-1' });
    driver.decide({ challengeAnswer: 'no', decisionId: 'd-1' });
    assert.equal(
      driver.state.phase.kind === 'awaiting_approval' && driver.state.phase.approval.wrongAnswers,
      1,
    );
  });

  test('each of a quorum needs the phrase [S4.5][S4.6]', () => {
    const driver = opened({ challenge, quorum: 2 }, runs);
    const right = { challengeAnswer: challenge };
    assert.deepEqual(grid(driver, right, { by: CAT }, { ...right, by: CAT }).slice(0, 3), [
      ...['approval_recorded', 'wrong_challenge', 'approved'],
    ]);
  });

  test('a rejection needs no phrase [S4.6]', () => {
    assert.equal(opened({ challenge }).decide(reject).code, 'rejected');
  });
});

describe('an edit', () => {
  const edit = { kind: 'edit', arguments: { quantity: 2 } } as const;

  test('whose arguments policy lets through is executed under the edited plan [S4.2]', () => {
    const driver = opened({}, runs);
    const plan = editedPlan(driver.plan, null);
    assert.equal(driver.decide(edit, { plan, needsApproval: false }).code, 'edited');
    driver.run();
    assert.deepEqual([...ending(driver), driver.executions], [...DONE, 1]);
    assert.deepEqual(driver.outcome.editedFrom, {
      fingerprint: 'input-hash',
      executed: 'edited-input',
      by: 'bob',
      callId: 'action#1',
    });
  });

  test('for which policy asks more opens a new approval, for the new arguments, from the start [S4.1][S4.2][case 21]', () => {
    const driver = opened({ quorum: 2 }, runs);
    driver.decide({ by: CAT });
    const plan = editedPlan(driver.plan, { quorum: 2 });
    assert.equal(driver.decide(edit, { plan, needsApproval: true }).code, 'edited_needs_approval');
    driver.runTo('awaiting_approval');
    const { phase } = driver.state;
    assert(phase.kind === 'awaiting_approval');
    assert.deepEqual(
      [phase.approval.callId, phase.approval.fingerprint, phase.approval.approvedBy],
      ['action#2', 'edited-input', []],
    );
    assert.equal(driver.decide({ callId: 'action#1', by: DAN }).code, 'already_decided');
    assert.equal(driver.decide({ callId: 'action#2', by: DAN }).code, 'approval_recorded');
    assert.deepEqual(grid(driver, { callId: 'action#2', by: BOB }), ['approved', ...DONE, 1]);
  });

  test('that can not be planned, or says nothing, leaves the approval as it was [S4.2][case 21]', () => {
    const driver = opened({}, runs);
    assert.deepEqual(driver.decide(edit, 'no such argument: /tool'), {
      accepted: false,
      code: 'invalid_edit',
      message: 'no such argument: /tool',
    });
    assert.equal(driver.decide({ kind: 'edit' }).code, 'invalid_edit');
    assert.deepEqual(grid(driver, {}), ['approved', ...DONE, 1]);
    assert.equal(driver.outcome.editedFrom, undefined);
  });

  test('keeps arguments and phrases out of what is recorded of the decision [S2.10]', () => {
    const driver = opened();
    driver.decide({ ...edit, challengeAnswer: 'typed' }, 'refused');
    assert.doesNotMatch(JSON.stringify(driver.events), /quantity|typed/);
  });
});
