// Takes one file out of a zip archive (a Python wheel is one) without running anything in it.
// Reads the central directory only; no zip64, no encryption: such an entry is refused, not misread.
import { createReadStream, createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createInflateRaw } from 'node:zlib';

const END_SIGNATURE = 0x06054b50;
const END_BYTES = 22;
const COMMENT_BYTES_MAX = 65_535;
const ENTRY_SIGNATURE = 0x02014b50;
const ENTRY_BYTES = 46;
const LOCAL_BYTES = 30;
const STORED = 0;
const DEFLATED = 8;

interface Entry {
  readonly method: number;
  readonly packedBytes: number;
  readonly localHeaderAt: number;
}

/** Writes the one entry whose name `matches` to `target`, executable. Throws if there is not exactly one. */
export async function extractZipEntry(
  archive: string,
  matches: (name: string) => boolean,
  target: string,
): Promise<void> {
  const file = await open(archive, 'r');
  let start: number;
  let entry: Entry;
  try {
    entry = await findEntry(file, archive, matches);
    const local = await readAt(file, entry.localHeaderAt, LOCAL_BYTES);
    start = entry.localHeaderAt + LOCAL_BYTES + local.readUInt16LE(26) + local.readUInt16LE(28);
  } finally {
    await file.close();
  }
  const packed = createReadStream(archive, { start, end: start + entry.packedBytes - 1 });
  const unpacked = createWriteStream(target, { mode: 0o755, flags: 'wx' });
  if (entry.method === STORED) await pipeline(packed, unpacked);
  else await pipeline(packed, createInflateRaw(), unpacked);
}

async function findEntry(
  file: FileHandle,
  archive: string,
  matches: (name: string) => boolean,
): Promise<Entry> {
  const directory = await readDirectory(file, archive);
  const found: Entry[] = [];
  for (let at = 0; at + ENTRY_BYTES <= directory.length;) {
    if (directory.readUInt32LE(at) !== ENTRY_SIGNATURE) break;
    const [nameBytes, extraBytes, commentBytes] = [28, 30, 32].map((field) =>
      directory.readUInt16LE(at + field),
    );
    const nameEnd = at + ENTRY_BYTES + (nameBytes ?? 0);
    const isEncrypted = (directory.readUInt16LE(at + 8) & 1) === 1;
    const method = directory.readUInt16LE(at + 10);
    if (matches(directory.toString('utf8', at + ENTRY_BYTES, nameEnd))) {
      if (isEncrypted || (method !== STORED && method !== DEFLATED)) {
        throw new Error(`${archive}: the entry is packed in a way this reader doesn't know`);
      }
      found.push({
        method,
        packedBytes: directory.readUInt32LE(at + 20),
        localHeaderAt: directory.readUInt32LE(at + 42),
      });
    }
    at = nameEnd + (extraBytes ?? 0) + (commentBytes ?? 0);
  }
  const [entry] = found;
  if (!entry || found.length > 1) throw new Error(`${archive}: ${found.length} entries match, expected one`);
  return entry;
}

async function readDirectory(file: FileHandle, archive: string): Promise<Buffer> {
  const { size } = await file.stat();
  const tailBytes = Math.min(size, END_BYTES + COMMENT_BYTES_MAX);
  const tail = await readAt(file, size - tailBytes, tailBytes);
  for (let at = tail.length - END_BYTES; at >= 0; at -= 1) {
    if (tail.readUInt32LE(at) === END_SIGNATURE) {
      return readAt(file, tail.readUInt32LE(at + 16), tail.readUInt32LE(at + 12));
    }
  }
  throw new Error(`${archive}: not a zip archive`);
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position);
  if (bytesRead !== length) throw new Error('the archive ends too early');
  return buffer;
}
