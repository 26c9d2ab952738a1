/**
 * The name of an upstream tool, of its server's name and its own: a pure function, so that it is the same in every
 * process, after every restart, and whatever servers come later (M8.2).
 *
 * Plain names are joined by `__`. Whatever had to be changed or cut carries a hash of both full names behind a second
 * `__`, which no plain name has: two tools never share a name.
 */
import { createHash } from 'node:crypto';
import { base32, lengthPrefixed } from '../contract/ids.ts';
import { LIMITS } from '../contract/limits.ts';

const SEPARATOR = '__';
const HASH_CHARS = 12;
/** Neither begins nor ends with `_`, nor has two of them: the separator stays the only `__`. */
const PLAIN = /^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$/;

/** 1 to 64 of `A–Z a–z 0–9 _ -`. */
export function upstreamToolName(server: string, tool: string): string {
  const max = LIMITS.toolNameLengthMax.value;
  const joined = `${server}${SEPARATOR}${tool}`;
  if (PLAIN.test(server) && PLAIN.test(tool) && joined.length <= max) return joined;
  const hash = base32(createHash('sha256').update(lengthPrefixed(server, tool)).digest()).slice(
    0,
    HASH_CHARS,
  );
  const room = max - HASH_CHARS - 2 * SEPARATOR.length;
  const front = plain(server).slice(0, Math.floor(room / 3));
  const back = plain(tool).slice(0, room - front.length);
  return `${front}${SEPARATOR}${back}${SEPARATOR}${hash}`;
}

const plain = (name: string): string => name.replace(/[^A-Za-z0-9-]+/g, '_').replace(/^_+|_+$/g, '') || 'x';
