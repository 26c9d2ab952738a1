import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson, canonicalText, exactJson, tryExactJson } from '../../src/contract/canonical.ts';
import { HoldfastError } from '../../src/contract/error.ts';
import type { Json } from '../../src/task/json.ts';

interface Rfc8785 {
  vectors: { name: string; input: string; output: string }[];
  numbers: [string, string][];
}
const rfc = JSON.parse(readFileSync(new URL('../vectors/rfc8785.json', import.meta.url), 'utf8')) as Rfc8785;

const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)]);
const cycle: Record<string, unknown> = { a: {} };
(cycle['a'] as Record<string, unknown>)['back'] = cycle;
const hidden = Object.defineProperty({}, 'x', { value: 1, enumerable: false });
const named = Object.assign([1], { extra: 2 });
class Money {
  amount = 1;
}

/** Each under key `v` of an object, so that the path proves that the walk found it. */
const refused: [string, unknown, string?][] = [
  ['NaN', Number.NaN],
  ['Infinity', Infinity],
  ['-Infinity', -Infinity],
  ['2^53', 2 ** 53],
  ['-(2^53)', -(2 ** 53)],
  ['1e300', 1e300],
  ['a BigInt', 1n],
  ['a symbol', Symbol('s')],
  ['a function', () => 1],
  ['a Date', new Date(0)],
  ['a Map', new Map([['a', 1]])],
  ['a Set', new Set([1])],
  ['a class instance', new Money()],
  ['a boxed number', Object(1)],
  ['a RegExp', /x/],
  ['bytes', new Uint8Array(2)],
  ['a promise', Promise.resolve(1)],
  ['an error', new Error('x')],
  ['an inherited member', Object.create({ a: 1 })],
  ['a high surrogate alone', '\ud800'],
  ['a low surrogate alone', 'x\udc00y'],
  ['a key with a lone surrogate', { '\ud800': 1 }],
  ['undefined in an array', [undefined], '/v/0'],
  ['a hole in an array', [1, , 3], '/v/1'],
  ['an array with named members', named],
  ['an array of a class', new (class extends Array<number> {})()],
  ['a symbol as key', { [Symbol('k')]: 1 }],
  [
    'a getter',
    {
      get x() {
        return 1;
      },
    },
    '/v/x',
  ],
  ['a hidden property', hidden, '/v/x'],
  ['a cycle', cycle, '/v/a/back'],
];

describe('canonical JSON', () => {
  test.each(rfc.vectors)('keeps the RFC 8785 vector $name to the byte [S1.4]', ({ input, output }) => {
    expect(canonicalText(JSON.parse(input) as Json)).toBe(output);
  });

  test('prints every number of RFC 8785 appendix B as it says [S1.4]', () => {
    for (const [bits, text] of rfc.numbers) {
      expect(canonicalText(Buffer.from(bits, 'hex').readDoubleBE(0)), bits).toBe(text);
    }
  });

  test('orders keys by UTF-16 unit, not by code point [S1.4]', () => {
    expect(canonicalJson({ '\uffff': 2, '😀': 1 })).toBe('{"😀":1,"\uffff":2}');
  });

  test.each(refused)('refuses %s, naming where it is [S1.4]', (_name, value, path = '/v') => {
    const answer = tryExactJson({ before: 1, v: value });
    expect(answer).toMatchObject({ ok: false, issue: { path } });
  });

  test('refuses as invalid_arguments with the path, a message and what was expected [S1.4]', () => {
    let thrown: unknown;
    try {
      exactJson({ 'a/b': [{ '~': Number.NaN }] });
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(HoldfastError);
    expect((thrown as HoldfastError).toJSON()).toEqual({
      code: 'invalid_arguments',
      message: 'The value at /a~1b/0/~0 can not be kept exactly: NaN.',
      details: { issues: [{ path: '/a~1b/0/~0', message: 'NaN', expected: 'a finite number' }] },
    });
  });

  test('takes 100 levels of nesting and refuses 101 [S1.4]', () => {
    expect(tryExactJson(nested(100)).ok).toBe(true);
    expect(tryExactJson(nested(101)).ok).toBe(false);
    expect(tryExactJson(nested(5_000)).ok).toBe(false);
  });

  test('takes a value met twice, which is no cycle [S1.4]', () => {
    const shared = { a: 1 };
    expect(canonicalJson([shared, shared])).toBe('[{"a":1},{"a":1}]');
  });

  test('counts an undefined member as omitted and -0 as 0 [S1.4]', () => {
    expect(canonicalJson({ a: undefined, b: -0 })).toBe('{"b":0}');
    expect(Object.is((exactJson({ b: -0 }) as { b: number }).b, 0)).toBe(true);
  });

  test('keeps own keys such as __proto__, toJSON and constructor as data [S1.4]', () => {
    const hostile: unknown = JSON.parse('{"__proto__":{"admin":true},"toJSON":"x","constructor":1}');
    expect(canonicalJson(hostile)).toBe('{"__proto__":{"admin":true},"constructor":1,"toJSON":"x"}');
    const copy = exactJson(hostile);
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
    expect((copy as { admin?: boolean }).admin).toBeUndefined();
  });

  test('answers a copy that later changes to the original do not reach [S2.9]', () => {
    const original = { list: [{ a: 1 }] };
    const copy = exactJson(original);
    original.list[0] = { a: 2 };
    expect(copy).toEqual({ list: [{ a: 1 }] });
  });

  test('survives a round trip through JSON unchanged, for any value it takes [S1.4]', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        const answer = tryExactJson(value);
        fc.pre(answer.ok);
        const text = canonicalJson(value);
        expect(canonicalJson(JSON.parse(text))).toBe(text);
        expect(JSON.parse(text)).toEqual(answer.ok && answer.value);
      }),
      { numRuns: 150 },
    );
  });
});
