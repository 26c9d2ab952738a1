const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Milliseconds, from `250ms`, `10s`, `1.5h` or a number of them; null for other units, no unit, negative, or not a whole number of milliseconds. */
export function durationMs(value: unknown): number | null {
  const ms = typeof value === 'string' ? textMs(value) : value;
  return typeof ms === 'number' && Number.isSafeInteger(ms) && ms >= 0 ? ms : null;
}

function textMs(text: string): number {
  const [, amount, unit = ''] = /^(\d{1,15}(?:\.\d{1,9})?)(ms|s|m|h|d)$/.exec(text) ?? [];
  return Number(amount) * (UNITS[unit] ?? NaN);
}
