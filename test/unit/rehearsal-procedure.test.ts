/** What a procedure's rehearsal plays and how it judges (S6.3): pure, without a server. */
import { describe, expect, test } from 'vitest';
import { END } from '../../src/testing/rehearsal/endings.ts';
import { courseOf, orderBroken } from '../../src/testing/rehearsal/procedure/course.ts';
import { brokenByProcedure } from '../../src/testing/rehearsal/procedure/laws.ts';
import type { ProcedureEvidence } from '../../src/testing/rehearsal/procedure/laws.ts';
import type { KnownStep } from '../../src/testing/rehearsal/procedure/procedure-scenario.ts';
import { scenariosOf } from '../../src/testing/rehearsal/procedure/step-scenarios.ts';
import type { StepReport } from '../../src/testing/rehearsal/report.ts';
import type { Terms } from '../../src/testing/rehearsal/terms.ts';

const terms: Terms = {
  effect: 'conditional',
  lookup: 'plain',
  noVerify: null,
  noRollback: null,
  hasVerifyRollback: true,
  hasPrecondition: true,
  onCancel: 'keep',
  cancelAttempt: 'finish',
  approval: null,
  edited: null,
  transactional: false,
  retries: 3,
};
const funds: KnownStep = { step: 'funds', action: 'reserve_funds', after: [], terms };
const slot: KnownStep = { step: 'slot', action: 'reserve_slot', after: ['funds'], terms };
const carrier: KnownStep = { step: 'carrier', action: 'book_carrier', after: ['funds', 'slot'], terms };

const step = (name: string, change: Partial<StepReport> = {}): StepReport => ({
  step: name,
  action: name,
  operationId: `op_${name}`,
  said: 'applied',
  effects: 1,
  undone: 0,
  calls: {},
  ...change,
});
const undoneStep = (name: string): StepReport => step(name, { said: 'rolled_back', undone: 1 });

const completed: ProcedureEvidence = {
  end: END.completed,
  allowed: [END.completed],
  steps: [step('funds'), step('slot')],
  committed: ['funds', 'slot'],
  undone: [],
  alerts: [],
  auditBreak: null,
  objections: [],
};
const rolledBack: ProcedureEvidence = {
  ...completed,
  end: END.undone,
  allowed: [END.undone],
  steps: [undoneStep('funds'), undoneStep('slot'), step('carrier', { said: 'none', effects: 0 })],
  undone: ['slot', 'funds'],
};

describe('the course of a procedure', () => {
  test('[S6.3] is read from its journal: what began after what, and what can be undone', () => {
    const opened = (seq: number, name: string) => ({
      type: 'step_opened',
      seq,
      data: { step: name, action: 'a' },
    });
    const closed = (seq: number, name: string, undo: boolean) => ({
      type: 'step_closed',
      seq,
      data: { step: name, undo },
    });
    const events = [
      { type: 'procedure_started', seq: 1, data: {} },
      opened(2, 'x'),
      opened(3, 'y'),
      closed(4, 'y', true),
      opened(5, 'z'),
      closed(6, 'x', false),
      closed(7, 'z', true),
    ];
    expect(courseOf(events)).toEqual({
      steps: [
        { step: 'x', action: 'a', after: [] },
        { step: 'y', action: 'a', after: [] },
        { step: 'z', action: 'a', after: ['y'] },
      ],
      committed: ['y', 'z'],
    });
  });

  test('[S6.3] newest first, and only what was undone counts', () => {
    expect(orderBroken(['a', 'b', 'c'], ['c', 'b', 'a'])).toBeNull();
    expect(orderBroken(['a', 'b', 'c'], ['b', 'never-committed', 'a'])).toBeNull();
    expect(orderBroken(['a', 'b'], ['a', 'b'])).toBe('undone in the order a, b; the promise is b, a');
  });
});

