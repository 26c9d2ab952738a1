const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** A duration in milliseconds, from `250ms`, `10s`, `1.5h`, `7d` or a number of them; null for anything else. */
export function durationMs(value: unknown): number | null {
  const [, amount, unit] = /^(\d{1,15}(?:\.\d{1,9})?)(ms|s|m|h|d)$/.exec(String(value)) ?? [];
  const ms = typeof value === 'number' ? value : Number(amount) * (UNITS[unit ?? ''] ?? NaN);
  return Number.isSafeInteger(ms) && ms >= 0 ? ms : null;
}
