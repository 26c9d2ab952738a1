/**
 * Owns one state folder: who runs a server on it, and what the last server was.
 *
 * 1. At most one live process holds the folder. The lock is the operating system's, taken through SQLite, and goes
 *    with the process however it ends; process ids in files are for messages, never for the decision.
 * 2. `temporal.json` is replaced as a whole and readable by its owner alone.
 */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { EmbeddedError } from './embedded-error.ts';

export interface ServerRecord {
  readonly ownerPid: number;
  /** Absent once the server was stopped in order. */
  readonly serverPid?: number;
  readonly port: number;
  readonly uiPort?: number;
}

export interface StateFolder {
  readonly path: string;
  read(): Promise<ServerRecord | undefined>;
  write(record: ServerRecord): Promise<void>;
  release(): void;
}

/** Takes the folder, or throws `state_dir_in_use` with the holder's pid. */
export async function takeStateFolder(path: string): Promise<StateFolder> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  const recordPath = join(path, 'temporal.json');
  const read = () => readRecord(recordPath);
  const write = (record: ServerRecord) => writeWhole(recordPath, JSON.stringify(record));

  const release = takeLock(join(path, 'temporal.lock'));
  if (!release) {
    const holder = await read();
    const pid = holder?.ownerPid;
    throw new EmbeddedError(
      'state_dir_in_use',
      `${path} is in use by process ${pid ?? '(just starting)'}: stop it, or choose another state folder`,
      { details: pid === undefined ? {} : { pid } },
    );
  }
  return { path, read, write, release };
}

/** Keeps held locks from the garbage collector, which would let go of them. */
const held = new Set<Database.Database>();

function takeLock(path: string): (() => void) | undefined {
  const lock = new Database(path, { timeout: 0 });
  try {
    lock.exec('BEGIN EXCLUSIVE');
    held.add(lock);
    return () => {
      held.delete(lock);
      lock.close();
    };
  } catch (error) {
    lock.close();
    if ((error as { code?: string }).code === 'SQLITE_BUSY') return undefined;
    throw error;
  }
}

async function readRecord(path: string): Promise<ServerRecord | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as ServerRecord;
  } catch {
    return undefined; // never written: the server before had no time to, or there was none
  }
}

async function writeWhole(path: string, content: string): Promise<void> {
  const unfinished = `${path}.${process.pid}`;
  await writeFile(unfinished, `${content}\n`, { mode: 0o600 });
  await rename(unfinished, path);
}
