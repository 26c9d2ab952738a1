/** One measured number, what it must be, and how a run of them is shown. */

/** A bound that a figure is held to; `null` where it is only told. */
export type Bar = { atMost: number } | { atLeast: number } | { exactly: number } | null;

export interface Figure {
  name: string;
  /** Null when it could not be measured here; `unit` then says why. */
  value: number | null;
  unit: string;
  bar: Bar;
}

/** What `--json` prints for each. `bar` is text such as `<= 0.85`, or null. */
export interface FigureLine {
  name: string;
  value: number | null;
  unit: string;
  bar: string | null;
  ok: boolean;
}

export function figure(name: string, value: number | null, unit: string, bar: Bar = null): Figure {
  return { name, value, unit, bar };
}

export const lineOf = ({ name, value, unit, bar }: Figure): FigureLine => ({
  name,
  value: value === null ? null : rounded(value),
  unit,
  bar: barText(bar),
  ok: value === null || meets(value, bar),
});

function meets(value: number, bar: Bar): boolean {
  if (bar === null) return true;
  if ('atMost' in bar) return value <= bar.atMost;
  return 'atLeast' in bar ? value >= bar.atLeast : value === bar.exactly;
}

function barText(bar: Bar): string | null {
  if (bar === null) return null;
  if ('atMost' in bar) return `<= ${bar.atMost}`;
  return 'atLeast' in bar ? `>= ${bar.atLeast}` : `= ${bar.exactly}`;
}

/** Three digits say all that a noisy machine knows. */
const rounded = (value: number): number =>
  Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3));

export function tableOf(lines: readonly FigureLine[]): string {
  const rows = lines.map(({ name, value, unit, bar, ok }) => [
    ok ? ' ' : '!',
    name,
    value === null ? '–' : String(value),
    unit,
    bar ?? '',
  ]);
  const table = [['', 'figure', 'value', 'unit', 'bar'], ...rows];
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  return table
    .map((row) =>
      row
        .map((cell, column) =>
          column === 2 ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
        )
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
