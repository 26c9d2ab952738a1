import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  base32,
  checkKey,
  generateKey,
  lengthPrefixed,
  operationIdOf,
  rollbackOperationId,
  taskIdOf,
} from '../../src/contract/ids.ts';

describe('identities', () => {
  test.each([
    ['', ''],
    ['f', 'my'],
    ['fo', 'mzxq'],
    ['foo', 'mzxw6'],
    ['foob', 'mzxw6yq'],
    ['fooba', 'mzxw6ytb'],
    ['foobar', 'mzxw6ytboi'],
  ])('base32 of %j is the RFC 4648 vector in lower case without padding [S1.3]', (text, expected) => {
    expect(base32(Buffer.from(text))).toBe(expected);
  });

  test('an operationId never changes: this one was written down once [S1.3]', () => {
    expect(operationIdOf('acme', 'charge', 'order-1')).toBe(
      'op_tqapfz4zdq5yseoskffbyyso5twevktgs2f57mi5tnr4pw4bquhq',
    );
    expect(taskIdOf(operationIdOf('acme', 'charge', 'order-1'), 1)).toBe(
      'task_zwa7rj77tzsutu244mznyyh7jng3sidujjf6qkx4g2vb6r6svjzq',
    );
    expect(rollbackOperationId(operationIdOf('acme', 'charge', 'order-1'))).toBe(
      'op_xbecxvpwczxnnxd2otvuhlkj2ekprxmu32b5gu3ythbonbad44eq',
    );
  });

  test('an operationId is op_ and the base32 of SHA-256 over the length-prefixed triple [S1.3]', () => {
    const bytes = Buffer.from([0, 0, 0, 1, 0x61, 0, 0, 0, 2, 0xc3, 0xa4, 0, 0, 0, 0]);
    expect(operationIdOf('a', 'ä', '')).toBe(`op_${base32(createHash('sha256').update(bytes).digest())}`);
  });

  test('no two triples share an operationId, wherever their letters are divided [S1.3]', () => {
    const part = fc.string({ unit: 'grapheme', maxLength: 6 });
    fc.assert(
      fc.property(part, part, part, fc.nat(18), fc.nat(18), (a, b, c, first, second) => {
        const all = [...`${a}${b}${c}`];
        const [i, j] = [Math.min(first, second), Math.max(first, second)];
        const other = [all.slice(0, i).join(''), all.slice(i, j).join(''), all.slice(j).join('')] as const;
        const isSame = other[0] === a && other[1] === b && other[2] === c;
        expect(operationIdOf(...other) === operationIdOf(a, b, c)).toBe(isSame);
      }),
    );
  });

  test('length prefixes tell lists of different lengths apart [S1.3]', () => {
    expect(lengthPrefixed('a', 'b').equals(lengthPrefixed('a', 'b', ''))).toBe(false);
    expect(lengthPrefixed('').equals(lengthPrefixed())).toBe(false);
  });

  test('each ordinal has its own task id of at least 128 bits [S1.5] [M2.6]', () => {
    const ids = [1, 2, 11].map((ordinal) => taskIdOf('op_x', ordinal));
    expect(new Set([...ids, taskIdOf('op_x1', 1)]).size).toBe(4);
    for (const id of ids) expect(id).toMatch(/^task_[a-z2-7]{52}$/);
  });

  test('a rollback is an operation of its own, met again by the same name [S6.2]', () => {
    expect(rollbackOperationId('op_a')).toBe(rollbackOperationId('op_a'));
    expect(rollbackOperationId('op_a')).not.toBe(rollbackOperationId('op_b'));
    expect(rollbackOperationId(rollbackOperationId('op_a'))).not.toBe('op_a');
  });

  test('a generated key is a valid key and never the same twice [S1.7]', () => {
    const keys = Array.from({ length: 100 }, generateKey);
    expect(new Set(keys).size).toBe(100);
    expect(keys.map(checkKey)).toEqual(keys);
  });

  test.each(['a', 'a'.repeat(255), '😀'.repeat(255), ' ', 'é', 'order/1?x=\u0001'])(
    'takes a key of 1 to 255 characters as it is [S1.2]',
    (key) => {
      expect(checkKey(key)).toBe(key);
    },
  );

  test('keeps keys apart that look alike: compared byte for byte [S1.2]', () => {
    expect(operationIdOf('t', 'a', 'é')).not.toBe(operationIdOf('t', 'a', 'e\u0301'));
    expect(operationIdOf('t', 'a', 'k ')).not.toBe(operationIdOf('t', 'a', 'k'));
    expect(operationIdOf('t', 'a', 'K')).not.toBe(operationIdOf('t', 'a', 'k'));
  });

  test.each([
    ['an empty one', '', 'is empty'],
    ['256 characters', 'a'.repeat(256), 'is too long'],
    ['256 emoji', '😀'.repeat(256), 'is too long'],
    ['a huge one', 'a'.repeat(5_000_000), 'is too long'],
    ['a lone surrogate', 'a\ud800', 'lone surrogate'],
    ['U+0000', 'a\0b', 'U+0000'],
    ['a number', 7, 'is a number'],
    ['null', null, 'is null'],
  ])('refuses %s as invalid_key, without repeating it [S1.2]', (_name, key, why) => {
    expect(() => checkKey(key)).toThrow(
      expect.objectContaining({ code: 'invalid_key', message: expect.stringContaining(why) as string }),
    );
  });
});
