// S4.3: which decisions are held for steps that a procedure has not begun.
import { describe, expect, it } from 'vitest';
import type { DecisionMessage } from '../../src/task/approval.ts';
import { judgeEarlyDecision } from '../../src/task/early-decision.ts';
import type { NewProcedureEvent } from '../../src/task/procedure-event.ts';
import { heldFor, reduceProcedure } from '../../src/task/procedure-state.ts';
import type { ProcedureState } from '../../src/task/procedure-state.ts';
import { planOf } from '../support/plans.ts';

const BY = { tenant: 'local', subject: 'bea', roles: ['boss'] };
const about = (callId: string, more: Partial<DecisionMessage> = {}): DecisionMessage => ({
  kind: 'reject',
  callId,
  by: BY,
  ...more,
});

function after(...events: NewProcedureEvent[]): ProcedureState {
  const started: NewProcedureEvent = {
    type: 'procedure_started',
    data: { taskId: 't', procedure: 'trip', ordinal: 1, plan: planOf() },
  };
  const all = [started, ...events].map((event, index) => ({
    v: 1 as const,
    seq: index + 1,
    at: index,
    ...event,
  }));
  const state = all.reduce<ProcedureState | null>((before, event) => reduceProcedure(before, event), null);
  if (state === null) throw new Error('no events');
  return state;
}
const opened = (step: string): NewProcedureEvent => ({
  type: 'step_opened',
  data: { step, action: 'book', fingerprint: '' },
});
const held = (decision: DecisionMessage): NewProcedureEvent => ({
  type: 'decision_held',
  data: { decision },
});
const codeOf = (state: ProcedureState, decision: DecisionMessage): string | null =>
  judgeEarlyDecision(state, decision)?.reply.code ?? null;

describe('a stepId that every object has a member of', () => {
  it.each(['constructor', 'toString', '__proto__'])('%s is counted like any other [S1.2]', (name) => {
    const { uses } = after(opened(name), opened(`${name}#2`));
    expect(Object.entries(uses)).toEqual([[name, 2]]);
    expect(Object.entries(JSON.parse(JSON.stringify(uses)) as object)).toEqual([[name, 2]]);
  });
});

describe('a decision about a step that has not begun [S4.3]', () => {
  it.each(['hotel#1', 'hotel#2#1', 'part/hotel#1', 'part#2/hotel#3#1', '__proto__#1', 'constructor#1'])(
    '%s may still be asked about: held',
    (callId) => {
      expect(judgeEarlyDecision(after(opened('flight')), about(callId))).toMatchObject({
        isHeld: true,
        reply: { accepted: true, code: 'held' },
      });
    },
  );

  it.each([
    'hotel',
    'hotel#0',
    'hotel#2',
    'hotel#01',
    'ho tel#1',
    '#1',
    '/hotel#1',
    'part//hotel#1',
    `${'x'.repeat(151)}#1`,
  ])('%s is no approval that can come: not held', (callId) => {
    expect(judgeEarlyDecision(after(), about(callId))).toBeNull();
  });

  it('one about a use of a step that was begun before is not held, about its next use it is', () => {
    const state = after(opened('hotel'), opened('hotel#2'));
    expect(['hotel#1', 'hotel#2#1', 'hotel#3#1'].map((callId) => codeOf(state, about(callId)))).toEqual([
      null,
      null,
      'held',
    ]);
  });

  it('somebody of another tenant decides nothing', () => {
    expect(judgeEarlyDecision(after(), about('hotel#1', { by: { ...BY, tenant: 'other' } }))).toBeNull();
  });

  it('none is held once the procedure goes no further', () => {
    const cancelled = after({ type: 'cancel_requested', data: { by: 'ann' } });
    const returned = after({ type: 'procedure_returned', data: { result: null } });
    expect([cancelled, returned].map((state) => codeOf(state, about('hotel#1')))).toEqual([
      'already_ended',
      'already_ended',
    ]);
  });

  it('what is held takes a bounded room, by number and by size', () => {
    const fifty = Array.from({ length: 50 }, (_, n) => held(about(`room-${n}#1`, { decisionId: `d${n}` })));
    expect(codeOf(after(...fifty), about('hotel#1'))).toBe('not_open');
    expect(codeOf(after(...fifty), about('room-7#1', { decisionId: 'd7' }))).toBe('held');
    const long = Array.from({ length: 8 }, (_, n) =>
      held(about(`room-${n}#1`, { reason: 'r'.repeat(9_000) })),
    );
    expect(codeOf(after(...long), about('hotel#1'))).toBe('not_open');
  });

  it('is handed to its step, and to no other, when that begins', () => {
    const decisions = [about('hotel#1'), about('car#1'), about('hotel#2#1')];
    const state = after(...decisions.map(held));
    expect(heldFor(state, 'hotel')).toEqual([decisions[0]]);
    const begun = after(...decisions.map(held), opened('hotel'));
    expect(begun.heldDecisions).toEqual([decisions[1], decisions[2]]);
  });
});
