/** The workflow bundle as a file, built once for each state of the sources, so that children start without a bundler. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflows } from '../../scripts/workflow-bundle.ts';

export async function workflowBundleFile(): Promise<string> {
  const folder = join(tmpdir(), 'holdfast-test-bundles');
  const file = join(folder, `${sourceHash()}.js`);
  if (existsSync(file)) return file;
  mkdirSync(folder, { recursive: true });
  const unfinished = `${file}.${process.pid}`;
  writeFileSync(unfinished, (await bundleWorkflows()).code);
  renameSync(unfinished, file);
  return file;
}

/** Folders whose files a workflow may be made of; its packages are the lock file's. */
export const BUNDLED_FOLDERS = ['workflows/', 'src/task/', 'src/procedure/', 'src/contract/'];
const OTHERS = ['package-lock.json', 'scripts/workflow-bundle.ts'];

function sourceHash(): string {
  const hash = createHash('sha256');
  const at = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
  for (const file of OTHERS) hash.update(readFileSync(at(file)));
  for (const folder of BUNDLED_FOLDERS) {
    const path = at(folder);
    for (const name of readdirSync(path).sort()) hash.update(name).update(readFileSync(join(path, name)));
  }
  return hash.digest('hex').slice(0, 16);
}
