/** Facts about strings that JavaScript counts differently from everyone else. */

/** True when `text` holds half of a surrogate pair: it has no UTF-8 form, so no two systems would keep it alike. */
export const hasLoneSurrogate = (text: string): boolean => /\p{Surrogate}/u.test(text);

/** Whether `text` has more than `limit` Unicode code points (what JSON Schema and SQL count). Cheap on huge strings. */
export const isLongerThan = (text: string, limit: number): boolean =>
  text.length > limit && (text.length > 2 * limit || [...text].length > limit);

/** Text from outside made fit to be kept: well-formed, and at most `limit` UTF-16 units. */
export const keptText = (text: string, limit: number): string =>
  cut(text, limit).replace(/\p{Surrogate}/gu, '\ufffd');

/** At most `limit` UTF-16 units, ending in `…` when cut, never cut inside a surrogate pair. */
export function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  return `${text.slice(0, limit - 1).replace(/\p{Surrogate}$/u, '')}…`;
}
