/**
 * One folder and nothing outside it. Every path a caller names comes through `locate`.
 *
 * Invariants:
 * 1. What `locate` answers lies, with every symbolic link followed, in a folder below the root.
 * 2. The name itself is never followed: a symbolic link there is refused, and a rename replaces a name, not its target.
 * 3. The sub-folder `.holdfast-operations` belongs to the example and can't be named by a caller.
 *
 * Not guarded: another process that swaps a folder for a link between `locate` and the write. Give the root to nobody else.
 */
import { constants } from 'node:fs';
import { lstat, mkdir, open, readFile, realpath, rename, rm } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, normalize, sep } from 'node:path';

const OWN_FOLDER = '.holdfast-operations';

export class PathRefused extends Error {}

export class ConfinedFolder {
  private readonly root: string;

  private constructor(root: string) {
    this.root = root;
  }

  /** Creates the root and the example's own sub-folder when they are missing. */
  static async open(root: string): Promise<ConfinedFolder> {
    await mkdir(join(root, OWN_FOLDER), { recursive: true, mode: 0o700 });
    return new ConfinedFolder(await realpath(root));
  }

  /** The absolute path of a caller's relative one. Throws {@link PathRefused} for all that isn't a file's place below the root. */
  async locate(path: string): Promise<string> {
    const clean = normalize(path);
    const parts = clean.split(sep);
    if (path.includes('\0') || isAbsolute(path)) throw new PathRefused('the path is not relative');
    if (parts.includes('..')) throw new PathRefused('the path leaves the folder');
    if (parts[0]?.toLowerCase() === OWN_FOLDER) throw new PathRefused(`${OWN_FOLDER} is not for callers`);
    if (basename(clean) === '.' || path.endsWith(sep)) throw new PathRefused('the path names no file');
    const folder = await realpath(join(this.root, dirname(clean))).catch(() => null);
    if (folder === null) throw new PathRefused(`there is no folder ${dirname(clean)}`);
    const own = join(this.root, OWN_FOLDER);
    if (folder === own || folder.startsWith(own + sep))
      throw new PathRefused(`${OWN_FOLDER} is not for callers`);
    if (folder !== this.root && !folder.startsWith(this.root + sep))
      throw new PathRefused('the path leaves the folder');
    const place = join(folder, basename(clean));
    const found = await lstat(place).catch(() => null);
    if (found && !found.isFile()) throw new PathRefused(`${clean} is a link or no file`);
    return place;
  }

  /** Where the example keeps what belongs to one operation. */
  own(name: string): string {
    return join(this.root, OWN_FOLDER, name);
  }
}

/** The content, or null where there is no file. Never follows a link. */
export async function contentOf(place: string): Promise<Buffer | null> {
  return await readFile(place, { flag: constants.O_RDONLY | constants.O_NOFOLLOW }).catch(
    (error: unknown) => {
      if (isMissing(error)) return null;
      throw error;
    },
  );
}

/** Puts content at a place so that it is there whole or not at all, and survives a power cut. */
export async function place(content: Buffer, at: string, via: string): Promise<void> {
  await stage(content, via);
  await moveTo(via, at);
}

/** Writes and flushes, under a name that nobody reads yet. */
export async function stage(content: Buffer, at: string): Promise<void> {
  const file = await open(at, 'w');
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Atomic on one file system; the folder is flushed too. */
export async function moveTo(from: string, to: string): Promise<void> {
  await rename(from, to);
  await syncFolder(dirname(to));
}

export async function remove(at: string): Promise<void> {
  await rm(at, { force: true });
  await syncFolder(dirname(at));
}

const isMissing = (error: unknown): boolean => (error as { code?: unknown }).code === 'ENOENT';

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
