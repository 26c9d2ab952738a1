/**
 * `npm run approval-grid [-- --json]`: plays the approval grid on a Temporal server of its own and prints what each cell
 * came to, with effects as the target counts them. Exit code 1 when any cell is not as expected.
 */
import { tableLines } from '../src/cli/terminal.ts';
import { ApprovalGrid } from '../test/grid/approval-cells.ts';
import type { CellResult } from '../test/grid/approval-cells.ts';

const WIDTH = 150;

const grid = await ApprovalGrid.open();
try {
  const results = await grid.play();
  if (process.argv.includes('--json')) console.log(JSON.stringify(results));
  else for (const line of tableLines(results, columns(), WIDTH)) console.log(line);
  process.exitCode = results.every(({ isAsExpected }) => isAsExpected) ? 0 : 1;
} finally {
  await grid.close();
}

function columns() {
  return [
    { title: '', cell: ({ isAsExpected }: CellResult) => (isAsExpected ? '✓' : '✗') },
    { title: 'CELL', cell: ({ cell }: CellResult) => cell },
    {
      title: 'EFFECTS',
      cell: ({ effects, effectsExpected }: CellResult) => `${effects} of ${effectsExpected}`,
    },
    {
      title: 'CENTS',
      cell: ({ cents, centsExpected }: CellResult) => `${cents} of ${centsExpected}`,
    },
    { title: 'SEEN', cell: ({ seen }: CellResult) => seen },
    {
      title: 'EXPECTED',
      cell: ({ expected, seen }: CellResult) => (seen === expected ? 'the same' : expected),
      flexible: true,
    },
  ];
}
