import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  deriveHashKey,
  differingPaths,
  hashSensitive,
  redact,
  scrub,
  sensitiveTexts,
  withoutCredentials,
} from '../../src/contract/redact.ts';
import { sensitive, sensitivePatterns } from '../../src/contract/sensitive.ts';
import type { Json } from '../../src/task/json.ts';

const key = deriveHashKey(new Uint8Array(32).fill(7));
const secret = () => sensitive(z.string());
const patterns = (schema: z.ZodType) => sensitivePatterns(schema, 'input');

describe('the patterns of sensitive fields', () => {
  test.each([
    ['a field', z.object({ pin: secret(), name: z.string() }), ['/pin']],
    ['a nested field', z.object({ card: z.object({ 'a/b~c': secret() }) }), ['/card/a~1b~0c']],
    ['elements', z.object({ keys: z.array(secret()) }), ['/keys/*']],
    ['fields of elements', z.object({ list: z.array(z.object({ pin: secret() })) }), ['/list/*/pin']],
    ['a tuple', z.object({ pair: z.tuple([z.string(), secret()]).rest(secret()) }), ['/pair/*', '/pair/1']],
    ['record values', z.object({ headers: z.record(z.string(), secret()) }), ['/headers/*']],
    ['a catchall', z.object({ a: z.string() }).catchall(secret()), ['/*']],
    [
      'a union',
      z.object({ v: z.union([z.object({ pin: secret() }), z.object({ token: secret() })]) }),
      ['/v/pin', '/v/token'],
    ],
    [
      'an intersection',
      z.object({ v: z.intersection(z.object({ a: secret() }), z.object({ b: z.string() })) }),
      ['/v/a'],
    ],
    [
      'wrappers',
      z.object({
        a: secret().optional(),
        b: secret().nullable(),
        c: secret().default('x'),
        d: secret().readonly(),
        e: secret().catch(''),
      }),
      ['/a', '/b', '/c', '/d', '/e'],
    ],
    ['lazy', z.object({ a: z.lazy(() => z.object({ pin: secret() })) }), ['/a/pin']],
    ['a whole object', z.object({ card: sensitive(z.object({ number: z.string() })) }), ['/card']],
    [
      'checks added to a marked schema',
      z.object({ pin: secret().min(4).max(8), trimmed: secret().trim() }),
      ['/pin', '/trimmed'],
    ],
    ['a described mark', z.object({ pin: secret().describe('four digits') }), ['/pin']],
    ['a refined object', z.object({ pin: secret() }).refine(() => true), ['/pin']],
    ['nothing', z.object({ name: z.string() }), []],
  ])('find %s [S2.10]', (_name, schema, expected) => {
    expect(patterns(schema)).toEqual(expected);
  });

  test('take everything that a transform may have moved a secret to [S2.10]', () => {
    const moved = z.object({ pin: secret() }).transform(({ pin }) => ({ other: pin }));
    const parsed = z.preprocess((text) => JSON.parse(String(text)) as unknown, z.object({ pin: secret() }));
    const coded = z.codec(z.object({ pin: secret() }), z.object({ other: z.string() }), {
      decode: ({ pin }) => ({ other: pin }),
      encode: ({ other }) => ({ pin: other }),
    });
    expect(patterns(z.object({ moved, parsed, coded }))).toEqual(['/coded', '/moved', '/parsed']);
    const checked = z.object({ pin: secret() }).pipe(z.object({ pin: z.string() }));
    expect(patterns(z.object({ checked }))).toEqual(['/checked/pin']);
  });

  test('leave other uses of the same schema, and its description, alone [S2.10]', () => {
    const word = z.string().describe('a word');
    const marked = sensitive(word);
    expect(patterns(z.object({ a: word, b: marked }))).toEqual(['/b']);
    expect(marked.description).toBe('a word');
  });

  test('are refused where they can not be written down [S2.10]', () => {
    const node = z.object({ pin: secret(), get next(): z.ZodOptional<typeof node> { return node.optional(); } }); // prettier-ignore
    expect(() => patterns(z.object({ node }))).toThrow(
      /input\.node\.pin is marked sensitive and lies in a schema that contains itself/,
    );
    const whole = sensitive(z.object({ get next(): z.ZodOptional<typeof node> { return node.optional(); } })); // prettier-ignore
    expect(patterns(z.object({ whole }))).toEqual(['/whole']);
    expect(() => patterns(z.object({ r: z.record(secret(), z.int()) }))).toThrow(
      /input\.r has keys marked sensitive/,
    );
  });
});

