import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../../src/contract/canonical.ts';
import { fingerprintOf } from '../../src/contract/fingerprint.ts';
import type { Json } from '../../src/task/json.ts';

interface Vector {
  tenant: string;
  action: string;
  json: string;
  canonical: string;
  sha256: string;
}
const vectorUrl = (name: string) => new URL(`../vectors/${name}`, import.meta.url);
const { vectors } = JSON.parse(readFileSync(vectorUrl('fingerprint.json'), 'utf8')) as { vectors: Vector[] };
const print = (value: unknown) => fingerprintOf('tenant', 'action', value);

/** The same value with every object's members the other way round. */
const reversed = (value: Json): Json => {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, member]) => [key, reversed(member)]),
  );
};

/** Objects and arrays five levels deep, without `__proto__` (fast-check would set it) and large integers. */
const value5 = fc.letrec<{ node: Json }>((tie) => ({
  node: fc.oneof(
    { depthSize: 'small', maxDepth: 5 },
    fc.oneof(fc.integer(), fc.string({ unit: 'grapheme', maxLength: 4 }), fc.boolean(), fc.constant(null)),
    fc.array(tie('node'), { maxLength: 3 }),
    fc.dictionary(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 3 }), tie('node'), {
      maxKeys: 4,
      noNullPrototype: true,
    }),
  ),
})).node;

describe('the argument fingerprint', () => {
  test.each(vectors)('equals what Python makes of $tenant $action $json [S1.4]', (vector) => {
    const value: unknown = JSON.parse(vector.json);
    expect(canonicalJson(value)).toBe(vector.canonical);
    expect(fingerprintOf(vector.tenant, vector.action, value)).toBe(vector.sha256);
  });

  test('has vectors that Python, where it is installed, still answers alike [S1.4]', () => {
    const python = spawnSync(
      'python3',
      ['-I', '-S', '-X', 'utf8', fileURLToPath(vectorUrl('fingerprint.py'))],
      {
        input: JSON.stringify(vectors.map(({ tenant, action, json }) => ({ tenant, action, json }))),
        encoding: 'utf8',
      },
    );
    const isAbsent = python.error !== undefined && 'code' in python.error && python.error.code === 'ENOENT';
    const answered = isAbsent ? vectors : (JSON.parse(python.stdout) as Vector[]);
    const expected = vectors.map(({ canonical, sha256 }) => ({ canonical, sha256 }));
    expect(answered.map(({ canonical, sha256 }) => ({ canonical, sha256 }))).toEqual(expected);
  });

  test('is the same whatever the order of keys, at any depth [S1.4]', () => {
    fc.assert(
      fc.property(value5, (value) => {
        expect(print(reversed(value))).toBe(print(value));
      }),
      { numRuns: 150 },
    );
    const deep = { a: { b: { c: { d: { e: 1, f: 2 } } } }, g: 3 };
    expect(print(reversed(deep))).toBe(print(deep));
    expect(Object.keys(reversed(deep) as object)).toEqual(['g', 'a']);
  });

  test('differs when the order of an array does [S1.4]', () => {
    expect(print([1, 2])).not.toBe(print([2, 1]));
    expect(print({ a: [{ b: [1, 2] }] })).not.toBe(print({ a: [{ b: [2, 1] }] }));
  });

  test('is the same exactly when the values are equal as JSON [S1.4]', () => {
    fc.assert(
      fc.property(value5, value5, (a, b) => {
        expect(print(a) === print(b)).toBe(canonicalJson(a) === canonicalJson(b));
      }),
      { numRuns: 150 },
    );
  });

  test('takes no hostile value for another: each is refused or provably distinct [S1.4]', () => {
    const matrix: unknown[] = [
      Number.NaN, Infinity, -Infinity, 0, 1n, '1', 1, '0', 'NaN', 'null', null, undefined, [undefined], [null], [], {},
      { a: undefined, b: 1 }, { a: null, b: 1 }, new Date(0), '1970-01-01T00:00:00.000Z', new Map(), new Set(), Symbol('x'), () => 1,
      '\ud800', '\ufffd', true, 'true', 2 ** 53, 2 ** 53 + 2, String(2 ** 53), [[]], [{}], ['a,b'], ['a', 'b'],
    ]; // prettier-ignore
    const prints = matrix.flatMap((value) => {
      try {
        return [print({ v: [value] })];
      } catch {
        return [];
      }
    });
    expect(new Set(prints).size).toBe(prints.length);
    expect(prints).toHaveLength(21);
  });

  test('takes -0 for 0 and an undefined member for an omitted one [S1.4]', () => {
    expect(print({ a: -0 })).toBe(print({ a: 0 }));
    expect(print({ a: 1, b: undefined })).toBe(print({ a: 1 }));
  });

  test('is bound to tenant and action, which can not trade letters [S1.4]', () => {
    const prints = [
      fingerprintOf('a', 'bc', {}),
      fingerprintOf('ab', 'c', {}),
      fingerprintOf('', 'abc', {}),
      fingerprintOf('abc', '', {}),
    ];
    expect(new Set(prints).size).toBe(4);
  });
});
