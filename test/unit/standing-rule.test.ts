// Standing rules as data (S4.5): what is one, and which calls it lets through.
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAction } from '../../src/contract/define-action.ts';
import { LIMITS } from '../../src/contract/limits.ts';
import { checkCoverage, checkTerm, rulesFor } from '../../src/contract/standing-rule.ts';
import type { Comparison, Coverage, StandingRule } from '../../src/contract/standing-rule.ts';
import { sensitive } from '../../src/contract/sensitive.ts';
import { ANN, BOB, CAT, DAN, ruleOf } from '../support/approvals.ts';
import { planOf } from '../support/plans.ts';

const contract = defineAction({
  name: 'pay',
  version: 1,
  description: 'Pays.',
  effect: 'conditional',
  input: z.object({ to: z.string(), amount: z.number(), pin: sensitive(z.string()).optional() }),
  output: z.object({}),
  rollback: { kind: 'outOfBand' },
  verify: { none: 'a test' },
});

const plan = planOf({ principal: ANN });
const input = { to: 'zoe', amount: 5, tags: ['a', 'b'], deep: { 'a/b': { '~': true } }, gone: null };
const matching = (...when: [Comparison, ...Comparison[]]): Coverage => ({ kind: 'matching', when });
const UP_TO_10 = matching({ at: '/amount', is: '<=', value: 10 });

function rule(overrides: Partial<StandingRule> = {}): StandingRule {
  const { action, contractVersion } = plan;
  return {
    ...{ id: 'rule_1', tenant: 'local', action, contractVersion, covers: UP_TO_10, by: BOB },
    ...{ reason: null, taskId: null, madeAt: 1, expiresAt: 2, revoked: null },
    ...overrides,
  };
}

const used = (rules: StandingRule[], approval = {}, args: object = input) =>
  rulesFor(plan, ruleOf(approval), args as never, rules)?.map(({ id }) => id) ?? null;
const covers = (...when: [Comparison, ...Comparison[]]) =>
  used([rule({ covers: matching(...when) })]) !== null;

describe('an approval under a standing rule', () => {
  test('is not asked for what the predicate matches, and is for what it does not [S4.5][case 25]', () => {
    expect(used([rule()])).toEqual(['rule_1']);
    expect(used([rule()], {}, { ...input, amount: 5_000 })).toBeNull();
    expect(used([rule()], {}, { to: 'zoe' })).toBeNull();
    expect(used([rule()], {}, { ...input, amount: '5' })).toBeNull();
  });

  test('of exactly one call covers the same arguments alone [S4.5]', () => {
    const { input: fingerprint } = plan.fingerprint;
    expect(used([rule({ covers: { kind: 'call', fingerprint } })])).toEqual(['rule_1']);
    expect(used([rule({ covers: { kind: 'call', fingerprint: 'f'.repeat(64) } })])).toBeNull();
  });

  test('is another tenant’s, action’s or contract version’s: it covers nothing here [S4.5]', () => {
    expect(used([rule({ tenant: 'other' })])).toBeNull();
    expect(used([rule({ action: 'other' })])).toBeNull();
    expect(used([rule({ contractVersion: plan.contractVersion + 1 })])).toBeNull();
  });

  test('counts only as the word of someone who may approve the call, never of its requester [S4.5]', () => {
    expect(used([rule({ by: ANN })])).toBeNull();
    expect(used([rule({ by: ANN })], { requesterMayDecide: true })).toEqual(['rule_1']);
    expect(used([rule({ by: DAN })], { roles: ['chief'] })).toBeNull();
    expect(used([rule({ by: BOB })], { roles: ['cfo', 'chief'] })).toEqual(['rule_1']);
  });

  test('that needs several approvers needs as many people’s rules [S4.5]', () => {
    const mine = [rule(), rule({ id: 'rule_2' })];
    expect(used(mine, { quorum: 2 })).toBeNull();
    const narrow = rule({ id: 'rule_3', by: CAT, covers: matching({ at: '/to', is: '=', value: 'eve' }) });
    expect(used([...mine, narrow], { quorum: 2 })).toBeNull();
    expect(used([...mine, narrow, rule({ id: 'rule_4', by: CAT })], { quorum: 2 })).toEqual([
      'rule_1',
      'rule_4',
    ]);
  });

  test('with a challenge is answered by no rule [S4.5][S4.6]', () => {
    expect(used([rule()], { challenge: 'pay zoe 5' })).toBeNull();
  });
});

