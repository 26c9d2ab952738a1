/**
 * docs/crash-windows.md: prose written by hand, tables written by the tests that measured them, each between its
 * markers. `HOLDFAST_WRITE_DOCS=1` writes them; any other run asserts that what it measured is what stands there.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';

const file = fileURLToPath(new URL('../../docs/crash-windows.md', import.meta.url));

export function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

/** `isExact` false: numbers of the clock, which are shown and not compared. */
export function recordTable(name: string, table: string, { isExact = true } = {}): void {
  const [begin, end] = [`<!-- measured: ${name} -->`, `<!-- end of ${name} -->`];
  const text = readFileSync(file, 'utf8');
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from === -1 || to === -1) throw new Error(`docs/crash-windows.md has no place for ${name}`);
  const stands = text.slice(from + begin.length, to).trim();
  if (process.env['HOLDFAST_WRITE_DOCS'] === '1') {
    writeFileSync(file, `${text.slice(0, from)}${begin}\n\n${table}\n\n${text.slice(to)}`);
  } else if (isExact) expect(stands).toEqual(table);
}
