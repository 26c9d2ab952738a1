/**
 * Names of operations and tasks, derived and never drawn, so that every process that sees the same call finds the same
 * row and the same task (S1.3, S1.5).
 */
import { createHash, randomUUID } from 'node:crypto';
import { HoldfastError } from './error.ts';
import { LIMITS } from './limits.ts';
import { hasLoneSurrogate, isLongerThan } from './text.ts';

/** RFC 4648 base32 alphabet in lower case. */
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

/** RFC 4648 base32, lower case, without padding. */
export function base32(bytes: Uint8Array): string {
  let text = '';
  let pending = 0;
  let bits = 0;
  for (const byte of bytes) {
    pending = (pending << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += BASE32.charAt((pending >>> bits) & 31);
    }
    pending &= (1 << bits) - 1;
  }
  return bits > 0 ? text + BASE32.charAt((pending << (5 - bits)) & 31) : text;
}

/**
 * Each part as its UTF-8 length (4 bytes, big endian) followed by its UTF-8 bytes: two lists of strings never give the
 * same bytes. Lone surrogates have no UTF-8 form and must have been refused before.
 */
export function lengthPrefixed(...parts: string[]): Buffer {
  return Buffer.concat(
    parts.flatMap((part) => {
      const bytes = Buffer.from(part, 'utf8');
      const length = Buffer.alloc(4);
      length.writeUInt32BE(bytes.length);
      return [length, bytes];
    }),
  );
}

const digest = (...parts: string[]) =>
  createHash('sha256')
    .update(lengthPrefixed(...parts))
    .digest();

/** S1.3: `op_` and the base32 of SHA-256 over the length-prefixed triple; 55 characters. Stable for ever. */
export function operationIdOf(tenant: string, action: string, key: string): string {
  return `op_${base32(digest(tenant, action, key))}`;
}

/** S1.5: the task of an operation's `ordinal`-th run (from 1); 57 characters, 256 bits. */
export function taskIdOf(operationId: string, ordinal: number): string {
  return `task_${base32(digest('task', operationId, String(ordinal), 'v1'))}`;
}

/** S6.2: the operation that undoes `operationId`, an operation of its own with its own row. */
export function rollbackOperationId(operationId: string): string {
  return `op_${base32(digest('rollback', operationId))}`;
}

/** S8.2: the lease of a tenant's resource; 58 characters, however long the resource's name. */
export function leaseIdOf(tenant: string, resource: string): string {
  return `lease_${base32(digest('lease', tenant, resource))}`;
}

/** The key of a keyless call (S1.7): unique, and recognisable when read. */
export function generateKey(): string {
  return `auto_${randomUUID()}`;
}

/**
 * S1.2: answers the key itself, byte for byte; throws `invalid_key` unless it is a string of 1 to 255 code points
 * without lone surrogates and without U+0000 (which PostgreSQL can't store). The message never repeats the key.
 */
export function checkKey(key: unknown): string {
  const refuse = (why: string) =>
    new HoldfastError(
      'invalid_key',
      `The idempotency key ${why}. Send a string of 1 to ${LIMITS.keyLengthMax.value} characters.`,
    );
  if (typeof key !== 'string') throw refuse(`is ${key === null ? 'null' : `a ${typeof key}`}`);
  if (key === '') throw refuse('is empty');
  if (hasLoneSurrogate(key)) throw refuse('holds a lone surrogate, which has no UTF-8 form');
  if (key.includes('\0')) throw refuse('holds U+0000');
  if (isLongerThan(key, LIMITS.keyLengthMax.value)) throw refuse('is too long');
  return key;
}

/** Whether `value` can be a tenant, a subject or a role: storable text of 1 to 255 code points. */
export const isIdentity = (value: unknown): value is string =>
  typeof value === 'string' &&
  value !== '' &&
  !hasLoneSurrogate(value) &&
  !value.includes('\0') &&
  !isLongerThan(value, LIMITS.identityLengthMax.value);
