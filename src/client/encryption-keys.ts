/**
 * The keys of HOLDFAST_ENCRYPTION_KEY: what encrypts payloads in the engine's histories, and what redaction hashes
 * with. Parsed once at start; no message here ever holds key material.
 */
import { createHash, hkdfSync } from 'node:crypto';
import { HoldfastError } from '../contract/error.ts';
import { deriveHashKey } from '../contract/redact.ts';

export const ENCRYPTION_KEY_VARIABLE = 'HOLDFAST_ENCRYPTION_KEY';
const KEY_BYTES = 32;
/** Bound on keys held for rotation; more is a sign that old ones were never dropped. */
const KEYS_MAX = 16;

export interface EncryptionKey {
  /** Names the key in a payload's metadata: 16 hex digits of a hash of the key. Reveals nothing of it. */
  id: string;
  bytes: Uint8Array;
}

/**
 * Parses the variable: keys of 32 bytes as base64 (or base64url, or 64 hex digits), comma separated, newest first.
 * Answers none for an unset or empty value.
 *
 * @throws HoldfastError `invalid_configuration`, naming the position of the wrong key, never its value.
 */
export function parseEncryptionKeys(value: string | undefined): EncryptionKey[] {
  if (value === undefined || value.trim() === '') return [];
  const parts = value.split(',').map((part) => part.trim());
  if (parts.length > KEYS_MAX) throw invalidKeys(`holds ${parts.length} keys; at most ${KEYS_MAX} are kept`);
  const keys = parts.map((part, index) => parseKey(part, index + 1, parts.length));
  const ids = new Set(keys.map(({ id }) => id));
  if (ids.size !== keys.length) throw invalidKeys('holds the same key twice');
  return keys;
}

/**
 * The key that redaction hashes sensitive fields with. Derived from the oldest key, so that a rotation (a new key put
 * in front) changes no stored hash. Null without keys: then no contract has sensitive fields (`encryption_key_required`).
 */
export function deriveHmacKey(keys: readonly EncryptionKey[]): Uint8Array | null {
  const oldest = keys.at(-1);
  return oldest ? deriveHashKey(oldest.bytes) : null;
}

/**
 * The key under which gateways sign what a client carries from one round of a call to the next. The same for every
 * gateway of one installation, and over a rotation, as that of {@link deriveHmacKey}.
 */
export function deriveRequestStateKey(keys: readonly EncryptionKey[]): Uint8Array | null {
  const oldest = keys.at(-1);
  if (!oldest) return null;
  return Buffer.from(hkdfSync('sha256', oldest.bytes, new Uint8Array(0), 'holdfast request state v1', 32));
}

function parseKey(text: string, position: number, count: number): EncryptionKey {
  const bytes = decodeKey(text);
  const which = count === 1 ? 'its value' : `key ${position} of ${count}`;
  if (bytes === null) throw invalidKeys(`${which} is neither base64 nor hex`);
  if (bytes.length !== KEY_BYTES)
    throw invalidKeys(`${which} has ${bytes.length} bytes instead of ${KEY_BYTES}`);
  const id = createHash('sha256').update('holdfast key id\0').update(bytes).digest('hex').slice(0, 16);
  return { id, bytes };
}

function decodeKey(text: string): Uint8Array | null {
  if (/^[0-9a-fA-F]{64}$/.test(text)) return Buffer.from(text, 'hex');
  if (/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return Buffer.from(text, 'base64');
  if (/^[A-Za-z0-9_-]+={0,2}$/.test(text)) return Buffer.from(text, 'base64url');
  return null;
}

function invalidKeys(problem: string): HoldfastError {
  const shape = 'comma-separated keys of 32 bytes in base64, newest first';
  const fix = 'make one with `openssl rand -base64 32`; to rotate, put the new key in front';
  return new HoldfastError(
    'invalid_configuration',
    `${ENCRYPTION_KEY_VARIABLE}: ${problem}. Expected ${shape}; ${fix}.`,
    {
      details: { name: ENCRYPTION_KEY_VARIABLE, expected: shape, fix },
    },
  );
}
