/**
 * JSON text read without losing anything (M1.6). `JSON.parse` keeps the last of two equal keys and rounds large
 * integers without a word; here both are refused, so that nobody acts on other arguments than were sent.
 */
import type { Json } from '../task/json.ts';
import { inexactArguments, tryExactJson } from './canonical.ts';
import type { InexactValue } from './canonical.ts';
import { pointerOf } from './pointer.ts';

/**
 * The value of `text`. Throws `invalid_arguments` with the JSON pointer for a number that is an integer beyond 2^53
 * however it is written (`9007199254740993`, `1e30`), overflows or underflows, a key that is there twice (also as
 * `"a"` and `"\u0061"`), a lone surrogate, nesting beyond 100 levels; and without one for text that is no JSON. Decimal
 * fractions get the nearest double, as everywhere. The message never quotes the text.
 */
export function parseExactJson(text: string): Json {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    // V8's message quotes the text.
    throw inexactArguments([{ path: '', message: 'not JSON', expected: 'JSON text (RFC 8259)' }]);
  }
  const exact = tryExactJson(parsed);
  if (!exact.ok) throw inexactArguments([exact.issue]);
  const issue = lostInParsing(text);
  if (issue !== null) throw inexactArguments([issue]);
  return exact.value;
}

/** An array or object being read. */
interface Frame {
  /** Keys seen so far; null in an array. */
  keys: Set<string> | null;
  /** The member being read: its key, or its index. */
  member: string | number;
  /** In an object: the next string is a key. */
  expectsKey: boolean;
}

/** What `JSON.parse` dropped or changed without leaving a trace in its answer. `text` is known to be valid JSON. */
function lostInParsing(text: string): InexactValue | null {
  const frames: Frame[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const frame = frames.at(-1);
    const here = () => pointerOf(frames.map(({ member }) => member));
    const char = text.charAt(at);
    if (char === '{') frames.push({ keys: new Set(), member: '', expectsKey: true });
    else if (char === '[') frames.push({ keys: null, member: 0, expectsKey: false });
    else if (char === '}' || char === ']') frames.pop();
    else if (char === ',' && frame !== undefined) nextMember(frame);
    else if (char === '"') {
      const end = endOfString(text, at);
      if (frame?.expectsKey && takesKey(frame, JSON.parse(text.slice(at, end)) as string) === 'twice') {
        return { path: here(), message: 'a key that is there twice', expected: 'each key once' };
      }
      at = end - 1;
    } else if (char === '-' || (char >= '0' && char <= '9')) {
      const literal = /[-+.0-9eE]+/y;
      literal.lastIndex = at;
      const digits = literal.exec(text)?.[0] ?? char;
      if (Number(digits) === 0 && /[1-9]/.test(digits.replace(/e.*/i, ''))) {
        return { path: here(), message: 'a number too small to keep', expected: 'a string of digits' };
      }
      at += digits.length - 1;
    }
  }
  return null;
}

function nextMember(frame: Frame): void {
  if (typeof frame.member === 'number') frame.member += 1;
  else frame.expectsKey = true;
}

function takesKey(frame: Frame, key: string): 'first' | 'twice' {
  frame.member = key;
  frame.expectsKey = false;
  if (frame.keys?.has(key)) return 'twice';
  frame.keys?.add(key);
  return 'first';
}

/** The index after the closing quote of the string that opens at `start`. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (text.charAt(at) !== '"') at += text.charAt(at) === '\\' ? 2 : 1;
  return at + 1;
}
