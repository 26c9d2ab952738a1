/** S4.5, S4.6, S6.4: from a contract's policy and a call's arguments to who is asked, and what an edit makes of that. */
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { approvalFor, asksForMore } from '../../src/contract/approval-policy.ts';
import { defineAction } from '../../src/contract/define-action.ts';
import type { ActionDefinition, ApprovalRule } from '../../src/contract/define-action.ts';
import { HoldfastError } from '../../src/contract/error.ts';
import { sensitive } from '../../src/contract/sensitive.ts';
import { shownArguments } from '../../src/contract/shown-arguments.ts';
import type { JsonObject } from '../../src/task/json.ts';
import { HOUR_MS, ruleOf } from '../support/approvals.ts';

type Definition = Partial<ActionDefinition<z.ZodObject, z.ZodType>>;

const contractOf = (overrides: Definition = {}) =>
  defineAction({
    name: 'wire',
    version: 1,
    description: 'Moves money for good.',
    effect: 'conditional',
    input: z.object({ to: z.string(), amount: z.number() }).loose(),
    output: z.object({}),
    rollback: { kind: 'inBand' },
    verify: { none: 'the bank says so' },
    ...overrides,
  });
const CALL = { to: 'bob', amount: 100 };
const ruled = (rule: unknown, overrides: Definition = {}) =>
  approvalFor(contractOf({ approval: () => rule as ApprovalRule, ...overrides }), CALL);
const irreversible = { rollback: { kind: 'none', reason: 'sent is sent' } } as const;
const phraseOf = (input: JsonObject, overrides: Definition = {}) =>
  approvalFor(contractOf({ ...irreversible, ...overrides }), input)?.challenge;

function defect(make: () => unknown): string {
  try {
    make();
  } catch (error) {
    expect(error).toBeInstanceOf(HoldfastError);
    expect((error as HoldfastError).code).toBe('invalid_contract');
    return (error as HoldfastError).message;
  }
  throw new Error('it was taken');
}

describe('a rule', () => {
  test('that answers nothing asks nobody; one that answers an object asks with the defaults [S4.5]', () => {
    for (const nothing of [false, undefined, null, 0, '']) expect(ruled(nothing)).toBeNull();
    expect(approvalFor(contractOf(), CALL)).toBeNull();
    expect(ruled({})).toEqual(ruleOf({ expiresInMs: 86_400_000, warnBeforeMs: HOUR_MS }));
  });

  test('has people alerted before it expires: an hour, a quarter of a shorter term, or as it says [S6.5]', () => {
    const warned = (rule: ApprovalRule) => ruled(rule)?.warnBeforeMs;
    expect(warned({ expiresIn: '7d' })).toBe(HOUR_MS);
    expect(warned({ expiresIn: '2h' })).toBe(HOUR_MS / 2);
    expect(warned({ expiresIn: '59m' })).toBe(0);
    expect(warned({ expiresIn: '7d', onExpiry: 'remind' })).toBe(0);
    expect(warned({ expiresIn: '10s', warnBefore: '2s' })).toBe(2_000);
    expect(warned({ expiresIn: '7d', warnBefore: 0 })).toBe(0);
    for (const warnBefore of ['24h', '-1s', 'soon'] as never[])
      expect(defect(() => ruled({ warnBefore }))).toContain('warnBefore');
  });

  test('is frozen as it is for these arguments [S4.5]', () => {
    const contract = contractOf({
      approval: ({ amount }) => Number(amount) > 10 && { roles: ['chief'], quorum: 2 },
    });
    expect(approvalFor(contract, { to: 'bob', amount: 10 })).toBeNull();
    expect(approvalFor(contract, { to: 'bob', amount: 11 })).toMatchObject({ roles: ['chief'], quorum: 2 });
  });

  test('can neither change the call nor be changed later by what it keeps [S4.1]', () => {
    const roles = ['chief'];
    const contract = contractOf({
      approval: (input) => {
        input['amount'] = 0;
        return { roles };
      },
    });
    const input = { ...CALL };
    const frozen = approvalFor(contract, input);
    roles.push('anybody');
    expect([input, frozen?.roles]).toEqual([CALL, ['chief']]);
  });

  test('that throws, promises or answers nonsense permits nothing: it fails closed [S4.5]', () => {
    const broken = contractOf({ approval: () => { throw new Error('policy server away'); } }); // prettier-ignore
    expect(defect(() => approvalFor(broken, CALL))).toContain('The approval rule of wire threw');
    const nonsense: unknown[] = [
      ...[true, 'yes', 7, [], Promise.resolve(false), { then: () => false }],
      ...[{ role: 'chief' }, { roles: 'chief' }, { roles: [7] }, { roles: [''] }],
      ...[{ quorum: 0 }, { quorum: 1.5 }, { quorum: 11 }, { quorum: '2' }],
      ...[{ expiresIn: 'soon' }, { expiresIn: 0 }, { expiresIn: '366d' }],
      ...[{ onExpiry: 'approve' }, { onExpiry: 'escalate' }, { onExpiry: 'escalate', escalateTo: [] }],
      ...[
        { challenge: '' },
        { challenge: ' ' },
        { challenge: 7 },
        { challenge: null },
        { challenge: 'x'.repeat(401) },
      ],
    ];
    for (const rule of nonsense)
      expect(
        defect(() => ruled(rule)),
        JSON.stringify(rule),
      ).toMatch(/approval rule of wire/);
  });

  test('says yes to the requester or the asking connection only with true itself [S4.5][S4.6]', () => {
    expect(ruled({ requesterMayDecide: 'no', mayAnswerOverMcp: 1 })).toMatchObject({
      requesterMayDecide: false,
      mayAnswerOverMcp: false,
    });
    expect(ruled({ requesterMayDecide: true, mayAnswerOverMcp: true })).toMatchObject({
      requesterMayDecide: true,
      mayAnswerOverMcp: true,
    });
  });
});

