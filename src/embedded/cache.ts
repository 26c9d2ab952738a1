/**
 * Where fetched binaries are kept, and how many processes may fetch one at the same time.
 *
 * 1. A file under its final name is complete: it is written under another name and renamed.
 * 2. While one process fetches, the others wait for it. A lock whose holder is gone is broken; should two processes
 *    break it at once, both fetch, and (1) still holds.
 * 3. Nothing is kept in, or run from, a place that another user could have written to: the machine's temporary folder
 *    is everyone's, and the name of ours in it is known.
 */
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import type { Stats } from 'node:fs';
import { access, link, lstat, mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from './embedded-error.ts';

const LOCK_POLL_MS = 100;
/** Longer than the slowest fetch is given; after it a waiter fetches for itself. */
const LOCK_WAIT_MS = 600_000;

/** The folders to try, best first: the user's cache, the project's, the machine's temporary one. */
export function cacheFolders(env: NodeJS.ProcessEnv): string[] {
  const user = env['XDG_CACHE_HOME'] ?? (env['HOME'] ? join(env['HOME'], '.cache') : undefined);
  return [
    ...(user ? [join(user, 'holdfast')] : []),
    join(process.cwd(), 'node_modules', '.cache', 'holdfast'),
    join(env['TMPDIR'] ?? tmpdir(), `holdfast-${userInfo().uid}`),
  ];
}

export async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** A complete binary that nobody else could have put there. */
export async function isKept(path: string): Promise<boolean> {
  return (await isOurs(dirname(path))) && (await isOurs(path)) && (await isExecutable(path));
}

/** Of a symbolic link the one who made it counts too. False for what is not there. */
async function isOurs(path: string): Promise<boolean> {
  const uid = userInfo().uid;
  try {
    const [named, meant] = await Promise.all([lstat(path), stat(path)]);
    return (named.uid === uid || named.uid === 0) && isSafe(meant, uid);
  } catch {
    return false;
  }
}

const WRITABLE_BY_OTHERS = 0o022;

/** Written by this user or root alone. */
export const isSafe = (found: Pick<Stats, 'uid' | 'mode'>, uid: number): boolean =>
  (found.uid === uid || found.uid === 0) && (found.mode & WRITABLE_BY_OTHERS) === 0;

/** The first folder that takes a file and is ours alone. Its errors name every folder tried. */
export async function firstWritable(folders: readonly string[]): Promise<string> {
  const refusals: string[] = [];
  for (const folder of folders) {
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      if (!(await isOurs(folder))) throw new Error('another user may write to it');
      const probe = join(folder, `.probe-${randomUUID()}`);
      await writeFile(probe, '');
      await rm(probe);
      return folder;
    } catch (error) {
      refusals.push(`${folder}: ${(error as NodeJS.ErrnoException).code ?? messageOf(error)}`);
    }
  }
  throw new Error(`no folder to keep the binary in (${refusals.join('; ')})`);
}

/**
 * Makes `target` once: `produce` gets a scratch folder and returns the finished file in it.
 * Safe under concurrency, across processes; a failing `produce` leaves nothing behind.
 */
export async function fillOnce(target: string, produce: (scratch: string) => Promise<string>): Promise<void> {
  const release = await lock(`${target}.lock`, () => isKept(target));
  try {
    if (await isKept(target)) return;
    const scratch = await mkdtemp(join(dirname(target), '.fetch-'));
    try {
      await rename(await produce(scratch), target);
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
  } finally {
    await release();
  }
}

async function lock(path: string, isDone: () => Promise<boolean>): Promise<() => Promise<void>> {
  const mine = `${path}.${randomUUID()}`;
  await writeFile(mine, String(process.pid));
  const giveUpAt = Date.now() + LOCK_WAIT_MS;
  try {
    for (;;) {
      try {
        await link(mine, path); // fails if it exists; the holder's pid is in it from the first moment
        return () => rm(path, { force: true });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
      if (await isDone()) return () => Promise.resolve();
      if (Date.now() > giveUpAt || !(await holderIsAlive(path))) await rm(path, { force: true });
      else await delay(LOCK_POLL_MS);
    }
  } finally {
    await rm(mine, { force: true });
  }
}

async function holderIsAlive(lockPath: string): Promise<boolean> {
  const content = await readFile(lockPath, 'utf8').catch(() => undefined);
  return content === undefined || isAlive(Number(content)); // released meanwhile: try again
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'; // someone else's, but alive
  }
}
