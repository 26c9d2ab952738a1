/**
 * JSON pointers (RFC 6901), and patterns of them in which the segment `*` stands for any index or key. A key that is
 * itself `*` is matched by the same pattern; no escape exists, since a wider match only hides more.
 */

import { LIMITS } from './limits.ts';
import { cut } from './text.ts';

const escapeSegment = (segment: string | number): string =>
  String(segment).replaceAll('~', '~0').replaceAll('/', '~1');

/** The pointer of a child: `childPointer('/a', 'b/c')` is `/a/b~1c`. */
export const childPointer = (parent: string, segment: string | number): string =>
  `${parent}/${escapeSegment(segment)}`;

export const pointerOf = (segments: readonly PropertyKey[]): string =>
  segments
    .map((segment) => `/${escapeSegment(typeof segment === 'symbol' ? String(segment) : segment)}`)
    .join('');

/** A pointer as errors name it: cut, since a key may be as long as the arguments. */
export const toldPointer = (pointer: string): string => cut(pointer, LIMITS.toldPathMax.value);

/** Whether `pointer` lies at `pattern` or below it. */
export function isUnder(pointer: string, pattern: string): boolean {
  const actual = pointer.split('/');
  const expected = pattern.split('/');
  return expected.every(
    (segment, index) => index < actual.length && (segment === '*' || segment === actual[index]),
  );
}
