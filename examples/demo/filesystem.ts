/** The filesystem server of examples/upstream as the demo has it: the installed package, and held answers on request. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { HoldfastConfig } from '../../src/index.ts';
import filesystem from '../upstream/filesystem/holdfast.config.ts';

const EXTENSION = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
const PIPE = fileURLToPath(new URL(`held-answers.${EXTENSION}`, import.meta.url));

/** Absent where the package is not installed, or the demo has given it no folder. */
export function filesystemServer(): Pick<HoldfastConfig, 'upstreams'> {
  const folder = process.env['HOLDFAST_DEMO_FILES'];
  const entry = installed('@modelcontextprotocol/server-filesystem/dist/index.js');
  const files = filesystem.upstreams?.['files'];
  if (folder === undefined || entry === null || files === undefined) return {};
  const args = [PIPE, join(folder, 'held'), 'write_file', process.execPath, entry, join(folder, 'root')];
  return { upstreams: { files: { ...files, command: process.execPath, args } } };
}

function installed(file: string): string | null {
  try {
    return createRequire(import.meta.url).resolve(file);
  } catch {
    return null;
  }
}
