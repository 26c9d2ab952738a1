/** The ledger's address as it is used: absolute, and never one that dies with the process (S10.1). */
import { isAbsolute, join, resolve } from 'node:path';
import { HoldfastError } from '../src/contract/error.ts';

/** `url` null: the SQLite file of one-machine use. */
export function checkLedgerUrl(url: string | null, cwd: string, stateDir: string): string {
  if (url === null) return `sqlite:${join(stateDir, 'ledger.db')}`;
  if (!url.startsWith('sqlite:')) return url;
  const path = url.slice('sqlite:'.length);
  if (/:memory:|mode=memory/i.test(path)) {
    throw new HoldfastError(
      'ledger_unsuitable',
      'HOLDFAST_DATABASE_URL names a database in memory: the record of what was done would die with the process. Use `sqlite:FILE` on a local disk, or PostgreSQL.',
      { details: { name: 'HOLDFAST_DATABASE_URL' } },
    );
  }
  return isAbsolute(path) ? url : `sqlite:${resolve(cwd, path)}`;
}