describe('an action that can not be undone', () => {
  test('always needs an approval with a phrase made from the call’s own facts [S4.6][S6.4]', () => {
    expect(approvalFor(contractOf(irreversible), CALL)).toEqual(
      ruleOf({ expiresInMs: 86_400_000, warnBeforeMs: HOUR_MS, challenge: 'wire bob 100' }),
    );
    expect(ruled(false, irreversible)?.challenge).toBe('wire bob 100');
    expect(ruled({ roles: ['cfo'] }, irreversible)).toMatchObject({
      roles: ['cfo'],
      challenge: 'wire bob 100',
    });
  });

  test('is never decided over the connection that asked, whatever the rule says [S4.6]', () => {
    expect(ruled({ mayAnswerOverMcp: true }, irreversible)?.mayAnswerOverMcp).toBe(false);
    expect(ruled({ mayAnswerOverMcp: true, challenge: 'I mean it' })?.mayAnswerOverMcp).toBe(false);
  });

  test('may have a phrase of its own; a safe one has none [S4.6]', () => {
    expect(ruled({ challenge: ' pay\tbob ' }, irreversible)?.challenge).toBe('pay bob');
    const read = contractOf({ effect: 'safe', rollback: { kind: 'none' } });
    expect(approvalFor(read, CALL)).toBeNull();
  });

  test('has a phrase that people can type: one line, short, with an amount in it [S4.6]', () => {
    expect(phraseOf({ to: 'bob\n  smith\u0000', amount: 0.5 })).toBe('wire bob smith 0.5');
    expect(phraseOf({ a: 'a', b: 'b', c: 'c', d: 'd', to: 'e', amount: 7 })).toBe('wire a b c 7');
    expect(phraseOf({ lines: [{ to: 'x', amount: 1 }], note: '', urgent: true, amount: 5, to: 'y' })).toBe(
      'wire x 1 5',
    );
    const long = phraseOf({ to: '😀'.repeat(100), amount: 1 });
    expect(long).toBe(`wire ${'😀'.repeat(60)} 1`);
    expect(phraseOf({ to: '', amount: 1 })).toBe('wire 1');
  });

  test('shows no sensitive field in its phrase [S2.10]', () => {
    const input = z.object({ card: sensitive(z.string()), to: z.string(), amount: z.number() });
    expect(phraseOf({ card: '4111', to: 'bob', amount: 3 }, { input })).toBe('wire bob 3');
  });
});

describe('an edit', () => {
  test('that policy lets through, or asks of exactly the same one person, needs no more [S4.2]', () => {
    expect(asksForMore(ruleOf(), null)).toBe(false);
    expect(asksForMore(ruleOf({ roles: ['chief'] }), ruleOf({ roles: ['chief'] }))).toBe(false);
  });

  test('needs an approval of its own for anything else [S4.2][case 21]', () => {
    expect(asksForMore(null, ruleOf())).toBe(true);
    for (const after of [
      { roles: ['cfo'] },
      { quorum: 2 },
      { challenge: 'wire bob 1' },
      { mayAnswerOverMcp: true },
      { expiresInMs: 1 },
      { onExpiry: 'halt' as const },
    ])
      expect(asksForMore(ruleOf(), ruleOf(after)), JSON.stringify(after)).toBe(true);
    for (const same of [{ quorum: 2 }, { challenge: 'wire bob 1' }])
      expect(asksForMore(ruleOf(same), ruleOf(same)), JSON.stringify(same)).toBe(true);
  });
});

describe('the arguments that an approver sees', () => {
  test('are whole and redacted [S4.7][S2.10]', () => {
    expect(shownArguments({ to: 'bob', card: '4111' }, ['/card'])).toEqual({
      arguments: { to: 'bob', card: '[redacted]' },
    });
  });

  test('are shortened where they are too long to be carried about, and say so [S4.7][case 14]', () => {
    const long = { to: 'bob', text: 'x'.repeat(1_000_000), list: Array.from({ length: 1_000 }, () => 1) };
    const shown = shownArguments(long, []);
    expect(shown).toMatchObject({ shortened: true, arguments: { to: 'bob' } });
    expect(JSON.stringify(shown).length).toBeLessThan(1_000);
    expect(JSON.stringify(shown)).toContain('980 more');
    const branch = (depth: number): JsonObject =>
      Object.fromEntries(
        Array.from({ length: 20 }, (_, index) => [
          `${index}`,
          depth === 0 ? 'y'.repeat(50) : branch(depth - 1),
        ]),
      );
    expect(shownArguments(branch(2), [])).toEqual({ arguments: null, shortened: true });
  });
});