describe('verdicts on a procedure', () => {
  test.each([
    ['every step stands once', completed],
    ['nothing stands', rolledBack],
    [
      'an undone step without a count of undoing',
      { ...rolledBack, steps: [step('funds', { said: 'rolled_back', effects: 0, undone: null })] },
    ],
    [
      'a person is asked, alerted',
      { ...completed, end: END.person, allowed: [END.person], alerts: ['rollback_failed'] },
    ],
  ])('[S6.3] %s: kept', (_name, evidence) => {
    expect(brokenByProcedure(evidence)).toEqual([]);
  });

  test.each<[string, Partial<ProcedureEvidence>, string]>([
    [
      'a step took place twice',
      { steps: [step('funds', { effects: 2 })] },
      'step funds: the target counts 2 effects',
    ],
    ['undone twice', { steps: [step('funds', { undone: 2 })] }, 'step funds: undone 2 times'],
    ['completed over nothing', { steps: [step('slot', { effects: 0 })] }, 'step slot: reported as applied'],
    [
      'refused, and counted',
      { steps: [step('slot', { said: 'none' })] },
      'step slot: reported as not applied',
    ],
    ['never begun, and counted', { steps: [step('slot', { said: null })] }, 'step slot: never begun'],
    ['something stands', { ...rolledBack, steps: [step('funds')] }, 'step funds: to be undone'],
    ['in the wrong order', { ...rolledBack, undone: ['funds', 'slot'] }, 'undone in the order funds, slot'],
    ['an end nobody allows', { end: END.refused, steps: [] }, 'ended "failed, nothing applied"'],
    ['a person and no alert', { end: END.person, allowed: [END.person] }, 'no alert was raised'],
    ['a broken audit', { auditBreak: 'entry 2: gone' }, 'the audit is broken: entry 2: gone'],
  ])('[S6.3] %s: broken, in words', (_name, change, words) => {
    expect(brokenByProcedure({ ...completed, ...change }).join('; ')).toContain(words);
  });
});

describe('what is played', () => {
  const allowedIn = (steps: readonly KnownStep[], name: string): readonly string[] =>
    scenariosOf(steps).find((scenario) => scenario.name === name)?.allowed ?? [];

  test('[S6.3] at each step a crash at each point, each failure, cancels and an interrupt, under names of their own', () => {
    const all = scenariosOf([funds, slot, carrier]);
    expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
    for (const { step: name } of [funds, slot, carrier]) {
      const groups = all
        .filter((scenario) => scenario.name.startsWith(`${name}: `))
        .map(({ group }) => group);
      expect(groups).toEqual(expect.arrayContaining(['crash', 'failure', 'cancel', 'interrupt']));
    }
    expect(all.filter(({ group }) => group === 'rollback').map(({ name }) => name.split(':')[0])).toEqual([
      ...Array<string>(3).fill('funds'),
      ...Array<string>(3).fill('slot'),
    ]);
  });

  test('[S6.6] a cancel and an interrupt come at each phase of a step', () => {
    const stopsOf = (step: KnownStep, group: string) =>
      scenariosOf([step, carrier])
        .filter((each) => each.group === group && each.name.startsWith(`${step.step}: `))
        .map(({ name }) => name.replace(/^.*(cancelled|interrupted) /, ''));
    const phases = ['during the call', 'while it is verified', 'before its retry'];
    expect(stopsOf(funds, 'cancel')).toEqual([...phases, 'after the commit', 'while it is undone']);
    expect(stopsOf(funds, 'interrupt')).toEqual([...phases, 'while it is undone']);
    const once: KnownStep = { ...funds, terms: { ...terms, retries: 0, noVerify: 'no', noRollback: 'no' } };
    expect(stopsOf(once, 'interrupt')).toEqual(['during the call']);
    const inOne: KnownStep = { ...funds, terms: { ...terms, transactional: true } };
    expect(stopsOf(inOne, 'cancel')).toEqual(['after the commit', 'while it is undone']);
  });

  test('[S6.3] a failure after a step that can’t be undone is a person’s; before any effect, nothing is left', () => {
    const final: KnownStep = { ...slot, terms: { ...terms, noRollback: 'sent is sent' } };
    expect(allowedIn([funds, slot, carrier], 'carrier: refused for good')).toContain(END.undone);
    expect(allowedIn([funds, final, carrier], 'carrier: refused for good')).toContain(END.person);
    expect(allowedIn([funds, slot], 'funds: refused for good')).toContain(END.refused);
    const read: KnownStep = { ...funds, terms: { ...terms, effect: 'safe' } };
    expect(allowedIn([read, slot], 'slot: refused for good')).toContain(END.refused);
    expect(allowedIn([read, slot], 'funds: cancelled during the call')).toEqual([END.cancelled]);
  });

  test('[S6.3] what runs beside a step may stand when that is cancelled over', () => {
    const beside: KnownStep = { ...slot, after: [] };
    expect(allowedIn([funds, beside], 'slot: cancelled after the commit')).toEqual([END.cancelledAndUndone]);
  });
});
