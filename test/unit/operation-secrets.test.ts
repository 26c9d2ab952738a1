/** S2.10: whatever a handler says, the values of sensitive fields are taken out of it. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Secrets } from '../../src/operation/secrets.ts';
import type { Json } from '../../src/task/json.ts';

function secretsOf(value: Json, ...patterns: string[]): Secrets {
  const secrets = new Secrets();
  secrets.add(value, patterns);
  return secrets;
}

describe('secrets in what handlers say', () => {
  test('[S2.10] are taken out as they are, as JSON and as a URL quotes them', () => {
    const secrets = secretsOf({ card: '4111 "x"\n', to: 'bob' }, '/card');
    const text = `declined 4111 "x"\n for bob, {"card":${JSON.stringify('4111 "x"\n')}}, ?card=${encodeURIComponent('4111 "x"\n')}`;
    expect(secrets.clean(text)).toBe('declined [redacted] for bob, {"card":"[redacted]"}, ?card=[redacted]');
  });

  test('[S2.10] numbers and whole objects count, booleans and empty strings identify nobody', () => {
    const secrets = secretsOf(
      { pin: 1234, person: { name: 'ann', years: [41], vip: true, note: '' } },
      '/pin',
      '/person',
    );
    expect(secrets.clean('pin 1234 of ann, 41, true')).toBe('pin [redacted] of [redacted], [redacted], true');
  });

  test('[S2.10] the longest goes first, and nothing is replaced within a replacement', () => {
    const secrets = secretsOf({ a: 'abc', b: 'abcdef', c: 'e' }, '/a', '/b', '/c');
    expect(secrets.clean('abcdef')).toBe('[redacted]');
    expect(secrets.clean('abc')).toBe('[redacted]');
  });

  test('[S2.10] a failure is cleaned in its message, its code and its details, keys too', () => {
    const secrets = secretsOf({ card: '4111' }, '/card');
    const failure = {
      kind: 'permanent',
      code: 'card_4111',
      message: 'card 4111',
      details: { '4111': [4111, 'x4111', null], ok: 5 },
    } as const;
    const details = { '[redacted]': ['[redacted]', 'x[redacted]', null], ok: 5 };
    expect(secrets.cleanFailure({ ...failure, details: { '4111': [4111, 'x4111', null], ok: 5 } })).toEqual({
      kind: 'permanent',
      code: 'card_[redacted]',
      message: 'card [redacted]',
      details,
    });
  });

  test('[S2.10] without sensitive fields nothing is changed', () => {
    expect(secretsOf({ card: '4111' }).clean('card 4111')).toBe('card 4111');
  });

  test('[S2.10] no secret of any shape survives in a sentence about it', () => {
    const word = fc
      .string({ minLength: 4, maxLength: 20, unit: 'grapheme' })
      .filter((text) => !/\p{Surrogate}/u.test(text) && !'[redacted]'.includes(text));
    fc.assert(
      fc.property(word, fc.string(), fc.string(), (secret, before, after) => {
        const text = secretsOf({ list: [{ secret }] }, '/list/*/secret').clean(`${before}${secret}${after}`);
        return !text.replaceAll('[redacted]', '\0').includes(secret);
      }),
    );
  });
});
