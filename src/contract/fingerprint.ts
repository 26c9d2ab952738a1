/** The argument fingerprint (S1.4). */
import { createHash } from 'node:crypto';
import { canonicalJson } from './canonical.ts';
import { lengthPrefixed } from './ids.ts';

/**
 * Hex SHA-256 over tenant, action and the RFC 8785 text of `value`, each preceded by its UTF-8 length in 4 bytes, big
 * endian. Equal for values that differ in key order, `-0` or omitted-versus-undefined members only. Throws
 * `invalid_arguments` with the path for a value that JSON can't keep exactly.
 */
export function fingerprintOf(tenant: string, action: string, value: unknown): string {
  return createHash('sha256')
    .update(lengthPrefixed(tenant, action, canonicalJson(value)))
    .digest('hex');
}
