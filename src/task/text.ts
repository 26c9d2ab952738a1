/** What text and JSON from outside must be before they are recorded: a journal or audit that can't be written stops its task. */

const SURROGATE = /\p{Surrogate}/u;
const SURROGATES = /\p{Surrogate}/gu;
/** As deep as arguments and results may be (docs/limits.md, `nestingDepthMax`). */
const DEPTH_MAX = 100;

/** True when `text` holds half of a surrogate pair: it has no UTF-8 form, so no two systems would keep it alike. */
export const hasLoneSurrogate = (text: string): boolean => SURROGATE.test(text);

/** At most `limit` UTF-16 units, ending in `…` when cut, never cut inside a surrogate pair. */
export function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  return `${text.slice(0, limit - 1).replace(/\p{Surrogate}$/u, '')}…`;
}

/** Text from outside made fit to be kept: well-formed, and at most `limit` UTF-16 units. */
export const keptText = (text: string, limit: number): string =>
  cut(text, limit).replace(SURROGATES, '\ufffd');

/** Whether a value that came as JSON can be recorded as it is. Never throws, however deep the value. */
export function isKeepable(value: unknown, depth = 0): boolean {
  if (typeof value === 'string') return !hasLoneSurrogate(value);
  if (typeof value !== 'object' || value === null) return true;
  if (depth >= DEPTH_MAX) return false;
  return Object.entries(value).every(([key, part]) => !hasLoneSurrogate(key) && isKeepable(part, depth + 1));
}
