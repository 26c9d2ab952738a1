/** Durations as people write them: `250ms`, `10s`, `5m`, `24h`, `7d`, or a number of milliseconds. */
export { durationMs as parseDuration } from '../task/duration.ts';

/** A whole number of milliseconds, or text such as `1.5h`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`;