describe('redaction', () => {
  const value = { card: { number: '4111', pin: 12345 }, list: [{ pin: 'a' }, { pin: 'b', n: 1 }], name: 'x' };
  const where = ['/card/number', '/list/*/pin'];

  test('replaces what lies at a pattern and nothing else [S2.10]', () => {
    expect(redact(value, where)).toEqual({
      card: { number: '[redacted]', pin: 12345 },
      list: [{ pin: '[redacted]' }, { pin: '[redacted]', n: 1 }],
      name: 'x',
    });
    expect(redact(value, ['/card'])).toMatchObject({ card: '[redacted]' });
    expect(redact(value, [''])).toBe('[redacted]');
    expect(redact(value, ['/card/number/deeper', '/none'])).toEqual(value);
  });

  test('leaves the original alone and keeps hostile keys data [S2.10]', () => {
    const hostile = JSON.parse('{"__proto__":{"pin":"1234"},"a/b":"x"}') as Json;
    const before = JSON.stringify(hostile);
    expect(JSON.stringify(redact(hostile, ['/__proto__/pin', '/a~1b']))).toBe(
      '{"__proto__":{"pin":"[redacted]"},"a/b":"[redacted]"}',
    );
    expect(JSON.stringify(hostile)).toBe(before);
  });

  test('hashes so that equal secrets stay equal and nothing of them is left [S2.10]', () => {
    const hashed = hashSensitive(value, where, key);
    expect(hashSensitive(structuredClone(value), where, key)).toEqual(hashed);
    expect(JSON.stringify(hashed)).not.toContain('4111');
    expect(hashed).toMatchObject({
      card: { number: expect.stringMatching(/^hmac-sha256:[0-9a-f]{64}$/) as string, pin: 12345 },
    });
    expect(hashSensitive({ a: '4111', b: '4111' }, ['/a'], key)).not.toEqual(
      hashSensitive({ a: '4111', b: '4111' }, ['/a'], deriveHashKey(new Uint8Array(32))),
    );
    const both = hashSensitive({ a: '4111', b: '4111' }, ['/a', '/b'], key) as { a: string; b: string };
    expect(both.a).not.toBe(both.b);
  });

  test('tells types apart when it hashes [S2.10]', () => {
    const hashes = ['1', 1, true, 'true', null, 'null', [], {}, ['1']].map((pin) =>
      JSON.stringify(hashSensitive({ pin }, ['/pin'], key)),
    );
    expect(new Set(hashes).size).toBe(hashes.length);
  });

  test('wants a secret of at least 16 bytes', () => {
    expect(() => deriveHashKey(new Uint8Array(15))).toThrow(RangeError);
  });

  test('scrubs sensitive values out of free text [S2.10]', () => {
    const texts = sensitiveTexts({ pin: 12345, card: { no: '4111-22', cvc: '7' }, name: 'Ann' }, [
      '/pin',
      '/card',
    ]);
    expect(texts).toEqual(['4111-22', '12345']);
    expect(scrub('card 4111-22 with pin 12345 of Ann declined', texts)).toBe(
      'card [redacted] with pin [redacted] of Ann declined',
    );
  });
});

describe('differing paths', () => {
  test.each<[Json, Json, string[]]>([
    [{ amount: 10 }, { amount: 1000 }, ['/amount']],
    [{ a: { b: [1, 2, 3] } }, { a: { b: [1, 9, 3] } }, ['/a/b/1']],
    [{ a: 1 }, { b: 1 }, ['/a', '/b']],
    [[1], [1, 2], ['/1']],
    [{ a: [] }, { a: {} }, ['/a']],
    [{ 'a/b': { '~': 1 } }, { 'a/b': { '~': 2 } }, ['/a~1b/~0']],
    [1, 2, ['']],
    [{ a: 1, b: { c: 2 } }, { b: { c: 2 }, a: 1 }, []],
  ])('of %j and %j are named, never their values [S2.1]', (a, b, expected) => {
    expect(differingPaths(a, b)).toEqual(expected);
  });

  test('are at most 20 [S2.1]', () => {
    const many = (n: number) =>
      Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`k${index}`, n]));
    expect(differingPaths(many(1), many(2))).toHaveLength(20);
  });

  test('are none exactly when the values are equal [S2.1]', () => {
    const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>;
    fc.assert(
      fc.property(json, json, (a, b) => {
        expect(differingPaths(a, structuredClone(a))).toEqual([]);
        expect(differingPaths(a, b).length === 0).toBe(differingPaths(b, a).length === 0);
      }),
    );
  });
});

describe('text that somebody else wrote', () => {
  test.each([
    ['connect postgres://app:hunter2@db:5432/x failed', 'connect postgres://[redacted]@db:5432/x failed'],
    ['GET https://tok_9f@api.test/v1?a=1: 500', 'GET https://[redacted]@api.test/v1?a=1: 500'],
    [
      'https://api.test/v1?access_token=abc123&page=2 gave 403',
      'https://api.test/v1?access_token=[redacted]&page=2 gave 403',
    ],
    ['sent Authorization: Bearer eyJ.abc', 'sent Authorization: [redacted]'],
    ['headers {"x-api-key":"k-1","accept":"a"}', 'headers {"x-api-key":"[redacted]","accept":"a"}'],
    ['refused Bearer eyJhbGciOi.J9', 'refused Bearer [redacted]'],
    ['client_secret=s3 and password=p4;', 'client_secret=[redacted] and password=[redacted];'],
    ['a\u001b[31mb\u0000\r\nc\td', 'a [31mb \nc\td'],
  ])('[S2.10] %j is kept as %j', (text, kept) => {
    expect(withoutCredentials(text)).toBe(kept);
    expect(withoutCredentials(kept)).toBe(kept);
  });

  test.each([
    'Bearer authentication failed',
    'no such order: 17',
    'the key order-1 is spent',
    'https://api.test/v1?page=2 answered 503',
    'write to ann@example.com',
  ])('[S2.10] %j says nothing secret', (text) => expect(withoutCredentials(text)).toBe(text));
});
