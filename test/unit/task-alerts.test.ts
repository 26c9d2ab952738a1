/** S4.4, S5.3, S6.5: whom the pure core has alerted, when, and how often. */
import { strict as assert } from 'node:assert';
import { describe, test } from 'vitest';
import { decide, slaDueAt } from '../../src/task/decide.ts';
import { BOB, CLOSED, HOUR_MS, ending, opened, typesOf } from '../support/approvals.ts';
import { committed, released } from '../support/outcomes.ts';
import { planOf } from '../support/plans.ts';
import { TaskDriver, scripted } from '../support/task-driver.ts';

const MINUTE_MS = 60_000;
const runs = { attempt: [committed], close: [CLOSED] };
const WARNED = { warnBeforeMs: 10 * MINUTE_MS };
const alertsOf = ({ events }: TaskDriver) =>
  events.flatMap((event) => (event.type === 'alert_recorded' ? [event.data.type] : []));

describe('an approval that nobody decides', () => {
  test('alerts before it expires, once, stays open meanwhile, and can still be given [S6.5][S4.4]', () => {
    const driver = opened(WARNED, runs);
    const { now } = driver;
    for (let step = 0; !alertsOf(driver).includes('approval_expiring'); step += 1) {
      assert(step < 10, 'no alert');
      driver.step();
    }
    assert.equal(driver.now, now + HOUR_MS - 10 * MINUTE_MS);
    assert.equal(driver.state.phase.kind, 'awaiting_approval');
    assert.deepEqual(decide(driver.state, driver.now), { do: 'wait', until: now + HOUR_MS, person: true });
    assert.equal(driver.decide({ by: BOB }).code, 'approved');
    driver.run();
    assert.deepEqual(ending(driver), ['completed', 'applied', 'committed']);
    assert.deepEqual(alertsOf(driver), ['approval_expiring']);
  });

  test('alerts before each of its terms runs out [S6.5][S4.4]', () => {
    const driver = opened({ ...WARNED, onExpiry: 'escalate', escalateTo: ['cfo'] }, runs).run();
    assert.deepEqual(ending(driver), ['failed', 'none', 'approval_expired']);
    assert.deepEqual(alertsOf(driver), ['approval_expiring', 'approval_expired', 'approval_expiring']);
  });

  test('and whose plan is of a release that knew no warnings has none [S3.3]', () => {
    const driver = opened({}, runs).run();
    assert(!typesOf(driver).includes('approval_expiring'));
  });
});

describe('a business SLA', () => {
  const promised = (overrides = {}) => planOf({ deadlines: { slaMs: MINUTE_MS }, ...overrides });
  const missed = (driver: TaskDriver) => driver.append({ type: 'sla_missed', data: {} });

  test('that is missed alerts once and ends nothing: the task goes on to its end [S5.3]', () => {
    const driver = new TaskDriver(promised(), scripted({ attempt: [released, committed] }));
    assert.equal(slaDueAt(driver.state), driver.now + MINUTE_MS);
    for (let times = 0; times < 2; times += 1) missed(driver);
    assert.equal(slaDueAt(driver.state), null);
    driver.run();
    assert.deepEqual(ending(driver), ['completed', 'applied', 'committed']);
    assert.deepEqual(alertsOf(driver), ['sla_missed']);
  });

  test('is nobody’s once the end is decided, nor without a promise, nor unrecorded [S5.3]', () => {
    const done = new TaskDriver(promised(), scripted(runs)).runTo('finished');
    assert.equal(slaDueAt(done.state), null);
    missed(done);
    assert.deepEqual(done.state.alertsDue, []);
    for (const plan of [planOf(), promised({ recorded: false })])
      assert.equal(slaDueAt(new TaskDriver(plan, scripted(runs)).state), null);
  });

  test('alerted twice, by two steps at once, takes no other alert with it [S6.5]', () => {
    const driver = opened({ ...WARNED }, runs, { deadlines: { slaMs: MINUTE_MS } });
    missed(driver);
    driver.append({ type: 'approval_expiring', data: { callId: 'action#1' } });
    for (let times = 0; times < 2; times += 1)
      driver.append({ type: 'alert_recorded', data: { type: 'sla_missed' } });
    assert.deepEqual(
      driver.state.alertsDue.map(({ type }) => type),
      ['approval_expiring'],
    );
  });
});
