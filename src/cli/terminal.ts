/**
 * What people see: lines, colours and tables. Colour only on a terminal that wants it (NO_COLOR, TERM=dumb, pipes:
 * none); tables never wider than the terminal; control characters from data never reach it.
 */
import { styleText } from 'node:util';

type Style = 'green' | 'red' | 'yellow' | 'cyan' | 'dim' | 'bold';

export interface Terminal {
  /** Columns to fill; 100 where there is no terminal. */
  width: number;
  write(line: string): void;
  paint(style: Style, text: string): string;
}

export function openTerminal(stream: NodeJS.WriteStream = process.stdout): Terminal {
  const hasColour =
    stream.isTTY === true && process.env['NO_COLOR'] === undefined && process.env['TERM'] !== 'dumb';
  return {
    width: stream.isTTY === true ? Math.max(60, stream.columns) : 100,
    write: (line) => void stream.write(`${line}\n`),
    paint: (style, text) => (hasColour ? styleText(style, text, { validateStream: false }) : text),
  };
}

/** Text from outside made harmless on a terminal: no control or escape characters, on one line. */
export function oneLine(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g, ' ').trim();
}

export interface Column<Row> {
  title: string;
  cell: (row: Row) => string;
  /** Shrinks when the table is too wide, the widest first; at least 8 columns remain. */
  flexible?: boolean;
  /** Of a flexible one: how many remain instead. */
  least?: number;
}

/** Rows as aligned lines, the title line first. The flexible columns are cut with `…` to fit `width`. */
export function tableLines<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  width: number,
): string[] {
  const cells = [
    columns.map((column) => column.title),
    ...rows.map((row) => columns.map((column) => oneLine(column.cell(row)))),
  ];
  const widths = columns.map((_, index) => Math.max(...cells.map((line) => line[index]?.length ?? 0)));
  fit(widths, columns, width);
  return cells.map((line) =>
    line
      .map((cell, index) => cut(cell, widths[index] ?? 0).padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

function fit<Row>(widths: number[], columns: readonly Column<Row>[], width: number): void {
  const gaps = 2 * (columns.length - 1);
  const spareOf = (index: number): number =>
    columns[index]?.flexible === true ? (widths[index] ?? 0) - (columns[index].least ?? 8) : 0;
  for (let excess = widths.reduce((sum, one) => sum + one, gaps) - width; excess > 0; excess -= 1) {
    const widest = widths.reduce((found, _, index) => (spareOf(index) > spareOf(found) ? index : found), 0);
    if (spareOf(widest) <= 0) return;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`;
}

/** `3s`, `4m 10s`, `2h 5m`, `3d 4h`: at most two parts. */
export function humanDuration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))}ms`;
  const units = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['m', 60_000],
    ['s', 1_000],
  ] as const;
  const parts: string[] = [];
  let rest = ms;
  for (const [unit, size] of units) {
    const count = Math.floor(rest / size);
    if (count > 0 && parts.length < 2) parts.push(`${count}${unit}`);
    rest -= count * size;
  }
  return parts.join(' ');
}
