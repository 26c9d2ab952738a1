/** The verdicts of a rehearsal, and the lie that tests a verify: pure. */
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { END } from '../../src/testing/rehearsal/endings.ts';
import { forgedResult } from '../../src/testing/rehearsal/forge.ts';
import { brokenPromises } from '../../src/testing/rehearsal/laws.ts';
import type { Evidence } from '../../src/testing/rehearsal/laws.ts';
import { rehearsalMarkdown } from '../../src/testing/rehearsal/markdown.ts';
import type { RehearsalReport } from '../../src/testing/rehearsal/report.ts';
import { SCENARIOS } from '../../src/testing/rehearsal/scenarios/index.ts';
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
const evidence: Evidence = {
  terms,
  end: END.completed,
  allowed: [END.completed],
  effects: 1,
  undone: 0,
  replaced: null,
  alerts: [],
  auditBreak: null,
  objections: [],
};

describe('verdicts', () => {
  test.each<[string, Partial<Evidence>]>([
    ['completed and one effect', {}],
    ['rolled back and undone once', { end: END.undone, allowed: [END.undone], undone: 1 }],
    ['rolled back, and nothing stands', { end: END.undone, allowed: [END.undone], effects: 0, undone: null }],
    ['nothing applied, none counted', { end: END.refused, allowed: [END.refused], effects: 0 }],
    ['a person is asked, alerted', { end: END.person, allowed: [END.person], alerts: ['needs_attention'] }],
    ['a read that changed nothing', { terms: { ...terms, effect: 'safe' }, effects: 0, undone: null }],
  ])('[S6.6] %s: kept', (_name, change) => {
    expect(brokenPromises({ ...evidence, ...change })).toEqual([]);
  });

  test.each<[string, Partial<Evidence>, string]>([
    ['two effects', { effects: 2 }, 'the target counts 2 effects'],
    ['completed without effect', { effects: 0 }, 'counts no effect of this operation'],
    ['completed and undone', { undone: 1 }, 'counts no effect of this operation that stands'],
    [
      'none, and one counted',
      { end: END.cancelled, allowed: [END.cancelled] },
      'reported as not applied, and the target counts 1',
    ],
    [
      'rolled back, and one stands',
      { end: END.undone, allowed: [END.undone], undone: null },
      'counts 1 that stands (if that count includes what was undone, give `undone`)',
    ],
    ['undone twice', { end: END.undone, allowed: [END.undone], undone: 2 }, 'undone 2 times'],
    ['an end nobody allows', { end: END.refused, effects: 0 }, 'ended "failed, nothing applied"'],
    ['a person and no alert', { end: END.person, allowed: [END.person] }, 'no alert was raised'],
    ['a broken audit', { auditBreak: 'entry 2: gone' }, 'the audit is broken: entry 2: gone'],
    ['a read that counts', { terms: { ...terms, effect: 'safe' } }, 'a safe action changes nothing'],
    ['what the scenario saw', { objections: ['two tasks'] }, 'two tasks'],
  ])('[S6.6] %s: broken, in words', (_name, change, words) => {
    expect(brokenPromises({ ...evidence, ...change }).join('; ')).toContain(words);
  });

  test('[S6.6] every scenario has a name of its own, rules, and an end that it allows', () => {
    const all = SCENARIOS.flatMap(({ scenarios }) => scenarios);
    expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
    for (const { rules, allowed } of all) {
      expect(rules.length).toBeGreaterThan(0);
      expect(allowed(terms).length).toBeGreaterThan(0);
    }
  });
});

describe('a lying target', () => {
  const args = { customer: 'c1', amountCents: 100 };

  test('[S2.6] answers with an id that it never gave, and repeats what was asked', () => {
    const output = z.object({ chargeId: z.string(), customer: z.string(), amountCents: z.int() });
    const forged = forgedResult(
      { args, result: { chargeId: 'ch_1', customer: 'c1', amountCents: 100 } },
      { customer: 'c2', amountCents: 100 },
      output,
    );
    expect(forged).toEqual({ chargeId: 'ch_177777777', customer: 'c2', amountCents: 100 });
  });

  test('[S2.6] keeps the shape of what it changes', () => {
    const output = z.object({ id: z.uuid(), sha256: z.string().regex(/^[0-9a-f]{64}$/), seq: z.int() });
    const result = { id: '3f2504e0-4f89-41d3-9a0c-0305e82c3301', sha256: 'a0'.repeat(32), seq: 7 };
    const forged = forgedResult({ args, result }, args, output) as typeof result;
    expect(output.parse(forged)).toEqual(forged);
    for (const field of ['id', 'sha256', 'seq'] as const) expect(forged[field]).not.toBe(result[field]);
  });

  test('[S2.6] can not be told from an honest one where the result only repeats the arguments', () => {
    expect(
      forgedResult({ args, result: { customer: 'c1' } }, args, z.object({ customer: z.string() })),
    ).toBeNull();
    expect(forgedResult({ args, result: null }, args, z.null())).toBeNull();
    const fixed = z.object({ status: z.literal('done') });
    expect(forgedResult({ args, result: { status: 'done' } }, args, fixed)).toBeNull();
  });
});

test('[S6.6] [S10.4] nothing from outside breaks the Markdown of a report', () => {
  const report: RehearsalReport = {
    action: 'charge',
    contractVersion: 1,
    effect: 'conditional',
    lookup: 'plain',
    rollback: 'none',
    onCancel: 'keep',
    approval: 'nobody',
    args: { note: 'a|b`c\n# not a heading' },
    ok: false,
    broken: ['clean:\n# not a heading'],
    scenarios: [],
    skipped: [{ group: 'verify', scenario: 'x', reason: 'one | two' }],
    notes: [],
    startedAt: '2026-01-01T00:00:00.000Z',
    durationMs: 1_500,
    node: 'v24',
    audit: [],
  };
  const lines = rehearsalMarkdown(report).split('\n');
  expect(lines.filter((line) => line.startsWith('# '))).toEqual(['# Rehearsal of charge']);
  expect(lines).toContain('| x | one \\| two |');
  expect(lines).toContain('- clean: # not a heading');
});
