import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { defaultPayloadConverter } from '@temporalio/common';
import type { Payload } from '@temporalio/common';
import { deriveHmacKey, parseEncryptionKeys } from '../../src/client/encryption-keys.ts';
import { EncryptionCodec } from '../../src/client/payload-codec.ts';
import { HoldfastError } from '../../src/contract/error.ts';

const newKey = (): string => randomBytes(32).toString('base64');
const CANARY = 'canary-4f1d';

const codecOf = (...keys: string[]) => new EncryptionCodec(parseEncryptionKeys(keys.join(',')));
const payloadOf = (value: unknown): Payload => defaultPayloadConverter.toPayload<unknown>(value);
const valueOf = (payload: Payload): unknown => defaultPayloadConverter.fromPayload(payload);

async function errorOf(work: () => Promise<unknown>): Promise<HoldfastError> {
  const error = await work().then(
    () => new Error('it did not throw'),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof HoldfastError)) throw error;
  return error;
}

describe('the payload codec', () => {
  test('gives back what it took, and none of it is readable in between', async () => {
    const codec = codecOf(newKey());
    const value = { card: CANARY, nested: [1, null, 'ä'] };
    const [sealed] = await codec.encode([payloadOf(value)]);
    expect(Buffer.from(sealed?.data ?? []).includes(CANARY)).toBe(false);
    expect(JSON.stringify(sealed?.metadata)).not.toContain('json/plain');
    const [opened] = await codec.decode([sealed!]);
    expect(valueOf(opened!)).toEqual(value);
  });

  test('never seals the same value twice alike', async () => {
    const codec = codecOf(newKey());
    const [first, second] = await codec.encode([payloadOf('same'), payloadOf('same')]);
    expect(Buffer.from(first!.data!).equals(Buffer.from(second!.data!))).toBe(false);
  });

  test('reads what an older key wrote after a rotation, and writes under the newest', async () => {
    const [older, newer] = [newKey(), newKey()];
    const [written] = await codecOf(older).encode([payloadOf('kept')]);
    const rotated = codecOf(newer, older);
    const [opened] = await rotated.decode([written!]);
    expect(valueOf(opened!)).toBe('kept');
    const [fresh] = await rotated.encode([payloadOf('new')]);
    const [reopened] = await codecOf(newer).decode([fresh!]);
    expect(valueOf(reopened!)).toBe('new');
  });

  test('says payload_undecryptable, with the key id and no key material, when the key is gone', async () => {
    const [older, newer] = [newKey(), newKey()];
    const [written] = await codecOf(older).encode([payloadOf('kept')]);
    const error = await errorOf(() => codecOf(newer).decode([written!]));
    expect(error.code).toBe('payload_undecryptable');
    expect(error.details).toEqual({ keyId: parseEncryptionKeys(older)[0]?.id });
    expect(error.message).not.toContain(older);
  });

  test.each([
    ['a flipped bit of the text', (data: Buffer) => (data[data.length - 1]! ^= 1)],
    ['a flipped bit of the tag', (data: Buffer) => (data[13]! ^= 1)],
    ['a flipped bit of the nonce', (data: Buffer) => (data[0]! ^= 1)],
  ])('refuses %s', async (_what, tamper) => {
    const codec = codecOf(newKey());
    const [sealed] = await codec.encode([payloadOf('x')]);
    const data = Buffer.from(sealed!.data!);
    tamper(data);
    const error = await errorOf(() => codec.decode([{ ...sealed!, data }]));
    expect(error.code).toBe('payload_undecryptable');
  });

  test('refuses a payload cut short, or under another key’s id', async () => {
    const [one, two] = [newKey(), newKey()];
    const codec = codecOf(one, two);
    const [sealed] = await codec.encode([payloadOf('x')]);
    const short = await errorOf(() => codec.decode([{ ...sealed!, data: sealed!.data!.subarray(0, 20) }]));
    expect(short.code).toBe('payload_undecryptable');
    const id = Buffer.from(parseEncryptionKeys(two)[0]!.id);
    const foreign = { ...sealed!, metadata: { ...sealed!.metadata, 'holdfast-key-id': id } };
    expect((await errorOf(() => codec.decode([foreign]))).code).toBe('payload_undecryptable');
  });

  test('passes through what was written before encryption was switched on', async () => {
    const [opened] = await codecOf(newKey()).decode([payloadOf({ plain: true })]);
    expect(valueOf(opened!)).toEqual({ plain: true });
  });
});

describe('HOLDFAST_ENCRYPTION_KEY', () => {
  test('takes base64, base64url and hex, newest first, with room around the commas', () => {
    const raw = Buffer.concat([Buffer.alloc(16, 0xfb), randomBytes(16)]);
    const [base64] = parseEncryptionKeys(raw.toString('base64'));
    const keys = parseEncryptionKeys(` ${raw.toString('base64url')} , ${newKey()} `);
    expect(keys).toHaveLength(2);
    expect(keys[0]).toEqual(base64);
    expect(parseEncryptionKeys(raw.toString('hex'))[0]).toEqual(base64);
    expect(parseEncryptionKeys(undefined)).toEqual([]);
    expect(parseEncryptionKeys('  ')).toEqual([]);
  });

  test.each([
    ['too short a key', Buffer.alloc(16, 1).toString('base64'), /16 bytes instead of 32/],
    ['no base64', 'not a key!', /neither base64 nor hex/],
    ['an empty entry', `${newKey()},`, /key 2 of 2/],
    ['too many keys', Array.from({ length: 17 }, newKey).join(','), /at most 16/],
  ])('names the variable, the shape and the fix for %s, never the value', (_what, value, problem) => {
    const error = (() => {
      try {
        parseEncryptionKeys(value);
      } catch (thrown) {
        return thrown as HoldfastError;
      }
      throw new Error('it did not throw');
    })();
    expect(error.code).toBe('invalid_configuration');
    expect(error.message).toMatch(problem);
    expect(error.message).toContain('HOLDFAST_ENCRYPTION_KEY');
    expect(error.message).toContain('openssl rand -base64 32');
    expect(error.message).not.toContain(value);
  });

  test('refuses the same key twice', () => {
    const key = newKey();
    expect(() => parseEncryptionKeys(`${key},${key}`)).toThrow(/same key twice/);
  });

  test('the hash key of sensitive fields stays the same when a new key is put in front [S1.4]', () => {
    const [older, newer] = [newKey(), newKey()];
    const before = deriveHmacKey(parseEncryptionKeys(older));
    expect(deriveHmacKey(parseEncryptionKeys(`${newer},${older}`))).toEqual(before);
    expect(deriveHmacKey([])).toBeNull();
  });
});
