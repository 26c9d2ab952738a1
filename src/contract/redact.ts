/**
 * Keeping sensitive values out of everything that is stored or shown (S2.10). Patterns are JSON pointers in which `*`
 * stands for any index or key; whatever lies at or below one is sensitive, objects and arrays as a whole.
 */
import { createHmac, hkdfSync } from 'node:crypto';
import type { Json } from '../task/json.ts';
import { canonicalText } from './canonical.ts';
import { lengthPrefixed } from './ids.ts';
import { LIMITS } from './limits.ts';
import { childPointer, toldPointer } from './pointer.ts';

export const REDACTED = '[redacted]';

/**
 * The key under which sensitive leaves are hashed, from any secret of at least 16 bytes.
 *
 * It must stay the same for as long as keys are to be recognised: the fingerprints of contracts with sensitive fields
 * depend on it. Derive it from the *oldest* key of HOLDFAST_ENCRYPTION_KEY or from a per-installation secret, never from
 * the newest one.
 */
export function deriveHashKey(secret: Uint8Array): Buffer {
  if (secret.length < 16) throw new RangeError(`the secret has ${secret.length} bytes; 16 are needed`);
  return Buffer.from(hkdfSync('sha256', secret, new Uint8Array(0), 'holdfast sensitive leaves v1', 32));
}

/**
 * A copy of `value` with each sensitive part replaced by a keyed hash of its path and canonical JSON, so that equal
 * values at equal paths stay equal and nothing can be read back or guessed without the key.
 */
export function hashSensitive(value: Json, patterns: readonly string[], key: Uint8Array): Json {
  return replace(value, patterns, '', (part, pointer) => {
    const hash = createHmac('sha256', key)
      .update(lengthPrefixed(pointer, canonicalText(part)))
      .digest('hex');
    return `hmac-sha256:${hash}`;
  });
}

/** A copy of `value` with each sensitive part replaced by `[redacted]`. */
export function redact(value: Json, patterns: readonly string[]): Json {
  return replace(value, patterns, '', () => REDACTED);
}

/**
 * What must not turn up in free text about `value`: its sensitive strings and numbers as text, longest first. Parts
 * shorter than 3 characters are left out: they say nothing and would blot out ordinary words.
 */
export function sensitiveTexts(value: Json, patterns: readonly string[]): string[] {
  const texts = new Set<string>();
  replace(value, patterns, '', (part) => {
    for (const leaf of leavesOf(part)) if (leaf.length >= 3) texts.add(leaf);
    return REDACTED;
  });
  return [...texts].sort((a, b) => b.length - a.length);
}

/** `text` (an error's message, a reason) with every one of `texts` replaced by `[redacted]`. */
export function scrub(text: string, texts: readonly string[]): string {
  return texts.reduce((scrubbed, secret) => scrubbed.replaceAll(secret, () => REDACTED), text);
}

/** What says by its shape that a credential follows: in an address, in a header, in a query or a form. */
const CREDENTIALS: readonly (readonly [RegExp, string])[] = [
  [/(\b[a-z][a-z\d+.-]{0,30}:\/\/)[^\s/?#@"'<>]{1,1000}@/gi, `$1${REDACTED}@`],
  [
    /\b((?:proxy-)?authorization|x-api-key|api-key|(?:set-)?cookie)(["']?\s*[:=]\s*["']?)[^\s"',}][^"',}\r\n]*/gi,
    `$1$2${REDACTED}`,
  ],
  // Not of the scheme's name in a sentence: "Bearer authentication failed".
  [/\b(Bearer|Basic) (?![a-z]+(?![\w.~+/=-]))[\w.~+/=-]+/g, `$1 ${REDACTED}`],
  [
    /\b((?:access_?|refresh_?|id_?|auth_?|security-)?token|api_?key|(?:client_?)?secret|passw(?:or)?d|sig(?:nature)?|x-amz-(?:signature|credential|security-token))=[^\s&"',;<>]+/gi,
    `$1=${REDACTED}`,
  ],
];

/**
 * `text` that somebody else wrote (a handler's exception, what a server said), fit to be kept and shown: without what
 * looks like a credential, and without control characters other than tab and line feed. A secret without such a sign
 * can't be told from other text; one that a contract marks as sensitive is taken out by its value.
 */
export function withoutCredentials(text: string): string {
  const shown = text.replace(/[^\P{Cc}\t\n]+/gu, ' ');
  return CREDENTIALS.reduce((left, [pattern, instead]) => left.replace(pattern, instead), shown);
}

/**
 * The JSON pointers at which two values differ, in order, at most the first 20. Never values. A part that is missing on
 * one side or of another type is named itself, not its children; values equal as canonical JSON give none.
 */
export function differingPaths(a: Json, b: Json): string[] {
  const paths: string[] = [];
  collect(a, b, '', paths);
  return paths;
}

function collect(a: Json | undefined, b: Json | undefined, pointer: string, paths: string[]): void {
  if (paths.length >= LIMITS.issuesMax.value) return;
  if (!isContainer(a) || !isContainer(b) || Array.isArray(a) !== Array.isArray(b)) {
    if (a === undefined || b === undefined || canonicalText(a) !== canonicalText(b))
      paths.push(toldPointer(pointer));
    return;
  }
  const [left, right] = [membersOf(a), membersOf(b)];
  for (const key of new Set([...left.keys(), ...right.keys()])) {
    collect(left.get(key), right.get(key), childPointer(pointer, key), paths);
  }
}

function leavesOf(value: Json): string[] {
  if (isContainer(value)) return Object.values(value).flatMap(leavesOf);
  return typeof value === 'string' || typeof value === 'number' ? [String(value)] : [];
}

type Container = Json[] | { [key: string]: Json };

const isContainer = (value: Json | undefined): value is Container =>
  typeof value === 'object' && value !== null;
const membersOf = (value: Container): Map<string, Json> => new Map(Object.entries(value));

function replace(
  value: Json,
  patterns: readonly string[],
  pointer: string,
  substitute: (part: Json, pointer: string) => string,
): Json {
  if (patterns.includes('')) return substitute(value, pointer);
  if (patterns.length === 0 || !isContainer(value)) return structuredClone(value);
  const copyOf = (part: Json, key: string) =>
    replace(part, below(patterns, childPointer('', key)), childPointer(pointer, key), substitute);
  if (Array.isArray(value)) return value.map((part, index) => copyOf(part, String(index)));
  const entries = Object.entries(value).map(([key, part]) => [key, copyOf(part, key)] as const);
  return Object.fromEntries(entries);
}

/** What is left of the patterns after one segment (`/key`). */
function below(patterns: readonly string[], segment: string): string[] {
  return patterns.flatMap((pattern) => {
    const end = pattern.indexOf('/', 1);
    const first = end === -1 ? pattern : pattern.slice(0, end);
    return first === segment || first === '/*' ? [end === -1 ? '' : pattern.slice(end)] : [];
  });
}
