/** Facts about strings that JavaScript counts differently from everyone else. */
export { cut, hasLoneSurrogate, keptText } from '../task/text.ts';

/** Whether `text` has more than `limit` Unicode code points (what JSON Schema and SQL count). Cheap on huge strings. */
export const isLongerThan = (text: string, limit: number): boolean =>
  text.length > limit && (text.length > 2 * limit || [...text].length > limit);
