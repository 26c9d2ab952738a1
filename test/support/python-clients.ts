/**
 * Python packages from the index that pip is configured with, in a virtual environment of their own, made once for each
 * state of a requirements file. Throws, with what pip said, where there is no Python 3.10 or the index can't be reached.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const FOLDER = join(import.meta.dirname, 'python');
const PIP_MS = 240_000;
const STORY_MS = 60_000;

export const pythonWithClients = (): Promise<string> => pythonWith(join(FOLDER, 'requirements.txt'));

/** The interpreter of the environment that a requirements file asks for. */
export async function pythonWith(requirements: string): Promise<string> {
  const hash = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 16);
  const folder = join(tmpdir(), `holdfast-python-${hash}`);
  const python = join(folder, 'bin', 'python');
  if (existsSync(python)) return python;
  const unfinished = `${folder}.${process.pid}`;
  await rm(unfinished, { recursive: true, force: true });
  await run('python3', ['-m', 'venv', unfinished]);
  const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', requirements];
  await run(join(unfinished, 'bin', 'python'), install, { timeout: PIP_MS });
  // Run by path, never activated: a virtual environment may be moved then.
  await rename(unfinished, folder).catch(() => rm(unfinished, { recursive: true, force: true }));
  return python;
}

export interface PythonStory {
  tools: string[];
  questions: string[];
  progress: number[];
  decisions: { kind: string; channel: string; reason: string }[];
  result: object;
  refused: object;
}

/** story.py, told by `library` to a gateway at a URL or started by a command. */
export async function tellStory(
  python: string,
  library: 'mcp' | 'fastmcp',
  mode: 'auto' | 'legacy',
  place: string | string[],
): Promise<PythonStory> {
  const where = typeof place === 'string' ? place : JSON.stringify(place);
  const { stdout } = await run(python, [join(FOLDER, 'story.py'), library, mode, where], {
    timeout: STORY_MS,
  });
  return JSON.parse(stdout) as PythonStory;
}
