/** The few numbers that a series of measurements is cut down to. Pure. */

/** The value below which `share` (0 to 1) of `samples` lie. At least one sample. */
export function quantile(samples: readonly number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  const at = Math.min(sorted.length - 1, Math.floor(share * sorted.length));
  const value = sorted[at];
  if (value === undefined) throw new Error('a quantile of nothing');
  return value;
}

export const median = (samples: readonly number[]): number => quantile(samples, 0.5);
