/** The package as it is built and installed: what memory is measured of. Built first where a source is newer. */
import { spawnSync } from 'node:child_process';
import { globSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const LAST_WRITTEN = join(ROOT, 'dist/workflow-bundle.js');

/** The entry of the command line. */
export function builtEntry(): string {
  if (isStale()) {
    const { status } = spawnSync('npm', ['run', '--silent', 'build'], {
      cwd: ROOT,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    if (status !== 0) throw new Error('`npm run build` failed');
  }
  return join(ROOT, 'dist/src/cli/main.js');
}

function isStale(): boolean {
  const builtAt = changedAt(LAST_WRITTEN);
  const sources = globSync('{src,workflows,activities,worker}/**/*.ts', { cwd: ROOT });
  return sources.some((source) => changedAt(join(ROOT, source)) > builtAt);
}

/** 0 for what is not there. */
const changedAt = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
