/** Which paths the files example takes. Needs no engine: the folder itself is asked. */
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ConfinedFolder, PathRefused, contentOf, place } from '../../examples/files/confined-folder.ts';

let base: string;
let root: string;
let folder: ConfinedFolder;
beforeEach(async () => {
  base = await realpath(await mkdtemp(join(tmpdir(), 'confined-')));
  root = join(base, 'root');
  folder = await ConfinedFolder.open(root);
  await mkdir(join(root, 'inner'));
  await mkdir(join(base, 'root-sibling'));
  await writeFile(join(base, 'secret.txt'), 'secret');
});
afterEach(() => rm(base, { recursive: true }));

describe('files example, paths', () => {
  test.each(['note.txt', './note.txt', 'inner/note.txt', 'inner/../note.txt', '..note.txt', 'inner/..note'])(
    '%s is a place below the root',
    async (path) => {
      expect(await folder.locate(path)).toBe(join(root, path));
    },
  );

  test.each([
    '../secret.txt',
    'inner/../../secret.txt',
    '../root-sibling/x',
    '/etc/passwd',
    '..',
    '.',
    'inner/',
    'inner/..',
    'note\0.txt',
    'nowhere/note.txt',
    'inner',
    '.holdfast-operations/op_x.before',
    './.holdfast-operations/op_x.before',
    'inner/../.holdfast-operations/x',
  ])('%j is refused', async (path) => {
    await expect(folder.locate(path)).rejects.toBeInstanceOf(PathRefused);
  });

  test('a folder that is a link out of the root is refused, one within is followed', async () => {
    await symlink(base, join(root, 'out'));
    await symlink(join(root, 'inner'), join(root, 'within'));
    await expect(folder.locate('out/secret.txt')).rejects.toThrow('leaves the folder');
    expect(await folder.locate('within/note.txt')).toBe(join(root, 'inner', 'note.txt'));
  });

  test('a link to the example’s own folder does not open it', async () => {
    await symlink(join(root, '.holdfast-operations'), join(root, 'alias'));
    await expect(folder.locate('alias/op_x.before')).rejects.toThrow('not for callers');
  });

  test('a link in place of the file is refused, dangling or not, and never written through', async () => {
    await symlink(join(base, 'secret.txt'), join(root, 'link.txt'));
    await symlink(join(base, 'missing.txt'), join(root, 'dangling.txt'));
    for (const path of ['link.txt', 'dangling.txt']) {
      await expect(folder.locate(path)).rejects.toThrow('link or no file');
    }
    await expect(contentOf(join(root, 'link.txt'))).rejects.toThrow('ELOOP');
    await place(Buffer.from('new'), join(root, 'link.txt'), folder.own('x.next'));
    expect(String(await contentOf(join(base, 'secret.txt')))).toBe('secret');
    expect(String(await contentOf(join(root, 'link.txt')))).toBe('new');
  });
});
