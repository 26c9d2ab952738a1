import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { tryExactJson } from '../../src/contract/canonical.ts';
import { HoldfastError } from '../../src/contract/error.ts';
import { parseExactJson } from '../../src/contract/exact-json-text.ts';

function refusal(text: string): unknown {
  try {
    return { taken: parseExactJson(text) };
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    const [issue] = error.details['issues'] as { path: string; message: string }[];
    return `${error.code} at ${issue?.path}: ${issue?.message}`;
  }
}

test('a value that is kept costs no pointer for any of its members [S1.4]', () => {
  const made = vi.spyOn(String.prototype, 'replaceAll'); // as each segment of a pointer is escaped
  const members = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`k~${at}`, [{ a: at }]]));
  expect(parseExactJson(JSON.stringify({ members }))).toEqual({ members });
  expect(made.mock.calls.length).toBe(0);
  expect(refusal('{"a":[{"b~":0},{"b~":1e300}]}')).toMatch(/at \/a\/1\/b~0:/);
  expect(made.mock.calls.length).toBeGreaterThan(0);
  made.mockRestore();
});

describe('exact JSON text', () => {
  test.each([
    ['{"a":9007199254740993}', 'at /a: an integer beyond 2^53'],
    ['{"a":9007199254740992}', 'at /a: an integer beyond 2^53'],
    ['[1,-9007199254740993]', 'at /1: an integer beyond 2^53'],
    ['{"a":[{"b":1e30}]}', 'at /a/0/b: an integer beyond 2^53'],
    ['{"a":9007199254740993.0}', 'at /a: an integer beyond 2^53'],
    ['{"a":1e400}', 'at /a: Infinity'],
    ['{"a":[0,1e-400]}', 'at /a/1: a number too small to keep'],
  ])('refuses the number in %s with its path [M1.6]', (text, expected) => {
    expect(refusal(text)).toBe(`invalid_arguments ${expected}`);
  });

  test.each([
    ['{"a":1,"a":2}', '/a'],
    ['{"a":1,"\\u0061":1}', '/a'],
    ['{"x":[{"b":{"c":1,"d":2,"c":3}}]}', '/x/0/b/c'],
    ['{"__proto__":1,"__proto__":2}', '/__proto__'],
    ['{"":1,"":2}', '/'],
    ['{"a":{"k":1},"b":{"k":1},"a":0}', '/a'],
  ])('refuses a key that is there twice in %s [M1.6]', (text, path) => {
    expect(refusal(text)).toBe(`invalid_arguments at ${path}: a key that is there twice`);
  });

  test('takes the same key in different objects, and strings that look like keys [M1.6]', () => {
    const text = '{"a":{"a":["a","a",{"a":"\\"a\\":1,\\"a\\":2"}]},"b":"\\\\","c":[]}';
    expect(parseExactJson(text)).toEqual(JSON.parse(text));
  });

  test('takes the largest exact integers and plain zeros [M1.6]', () => {
    expect(parseExactJson('[9007199254740991,-9007199254740991,0,-0,0.0,0e5,0.10,1E2]')).toEqual([
      9007199254740991, -9007199254740991, 0, 0, 0, 0, 0.1, 100,
    ]);
  });

  test('refuses lone surrogates, too deep nesting and text that is no JSON, without quoting it [M1.6]', () => {
    expect(refusal('{"a":"\\ud800"}')).toBe('invalid_arguments at /a: a string with a lone surrogate');
    expect(refusal('['.repeat(101) + ']'.repeat(101))).toContain('nested deeper than 100 levels');
    expect(refusal('['.repeat(200_000) + ']'.repeat(200_000))).toContain('nested deeper than 100 levels');
    expect(refusal('{"password":"hunter2"')).toBe('invalid_arguments at : not JSON');
    expect(refusal('')).toBe('invalid_arguments at : not JSON');
    expect(refusal('NaN')).toBe('invalid_arguments at : not JSON');
  });

  test('answers what JSON.parse does, for any text that loses nothing [M1.6]', () => {
    fc.assert(
      fc.property(fc.json(), fc.integer({ min: 0, max: 2 }), (text, indent) => {
        const spaced = JSON.stringify(JSON.parse(text), null, indent);
        fc.pre(tryExactJson(JSON.parse(spaced)).ok);
        expect(parseExactJson(spaced)).toEqual(JSON.parse(spaced));
      }),
      { numRuns: 150 },
    );
  });
});
