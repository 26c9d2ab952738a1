// `npm run approval-grid` as CI and people run it: a process, its exit code and its JSON.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { CellResult } from '../grid/approval-cells.ts';

const SCRIPT = join(import.meta.dirname, '../../scripts/approval-grid.ts');
const FLAGS = ['--experimental-strip-types', '--disable-warning=ExperimentalWarning'];

it('the approval grid is as expected in every cell, effects counted by the target [S4.3] [S4.4] [S4.5] [S4.6] [S4.2] [case 21] [case 18] [case 19]', () => {
  const { status, stdout } = spawnSync(process.execPath, [...FLAGS, SCRIPT, '--json'], { encoding: 'utf8' });
  const cells = JSON.parse(stdout) as CellResult[];
  expect(cells.filter(({ isAsExpected }) => !isAsExpected)).toEqual([]);
  expect(status).toBe(0);
  const names = cells.map(({ cell }) => cell).join('; ');
  for (const played of [
    ...['double approve', 'approve after cancel', 'approve after expiry', 'edit', 'deny, then approve'],
    ...['wrong role', 'wrong challenge three times', 'quorum', 'two replicas'],
    ...['edit into a stricter rule', 'approve with other arguments', 'edit into another action'],
  ])
    expect(names).toContain(played);
});
