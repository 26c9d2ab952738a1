/** Durations as people write them: `250ms`, `10s`, `5m`, `24h`, `7d`, or a number of milliseconds. */
import ms from 'ms';

/** A whole number of milliseconds, or text such as `1.5h`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`;

/** Milliseconds, or null for what is no duration: other units, no unit, negative, not a whole number of milliseconds. */
export function parseDuration(value: unknown): number | null {
  const parsed =
    typeof value === 'string' && /^\d{1,15}(\.\d{1,9})?(ms|s|m|h|d)$/.test(value)
      ? ms(value as ms.StringValue)
      : value;
  return typeof parsed === 'number' && Number.isSafeInteger(parsed) && parsed >= 0 ? parsed : null;
}
