/** S5.3, S6.5: SLA and expiring approvals through workflow `action`, by durable timer, on the time-skipping server. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TaskEvent } from '../../src/task/event.ts';
import { BOB, HOUR_MS, decision, ruleOf } from '../support/approvals.ts';
import { deferred } from '../support/deferred.ts';
import { committed, rateLimited } from '../support/outcomes.ts';
import { planOf } from '../support/plans.ts';
import { away } from '../support/scripted-activities.ts';
import type { ScriptedActivities } from '../support/scripted-activities.ts';
import { WorkflowStage, historyOf, isInPhase, planned, stateWhen } from '../support/workflow-stage.ts';
import type { Played } from '../support/workflow-stage.ts';

let stage: WorkflowStage;
beforeAll(async () => {
  stage = await WorkflowStage.open('time-skipping');
});
afterAll(() => stage.close());

const MINUTE_MS = 60_000;
const SLA = { deadlines: { slaMs: MINUTE_MS } };
const alertsOf = ({ calls }: ScriptedActivities) =>
  calls.flatMap(({ request }) => {
    const { alert } = request as { alert?: { type: string; callId: string | null } };
    return alert ? [[alert.type, alert.callId]] : [];
  });
const typesOf = async ({ handle }: Played) =>
  (await handle.query<TaskEvent[]>('events')).map(({ type }) => type);
const timers = async (played: Played) =>
  (await historyOf(played.handle)).filter((type) => type.startsWith('TIMER_'));

describe('a business SLA', () => {
  test('is alerted the moment it passes, also while an attempt runs, which it leaves alone [S5.3]', async () => {
    const gate = deferred();
    const long = { attemptMs: HOUR_MS, heartbeatMs: HOUR_MS, slaMs: 300 };
    const played = await stage.start(planned({ deadlines: long }), {
      attempt: [() => gate.promise.then(() => committed)],
    });
    await expect.poll(() => alertsOf(played.scripted), { timeout: 20_000 }).toEqual([['sla_missed', null]]);
    await stateWhen(
      played.handle,
      ({ alertsDue, slaMissed }) => alertsDue.length === 0 && slaMissed === true,
    );
    gate.resolve();
    expect((await played.handle.result()).cause).toBe('committed');
    expect(alertsOf(played.scripted)).toHaveLength(1);
    expect(await typesOf(played)).toEqual([
      ...['task_started', 'attempt_scheduled', 'sla_missed', 'alert_recorded'],
      ...['attempt_finished', 'task_ended'],
    ]);
    expect(played.scripted.notes.map(({ type }) => type)).toContain('sla_missed');
  });

  test('is missed while a person is waited for, and the approval stands as it was [S5.3]', async () => {
    const played = await stage.start(planned({ approval: ruleOf(), ...SLA }), { attempt: [committed] });
    await stateWhen(played.handle, isInPhase('awaiting_approval'));
    await stage.server.env.sleep(2 * MINUTE_MS);
    await stateWhen(played.handle, ({ slaMissed }) => slaMissed === true);
    await played.handle.executeUpdate('decide', { args: [decision()] });
    expect((await played.handle.result()).cause).toBe('committed');
    expect(alertsOf(played.scripted)).toEqual([['sla_missed', null]]);
  });

  test('that is kept alerts nobody, and without one no timer is in the history [S5.3]', async () => {
    const kept = await stage.play(planned(SLA), { attempt: [committed] });
    expect(alertsOf(kept.scripted)).toEqual([]);
    expect(await timers(kept)).toEqual(['TIMER_STARTED', 'TIMER_CANCELED']);
    const none = await stage.play(planned(), { attempt: [committed] });
    expect(await timers(none)).toEqual([]);
  });

  test('of a task started bare counts from its start [S5.3]', async () => {
    const bare = { v: 1, action: 'reserve_inventory', input: {}, key: 'k', principal: BOB };
    const plan = { kind: 'planned' as const, plan: planOf(SLA), input: {}, ordinal: 1 };
    const played = await stage.play(bare, { plan: [plan], attempt: [rateLimited(HOUR_MS / 2), committed] });
    expect(alertsOf(played.scripted)).toEqual([['sla_missed', null]]);
    expect(played.outcome.cause).toBe('committed');
  });

  test('is told however long the ledger is away, once [S6.5]', async () => {
    const played = await stage.play(planned(SLA), {
      attempt: [rateLimited(HOUR_MS / 2), committed],
      record: [away, away, () => undefined],
    });
    expect(alertsOf(played.scripted)).toHaveLength(3);
    expect((await typesOf(played)).filter((type) => type === 'alert_recorded')).toHaveLength(1);
  });
});

describe('an approval nobody decides', () => {
  test('alerts before it expires, without leaving the inbox, and expires all the same [S6.5][S4.4]', async () => {
    const approval = ruleOf({ warnBeforeMs: 10 * MINUTE_MS });
    const played = await stage.play(planned({ approval }), { close: [{ kind: 'closed' }] });
    expect(played.outcome.cause).toBe('approval_expired');
    expect(alertsOf(played.scripted)).toEqual([['approval_expiring', 'action#1']]);
    const events = await played.handle.query<TaskEvent[]>('events');
    const at = (type: TaskEvent['type']) => events.find((event) => event.type === type)?.at ?? 0;
    const aheadMs = at('approval_expired') - at('approval_expiring');
    expect(aheadMs).toBeGreaterThan(9 * MINUTE_MS);
    const upserts = (await historyOf(played.handle)).filter((type) => type.startsWith('UPSERT_'));
    expect(upserts).toHaveLength(2);
  });
});
