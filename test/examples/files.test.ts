/** The oracle is the folder. */
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { writeFile as contract } from '../../examples/files/actions.ts';
import { write } from '../../examples/files/handlers.ts';
import { implementAction } from '../../src/index.ts';
import { openTestServer } from '../../src/testing/index.ts';
import type { TestServer } from '../../src/testing/index.ts';
import { handlersOf, openExample } from './open-example.ts';
import type { OpenExample } from './open-example.ts';

const handlers = handlersOf(write, contract);
type Handlers = typeof handlers;
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

let root: string;
let server: TestServer;
let example: OpenExample<unknown>;
const open = async (action = write) => {
  example = await openExample(server, [action]);
};
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'files-example-'));
  process.env['HOLDFAST_FILES_ROOT'] = root;
});
afterEach(async () => {
  await example.close();
  await rm(root, { recursive: true });
});

const held = (path: string) => readFile(join(root, path), 'utf8').catch(() => null);

beforeAll(async () => {
  server = await openTestServer('local');
});
afterAll(() => server.close());

describe('files example', () => {
  test('[S2.6] a file is written, read back, and its hash is the result', async () => {
    await open();
    await writeFile(join(root, 'note.txt'), 'before');
    const end = await example.call('write_file', { path: 'note.txt', content: 'after' }, 'n1');
    expect(end).toMatchObject({
      status: 'completed',
      result: { path: 'note.txt', sha256: sha256('after'), bytes: 5, previousSha256: sha256('before') },
    });
    expect(await held('note.txt')).toBe('after');
  });

  test('[S1.5] the same key again writes nothing, even when the file changed since', async () => {
    await open();
    await example.call('write_file', { path: 'note.txt', content: 'mine' }, 'n1');
    await writeFile(join(root, 'note.txt'), 'theirs');
    expect(await example.call('write_file', { path: 'note.txt', content: 'mine' }, 'n1')).toMatchObject({
      replayed: true,
    });
    expect(await held('note.txt')).toBe('theirs');
  });

  test('[S2.2] it is written only over what the caller saw', async () => {
    await open();
    await writeFile(join(root, 'note.txt'), 'changed meanwhile');
    const args = { path: 'note.txt', content: 'mine', ifSha256: sha256('seen') };
    expect(await example.call('write_file', args, 'n1')).toMatchObject({ cause: 'precondition_failed' });
    expect(await held('note.txt')).toBe('changed meanwhile');
    const fresh = { path: 'new.txt', content: 'mine', ifSha256: null };
    expect(await example.call('write_file', fresh, 'n2')).toMatchObject({ status: 'completed' });
    expect(await example.call('write_file', fresh, 'n3')).toMatchObject({ cause: 'precondition_failed' });
  });

  test('a path out of the root is refused and nothing is written', async () => {
    await open();
    const end = await example.call('write_file', { path: '../escaped.txt', content: 'x' }, 'n1');
    expect(end).toMatchObject({ status: 'failed', effect: 'none', cause: 'precondition_failed' });
    expect(await held('../escaped.txt')).toBeNull();
  });

  test.each([
    ['before the rename', 1],
    ['after the rename', 2],
  ])('[S2.4] [S2.11] an attempt that breaks %s is settled by what it left behind', async (when) => {
    let executions = 0;
    const breaking: Handlers = {
      ...handlers,
      execute: async (input, context) => {
        executions += 1;
        if (executions > 1) return handlers.execute(input, context);
        const assertOwner = () => Promise.reject(new Error('as good as dead'));
        await handlers.execute(input, when === 'before the rename' ? { ...context, assertOwner } : context);
        throw new Error('as good as dead');
      },
    };
    await open(implementAction(contract, breaking));
    await writeFile(join(root, 'note.txt'), 'before');
    const end = await example.call('write_file', { path: 'note.txt', content: 'after' }, 'n1');
    expect(end).toMatchObject({ status: 'completed', result: { previousSha256: sha256('before') } });
    expect(executions).toBe(when === 'before the rename' ? 2 : 1);
    expect(await held('note.txt')).toBe('after');
  });
});

describe('files example, undone', () => {
  /** Written as asked, and then taken for wrong. */
  const cancelled = async (before: string | null, meanwhile?: string) => {
    let release = () => {};
    const gate = new Promise<void>((resolve) => (release = resolve));
    let written = () => {};
    const arrived = new Promise<void>((resolve) => (written = resolve));
    const slow: Handlers = {
      ...handlers,
      execute: async (input, context) => {
        const result = await handlers.execute(input, context);
        written();
        await gate;
        return result;
      },
      ...(meanwhile !== undefined && { verify: () => Promise.resolve({ kind: 'verified' as const }) }),
    };
    await open(implementAction(contract, slow));
    if (before !== null) await writeFile(join(root, 'note.txt'), before);
    const { taskId } = await example.start('write_file', { path: 'note.txt', content: 'after' }, 'n1');
    await arrived;
    await example.cancel(taskId);
    if (meanwhile !== undefined) await writeFile(join(root, 'note.txt'), meanwhile);
    release();
    return example.wait(taskId);
  };

  test.each([['before'], [null]])('[S6.1] [S7.4] a cancel puts back what was there: %j', async (before) => {
    expect(await cancelled(before)).toMatchObject({ status: 'cancelled', effect: 'rolled_back' });
    expect(await held('note.txt')).toBe(before);
  });

  test('[S6.2] what somebody else wrote since is left alone, and a person is asked', async () => {
    expect(await cancelled('before', 'theirs')).toMatchObject({ status: 'needs_attention' });
    expect(await held('note.txt')).toBe('theirs');
  });
});
