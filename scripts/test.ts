/**
 * `npm test`: check, build, package checks, then every test; arguments go to vitest (`npm test -- -t crash`).
 * A step that fails doesn't keep the later ones from running: it counts as one failure in the closing line, which is
 * always the last line, and the exit code is 0 only when nothing failed.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { closingLine } from '../test/closing-line.ts';
import type { Totals } from '../test/closing-line.ts';

const run = (command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): boolean =>
  spawnSync(command, args, { stdio: 'inherit', env }).status === 0;

const failedSteps = ['check', 'build', 'package'].filter((step) => !run('npm', ['run', '--silent', step]));

const folder = mkdtempSync(join(tmpdir(), 'holdfast-test-'));
const totalsFile = join(folder, 'totals.json');
const passed = run('npx', ['--no-install', 'vitest', 'run', ...process.argv.slice(2)], {
  ...process.env,
  HOLDFAST_TEST_TOTALS: totalsFile,
});
const tests = readTotals();
rmSync(folder, { recursive: true, force: true });

for (const step of failedSteps) console.log(`failed: npm run ${step}`);
const failed = Math.max(tests.failed, passed ? 0 : 1) + failedSteps.length;
console.log(closingLine({ ...tests, failed }));
process.exitCode = failed === 0 ? 0 : 1;

function readTotals(): Totals {
  try {
    return JSON.parse(readFileSync(totalsFile, 'utf8')) as Totals;
  } catch {
    return { passed: 0, failed: 0, skipped: 0 }; // vitest died before it could report
  }
}
