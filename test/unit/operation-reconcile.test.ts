/** S2.4 and S5 as a table, held against every combination of what can be known. */
import { describe, expect, test } from 'vitest';
import { isProvenNotApplied, judge } from '../../src/operation/reconcile.ts';
import type { Doubt, Verdict } from '../../src/operation/reconcile.ts';

const EFFECTS = ['safe', 'conditional', 'unsafe'] as const;
const LOOKUPS = ['none', 'plain', 'conclusive'] as const;
const FOUND = ['applied', 'not_applied', 'unknown', 'threw', 'none'] as const;
const BOOLEANS = [true, false] as const;

const doubts: Doubt[] = EFFECTS.flatMap((effect) =>
  BOOLEANS.filter((autoRetry) => autoRetry || effect !== 'safe').flatMap((autoRetry) =>
    LOOKUPS.flatMap((lookup) =>
      FOUND.filter((found) => (found === 'none') === (lookup === 'none')).flatMap((found) =>
        (['execute', 'settle'] as const).flatMap((purpose) =>
          BOOLEANS.flatMap((isSettled) =>
            BOOLEANS.map((isFinal) => ({ effect, autoRetry, lookup, found, purpose, isSettled, isFinal })),
          ),
        ),
      ),
    ),
  ),
);

/** The first line that fits counts. */
const TABLE: [Partial<Doubt>, Verdict][] = [
  [{ found: 'applied' }, 'adopt'],
  [{ effect: 'safe', purpose: 'execute' }, 'execute'],
  [{ effect: 'safe', purpose: 'settle' }, 'release'],
  [{ effect: 'conditional', autoRetry: true, purpose: 'execute' }, 'execute'],
  [{ lookup: 'conclusive', found: 'not_applied', isSettled: false }, 'wait'],
  [{ lookup: 'conclusive', found: 'not_applied', purpose: 'execute' }, 'execute'],
  [{ lookup: 'conclusive', found: 'not_applied', purpose: 'settle' }, 'release'],
  [{ found: 'threw', isFinal: false }, 'lookAgain'],
  [{}, 'attention'],
];

function expected(doubt: Doubt): Verdict {
  const line = TABLE.find(([pattern]) =>
    Object.entries(pattern).every(([name, value]) => doubt[name as keyof Doubt] === value),
  );
  if (line === undefined) throw new Error('the last line fits all');
  return line[1];
}

describe('what a lookup allows', () => {
  test('[S2.4][S5] follows the table in every combination', () => {
    expect(doubts).toHaveLength(360);
    for (const doubt of doubts) expect([doubt, judge(doubt)]).toEqual([doubt, expected(doubt)]);
  });

  test('[S2.4] every line of the table is met', () => {
    for (const [pattern, verdict] of TABLE) {
      expect(
        doubts.some(
          (doubt) =>
            expected(doubt) === verdict &&
            Object.entries(pattern).every(([name, value]) => doubt[name as keyof Doubt] === value),
        ),
      ).toBe(true);
    }
  });

  test('[S3.8] with purpose settle nothing is ever sent', () => {
    expect(doubts.filter((doubt) => doubt.purpose === 'settle' && judge(doubt) === 'execute')).toEqual([]);
  });

  test('[S5.1][S1.7] what nobody dedupes is sent again only when a conclusive lookup has settled it', () => {
    const resent = doubts.filter(
      (doubt) => (doubt.effect === 'unsafe' || !doubt.autoRetry) && judge(doubt) === 'execute',
    );
    for (const { lookup, found, isSettled } of resent)
      expect({ lookup, found, isSettled }).toEqual({
        lookup: 'conclusive',
        found: 'not_applied',
        isSettled: true,
      });
    expect(resent).not.toEqual([]);
  });

  test('[S3.4] `nothing applied` is said of an effect only where it is proven', () => {
    for (const doubt of doubts.filter((each) => judge(each) === 'release'))
      expect(isProvenNotApplied(doubt)).toBe(true);
  });

  test('[S5.3] the last look never asks for another because the lookup failed', () => {
    expect(doubts.filter((doubt) => doubt.isFinal && judge(doubt) === 'lookAgain')).toEqual([]);
  });
});
