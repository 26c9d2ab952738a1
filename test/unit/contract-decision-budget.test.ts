// S3.7: what a contract says about asking for a decision, and what that comes to for one call.
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { decisionBudget } from '../../src/contract/decision-budget.ts';
import { defineAction } from '../../src/contract/define-action.ts';
import type { DecisionDefinition } from '../../src/contract/define-action.ts';

const asking = (decision?: DecisionDefinition<{ words: number }>) =>
  defineAction({
    name: 'ask_model',
    version: 1,
    description: 'Asks a model.',
    input: z.object({ words: z.number() }),
    output: z.object({ answer: z.string() }),
    effect: 'safe',
    ...(decision && { decision }),
  });
const budget = (decision: DecisionDefinition<{ words: number }> | undefined, words = 100) =>
  decisionBudget(asking(decision), { words });

describe('the budget of a decision [S3.7]', () => {
  it('is six asks, a second apart, where its contract says nothing', () => {
    expect(budget(undefined)).toEqual({ asksMax: 6, intervalMs: 1_000 });
  });

  it('is what its contract says', () => {
    expect(budget({ asksMax: 3, interval: '2m' })).toEqual({ asksMax: 3, intervalMs: 120_000 });
  });

  it.each([
    [100, 5],
    [500, 1],
    [501, 0],
    [0, 6],
    [1, 6],
  ])('bounds the asks by what each costs: of %i words, %i asks', (words, asksMax) => {
    const decision = { interval: 0, costMax: 500, costOf: (input: { words: number }) => input.words };
    expect(budget(decision, words)).toEqual({ asksMax, intervalMs: 0 });
  });

  it.each<[string, () => unknown]>([
    ['throws', () => assertNever()],
    ['answers nothing', () => undefined],
    ['answers a promise', () => Promise.resolve(1)],
    ['answers no number', () => Number.NaN],
    ['answers less than nothing', () => -1],
  ])('permits no ask where costOf %s', (_what, costOf) => {
    expect(() => budget({ costMax: 500, costOf: costOf as () => number })).toThrow(
      expect.objectContaining({ code: 'invalid_contract' }),
    );
  });

  it.each<[string, DecisionDefinition<{ words: number }>, string]>([
    ['no ask', { asksMax: 0 }, 'decision.asksMax'],
    ['too many asks', { asksMax: 1_001 }, 'decision.asksMax'],
    ['half an ask', { asksMax: 1.5 }, 'decision.asksMax'],
    ['an interval of days', { interval: '25h' }, 'decision.interval'],
    ['a bound on a cost that nobody tells', { costMax: 5 }, 'decision'],
    ['a cost without a bound', { costOf: () => 1 }, 'decision'],
    ['a negative bound', { costMax: -1, costOf: () => 1 }, 'decision.costMax'],
  ])('%s is a defect of the contract, with field and fix', (_what, decision, field) => {
    expect(() => asking(decision)).toThrow(
      expect.objectContaining({
        code: 'invalid_contract',
        details: expect.objectContaining({
          issues: [expect.objectContaining({ field })],
        }) as object,
      }),
    );
  });
});

function assertNever(): never {
  throw new Error('the cost is not to be had');
}
