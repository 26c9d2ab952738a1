// Packs the package as npm would publish it and lets publint and attw judge the tarball: what `exports` names is
// there, has types, and resolves for ESM users. Needs a build.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-pack-'));
try {
  const packed = execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], {
    encoding: 'utf8',
  });
  const filename = /"filename": "([^"]+)"/.exec(packed)?.[1];
  if (!filename) throw new Error(`npm pack named no file: ${packed}`);
  const tarball = join(folder, filename);
  const judges = [
    ['publint', 'run', tarball, '--strict'],
    ['attw', tarball, '--profile', 'esm-only', '--no-emoji', '--format', 'ascii'],
  ];
  for (const judge of judges) {
    const { status } = spawnSync('npx', ['--no-install', ...judge], { stdio: 'inherit' });
    if (status !== 0) process.exitCode = 1;
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
