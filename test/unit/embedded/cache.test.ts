import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cacheFolders, fillOnce, firstWritable, isKept, isSafe } from '../../../src/embedded/cache.ts';

let folder: string;
let target: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-cache-'));
  target = join(folder, 'binary');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const producing = (content: string, calls: string[]) => (scratch: string) => {
  calls.push(content);
  const path = join(scratch, 'any-name');
  writeFileSync(path, content, { mode: 0o755 });
  return Promise.resolve(path);
};

describe('filling the cache', () => {
  it('prefers the user cache, then the project, then the temporary folder', () => {
    const [first] = cacheFolders({ XDG_CACHE_HOME: '/xdg', HOME: '/home/me' });
    expect(first).toBe('/xdg/holdfast');
    expect(cacheFolders({ HOME: '/home/me' })[0]).toBe('/home/me/.cache/holdfast');
    expect(cacheFolders({ TMPDIR: '/t' })).toHaveLength(2);
  });

  it('fetches once for many who ask at the same time', async () => {
    const calls: string[] = [];
    await Promise.all(Array.from({ length: 8 }, (_, i) => fillOnce(target, producing(`copy ${i}`, calls))));
    expect(calls).toHaveLength(1);
    expect(readFileSync(target, 'utf8')).toBe(calls[0]);
    expect(readdirSync(folder)).toEqual(['binary']);
  });

  it('lets the next one try after a failure, and leaves no lock and no scratch behind', async () => {
    const calls: string[] = [];
    await expect(fillOnce(target, () => Promise.reject(new Error('cut off')))).rejects.toThrow('cut off');
    expect(readdirSync(folder)).toEqual([]);
    await fillOnce(target, producing('second', calls));
    expect(readFileSync(target, 'utf8')).toBe('second');
  });

  it('puts its own in the place of one that another user could have written', async () => {
    writeFileSync(target, 'planted', { mode: 0o755 });
    chmodSync(target, 0o757);
    await fillOnce(target, producing('fetched', []));
    expect(readFileSync(target, 'utf8')).toBe('fetched');
  });

  it('breaks the lock of a process that is gone', async () => {
    const gone = spawnSync(process.execPath, ['-e', '']);
    writeFileSync(`${target}.lock`, String(gone.pid));
    const calls: string[] = [];
    await fillOnce(target, producing('mine', calls));
    expect(calls).toEqual(['mine']);
  });
});

describe('what is run from the cache', () => {
  it('is an executable that no other user could have put there', async () => {
    writeFileSync(target, 'ours', { mode: 0o755 });
    expect(await isKept(target)).toBe(true);
    symlinkSync(target, join(folder, 'link'));
    expect(await isKept(join(folder, 'link'))).toBe(true);
    for (const mode of [0o644, 0o775, 0o757]) {
      chmodSync(target, mode);
      expect(await isKept(target)).toBe(false);
    }
    chmodSync(target, 0o755);
    chmodSync(folder, 0o777);
    expect(await isKept(target)).toBe(false);
    expect(await isKept(join(folder, 'missing'))).toBe(false);
  });

  it('is owned by this user or root', () => {
    const mode = 0o100755;
    expect([1_000, 0, 1_001].map((uid) => isSafe({ uid, mode }, 1_000))).toEqual([true, true, false]);
  });

  it('is kept in no folder that others may write to', async () => {
    const [open, own] = [join(folder, 'open'), join(folder, 'own')];
    mkdirSync(open);
    chmodSync(open, 0o777);
    expect(await firstWritable([open, own])).toBe(own);
    await expect(firstWritable([open])).rejects.toThrow(/open: another user may write to it/);
  });
});
