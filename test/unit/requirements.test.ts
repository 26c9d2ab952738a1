/** The gate between what is promised and what is proven: test/requirements.ts says how it is meant. */
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { LATER, RULES } from '../requirements.ts';
import { citationsIn, rulesIn } from '../../scripts/citations.ts';
import type { Citation } from '../../scripts/citations.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const files = globSync(['test/**/*.ts', 'examples/**/*.test.ts', 'src/testing/**/*.ts'], {
  cwd: root,
}).filter((file) => !file.endsWith('requirements.test.ts'));
const citations = files.flatMap((file) =>
  citationsIn(readFileSync(`${root}/${file}`, 'utf8'), file).map((citation) => ({ ...citation, file })),
);
const proven = new Set(citations.map(({ rule }) => rule));
/** A whole section may be cited where no single rule fits; that proves none of its rules. */
const sections = new Set(Object.keys(RULES).map((rule) => rule.split('.')[0]));

const describeCitation = ({ rule, test: name, file }: Citation & { file: string }) =>
  `${rule}: ${file}: ${name}`;

describe('every rule', () => {
  test('has a test that names it, or stands in the table of what comes later', () => {
    expect(Object.keys(RULES).filter((rule) => !proven.has(rule) && !(rule in LATER))).toEqual([]);
  });

  test('that comes later has no test yet: with one it leaves the table', () => {
    expect(Object.keys(LATER).filter((rule) => proven.has(rule))).toEqual([]);
  });

  test('is numbered without a gap', () => {
    const numbers: Record<string, number[]> = {};
    for (const rule of Object.keys(RULES)) {
      const [section = '', number] = rule.split(/[. ]/);
      if (number !== undefined) (numbers[section] ??= []).push(Number(number));
    }
    for (const [section, given] of Object.entries(numbers))
      expect([section, given]).toEqual([section, given.map((_, index) => index + 1)]);
  });
});

describe('every test', () => {
  test('names rules that exist', () => {
    const unknown = citations.filter(({ rule }) => !(rule in RULES) && !sections.has(rule));
    expect(unknown.map(describeCitation)).toEqual([]);
    expect(Object.keys(LATER).filter((rule) => !(rule in RULES))).toEqual([]);
  });
});

describe('what counts as naming a rule', () => {
  const rules = (source: string) => citationsIn(source, 'x.test.ts').map(({ rule }) => rule);

  test('is the name of a test, of its table and of what is around it', () => {
    expect(rules(`test('a [S1.1]', () => {})`)).toEqual(['S1.1']);
    expect(rules(`it.each([1])('a %i [M1.3, case 12]', () => {})`)).toEqual(['M1.3', 'case 12']);
    expect(rules('test(`a ${x} [S2.4][S5]`, () => {})')).toEqual(['S2.4', 'S5']);
    expect(
      rules(
        `describe('a [S6.2]', () => { test('b', () => {}); for (const x of y) test(x + '[S6.1]', () => {}); })`,
      ),
    ).toEqual(['S6.2', 'S6.2', 'S6.1']);
    expect(rules(`describe.each(ways)('a %s [S7.4]', () => { it('b', () => {}) })`)).toEqual(['S7.4']);
    expect(rules(`describe('[S1.1]', () => { it(name, () => {}) })`)).toEqual(['S1.1']);
  });

  test('is nothing that does not run: skipped, to do, in a comment, or a describe without a test', () => {
    expect(rules(`test.skip('a [S1.1]', () => {})`)).toEqual([]);
    expect(rules(`test.todo('a [S1.1]')`)).toEqual([]);
    expect(rules(`describe.skip('a [S1.1]', () => { test('b [S1.2]', () => {}) })`)).toEqual([]);
    expect(rules(`describe('a [S1.1]', () => {}); // test('[S1.2]')`)).toEqual([]);
    expect(rules(`const name = 'a [S1.1]'; other('b [S1.2]', () => {})`)).toEqual([]);
  });

  test('is only what is written in brackets', () => {
    expect(rulesIn('S1.1 [S1] [S12.30] [case 7] [s1.1] [X1.1] [S1.1 [S2.1,S2.2] [S2.1, ]')).toEqual([
      'S1',
      'S12.30',
      'case 7',
      'S2.1',
      'S2.2',
    ]);
  });
});
