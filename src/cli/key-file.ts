/** The encryption key that one-machine use makes and keeps with its state (interfaces.md "Secrets in history"). */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const fileIn = (stateDir: string): string => join(stateDir, 'encryption-key');

export function readKey(stateDir: string): string | undefined {
  const file = fileIn(stateDir);
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined;
}

/** Answers the one that is there, if there is one. */
export function ensureKey(stateDir: string): string {
  const found = readKey(stateDir);
  if (found !== undefined) return found;
  const key = randomBytes(32).toString('base64');
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  writeFileSync(fileIn(stateDir), `${key}\n`, { mode: 0o600, flag: 'wx' });
  return key;
}
