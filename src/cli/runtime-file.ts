/**
 * `.holdfast/runtime.json`: where a running `holdfast dev` can be reached, so that other commands in the same folder need
 * no settings. Mode 0600, gone when `dev` ends; a file whose process is dead is ignored.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const schema = z.object({
  pid: z.int().positive(),
  temporalAddress: z.string(),
  temporalNamespace: z.string(),
  mcpUrl: z.string().optional(),
  temporalUiUrl: z.string().optional(),
  /** The configuration `dev` was started with, so that `call` in the same folder knows the same actions. */
  configFile: z.string().nullable(),
});
export type RuntimeFile = z.infer<typeof schema>;

const NAME = 'runtime.json';

/** Null when nothing runs here. */
export function readRuntimeFile(stateDir: string): RuntimeFile | null {
  try {
    const runtime = schema.parse(JSON.parse(readFileSync(join(stateDir, NAME), 'utf8')));
    process.kill(runtime.pid, 0);
    return runtime;
  } catch {
    return null;
  }
}

export function writeRuntimeFile(stateDir: string, runtime: RuntimeFile): void {
  mkdirSync(stateDir, { recursive: true });
  const temporary = join(stateDir, `${NAME}.${process.pid}`);
  writeFileSync(temporary, `${JSON.stringify(runtime, null, 2)}\n`, { mode: 0o600 });
  renameSync(temporary, join(stateDir, NAME));
}

/** Only our own: a later `dev` may have taken the place. */
export function removeRuntimeFile(stateDir: string): void {
  if (readRuntimeFile(stateDir)?.pid === process.pid) rmSync(join(stateDir, NAME), { force: true });
}
