// The last line of a test run, `N passed, N failed` and `, N skipped` when some were: other people's scripts read it.

export interface Totals {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export function closingLine({ passed, failed, skipped }: Totals): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}
