/** One-machine use: the embedded Temporal server and a key of its own, in the state folder (interfaces.md "Secrets in history"). */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { EmbeddedError, startEmbeddedTemporal } from '../embedded/index.ts';
import type { EmbeddedTemporal } from '../embedded/index.ts';
import { HoldfastError } from '../contract/error.ts';
import { KEY_FILE } from './session.ts';

/** Makes the folder's encryption key once, mode 0600, unless the environment names one. */
export function ensureEncryptionKey(stateDir: string): void {
  if (process.env['HOLDFAST_ENCRYPTION_KEY'] !== undefined) return;
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  const file = join(stateDir, KEY_FILE);
  if (!existsSync(file))
    writeFileSync(file, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600, flag: 'wx' });
}

/** Throws `embedded_unavailable` with what to do. */
export async function startDevEngine(
  stateDir: string,
  say: (line: string) => void,
): Promise<EmbeddedTemporal> {
  try {
    return await startEmbeddedTemporal({ stateDir: resolve(stateDir, 'temporal'), log: say });
  } catch (error) {
    return withReason(error);
  }
}

/** What the embedded server's own errors are to a user: `embedded_unavailable`, with what to do. */
export function withReason(error: unknown): never {
  if (!(error instanceof EmbeddedError)) throw error;
  throw new HoldfastError('embedded_unavailable', error.message, {
    details: { reason: error.code },
    cause: error,
  });
}