describe('a comparison', () => {
  test.each<[Comparison, boolean]>([
    [{ at: '/to', is: '=', value: 'zoe' }, true],
    [{ at: '/to', is: '=', value: 'Zoe' }, false],
    [{ at: '/to', is: 'in', values: ['eve', 'zoe'] }, true],
    [{ at: '/to', is: 'in', values: ['eve'] }, false],
    [{ at: '/amount', is: '<', value: 5 }, false],
    [{ at: '/amount', is: '<', value: 5.5 }, true],
    [{ at: '/amount', is: '>', value: 5 }, false],
    [{ at: '/amount', is: '>=', value: 5 }, true],
    [{ at: '/amount', is: '=', value: '5' }, false],
    [{ at: '/tags/1', is: '=', value: 'b' }, true],
    [{ at: '/tags/01', is: '=', value: 'b' }, false],
    [{ at: '/tags/length', is: '=', value: 2 }, false],
    [{ at: '/deep/a~1b/~0', is: '=', value: true }, true],
    [{ at: '/gone', is: '=', value: null }, true],
    [{ at: '/absent', is: '=', value: null }, false],
    [{ at: '/to/0', is: '=', value: 'z' }, false],
    [{ at: '/constructor/name', is: '=', value: 'Object' }, false],
  ])('%j holds: %s [S4.5]', (comparison, expected) => {
    expect(covers(comparison)).toBe(expected);
  });

  test('is one of several that must all hold [S4.5]', () => {
    const small: Comparison = { at: '/amount', is: '<=', value: 10 };
    expect(covers(small, { at: '/to', is: '=', value: 'zoe' })).toBe(true);
    expect(covers(small, { at: '/to', is: '=', value: 'eve' })).toBe(false);
  });
});

describe('what is no rule', () => {
  const one = { at: '/amount', is: '<=', value: 1 };
  test.each<[unknown]>([
    [null],
    [{ kind: 'anything' }],
    [{ kind: 'call', fingerprint: 'short' }],
    [{ kind: 'matching', when: [] }],
    [{ kind: 'matching', when: Array.from({ length: LIMITS.comparisonsMax.value + 1 }, () => one) }],
    [{ kind: 'matching', when: [{ ...one, at: 'amount' }] }],
    [{ kind: 'matching', when: [{ ...one, at: '' }] }],
    [{ kind: 'matching', when: [{ ...one, at: '/a~2' }] }],
    [{ kind: 'matching', when: [{ ...one, is: '!=' }] }],
    [{ kind: 'matching', when: [{ ...one, value: '1' }] }],
    [{ kind: 'matching', when: [{ ...one, value: Infinity }] }],
    [{ kind: 'matching', when: [{ ...one, code: 'x => true' }] }],
    [{ kind: 'matching', when: [{ at: '/to', is: '=', value: { any: 'object' } }] }],
    [{ kind: 'matching', when: [{ at: '/to', is: '=', value: 'x'.repeat(256) }] }],
    [{ kind: 'matching', when: [{ at: '/to', is: 'in', values: [] }] }],
    [{ kind: 'matching', when: [{ at: '/to', is: 'in', values: Array.from({ length: 33 }, String) }] }],
  ])('%j is refused [S4.5]', (given) => {
    expect(() => checkCoverage(contract, given)).toThrow(
      expect.objectContaining({ code: 'invalid_standing_rule' }),
    );
  });

  test('is one about a sensitive field, whose value it would keep [S4.5][S2.10]', () => {
    const about = { kind: 'matching', when: [{ at: '/pin', is: '=', value: '1234' }] };
    expect(() => checkCoverage(contract, about)).toThrow(/\/pin is a sensitive field/);
  });

  test.each<[unknown, number | null]>([
    [undefined, 30 * 86_400_000],
    ['12h', 12 * 3_600_000],
    ['365d', 365 * 86_400_000],
    ['366d', null],
    ['0s', null],
    ['for ever', null],
  ])('a term of %s stands for %s ms [S4.5]', (term, expected) => {
    if (expected === null) expect(() => checkTerm(term)).toThrow(/no rule stands for ever/);
    else expect(checkTerm(term)).toBe(expected);
  });

  test('a predicate is kept as it was given, and nothing else of it [S4.5]', () => {
    const given = JSON.parse(
      '{"kind":"matching","when":[{"at":"/to","is":"in","values":["a",1,null,true]}],"code":1}',
    ) as unknown;
    expect(checkCoverage(contract, given)).toEqual({
      kind: 'matching',
      when: [{ at: '/to', is: 'in', values: ['a', 1, null, true] }],
    });
  });
});
