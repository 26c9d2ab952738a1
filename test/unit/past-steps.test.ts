// S4.3, S5.3: what a procedure keeps of steps that are left behind.
import { describe, expect, it } from 'vitest';
import { judgePast, withPast } from '../../src/task/past-steps.ts';
import { reduceProcedure } from '../../src/task/procedure-state.ts';
import type { ProcedureState } from '../../src/task/procedure-state.ts';
import type { TaskState } from '../../src/task/state.ts';
import { BOB, CLOSED, decision, opened } from '../support/approvals.ts';
import { committed } from '../support/outcomes.ts';
import { planOf } from '../support/plans.ts';
import type { TaskDriver } from '../support/task-driver.ts';

const procedure = (): ProcedureState =>
  reduceProcedure(null, {
    ...{ v: 1, seq: 1, at: 0, type: 'procedure_started' },
    data: { taskId: 't', procedure: 'trip', ordinal: 1, plan: planOf() },
  });
/** A task's state, as if it had been a step of that name. */
const step = (name: string, { state }: TaskDriver): TaskState => ({
  ...state,
  stepId: name,
  decided: state.decided && { ...state.decided, callId: `${name}#1` },
});
const runs = { attempt: [committed], close: [CLOSED] };

function approved(decisionId = 'click', waitMs = 1_000): TaskDriver {
  const driver = opened({}, runs);
  driver.moveTo(driver.now + waitMs);
  driver.decide({ decisionId });
  return driver.run();
}

const asked = (state: ProcedureState, callId: string, decisionId?: string) =>
  judgePast(state, decision({ callId, ...(decisionId !== undefined && { decisionId }) }));

describe('of steps that are left behind', () => {
  it('people’s time adds up, over every boundary [S5.3]', () => {
    const once = withPast(procedure(), [step('a', approved()), step('b', approved('tap', 500))]);
    const twice = withPast(once, [step('c', approved('click', 20))]);
    expect(twice.past?.humanWaitMs).toBe(1_520);
    expect(withPast(twice, [])).toBe(twice);
  });

  it('a decision that was taken is answered as it was, about its own step alone [S4.3]', () => {
    const state = withPast(procedure(), [step('a', approved()), step('b', approved('tap'))]);
    expect(asked(state, 'a#1', 'click')).toMatchObject({
      isFirst: true,
      reply: { accepted: true, code: 'approved' },
    });
    expect(asked(state, 'b#1', 'click')).toMatchObject({
      isFirst: false,
      reply: { accepted: false, code: 'already_decided' },
    });
  });

  it('a late one is told why: decided, expired; and of what never opened nothing is known [S4.3]', () => {
    const expired = opened({}, runs).run();
    const state = withPast(procedure(), [step('a#2', approved()), step('b', expired)]);
    expect(asked(state, 'a#2#1')?.reply.code).toBe('already_decided');
    expect(asked(state, 'b#1')?.reply.code).toBe('approval_expired');
    for (const callId of ['a#2#2', 'a#1', 'b', 'c#1']) expect(asked(state, callId)).toBe(null);
    const foreign = { ...BOB, tenant: 'other' };
    expect(judgePast(state, decision({ callId: 'b#1', by: foreign }))).toBe(null);
  });

  it('the newest 200 are kept [S4.3]', () => {
    const one = approved();
    const left = Array.from({ length: 250 }, (_, index) => step(`s${index}`, one));
    const { past } = withPast(procedure(), left);
    expect([past?.answers.length, past?.closed.length]).toEqual([200, 200]);
    expect(past?.answers[0]?.step).toBe('s50');
    expect(past?.closed[0]?.callId).toBe('s50#1');
  });
});
