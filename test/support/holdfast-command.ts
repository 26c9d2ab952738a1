/** The `holdfast` command as other people's scripts use it: a process, its exit code, what it printed. From source. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
export const COMMAND = [
  process.execPath,
  '--experimental-strip-types',
  '--disable-warning=ExperimentalWarning',
  MAIN,
] as const;

export interface Printed {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface Place {
  cwd: string;
  env?: NodeJS.ProcessEnv;
}

/** Nothing of the machine's own settings reaches the command but PATH and HOME. */
export function environment(own: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const { PATH, HOME, TMPDIR, TEMPORAL_CLI_PATH } = process.env;
  return { PATH, HOME, ...(TMPDIR && { TMPDIR }), ...(TEMPORAL_CLI_PATH && { TEMPORAL_CLI_PATH }), ...own };
}

export async function holdfast(place: Place, ...args: string[]): Promise<Printed> {
  const child = spawn(COMMAND[0], [...COMMAND.slice(1), ...args], {
    cwd: place.cwd,
    env: environment(place.env),
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, stderr };
}

/** The same with `--json`, parsed. */
export async function holdfastJson<T>(
  place: Place,
  ...args: string[]
): Promise<{ code: number | null; value: T }> {
  const { code, stdout } = await holdfast(place, ...args, '--json');
  return { code, value: JSON.parse(stdout) as T };
}

export interface RunningCommand {
  pid: number;
  /** The gateway's address, where the command has one. */
  url: string;
  /** Everything it printed so far. */
  output(): string;
  /** Sends the signal; resolves with the exit code once the process is gone. */
  end(signal?: NodeJS.Signals): Promise<number | null>;
}

/** A command that stays (`dev`, `worker`, `gateway`, …); resolves when it says that it is ready. */
export async function startHoldfast(place: Place, ...args: string[]): Promise<RunningCommand> {
  const child = spawn(COMMAND[0], [...COMMAND.slice(1), ...args], {
    cwd: place.cwd,
    env: environment(place.env),
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => (output += text));
  const ready = await untilReady(child, () => output);
  return {
    pid: child.pid ?? 0,
    url: ready.url ?? '',
    output: () => output,
    end: async (signal = 'SIGTERM') => {
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
      const gone = once(child, 'exit') as Promise<[number | null]>;
      child.kill(signal);
      return (await gone)[0];
    },
  };
}

async function untilReady(child: ChildProcess, output: () => string): Promise<{ url?: string }> {
  const ready = once(child, 'message') as Promise<[{ url?: string }]>;
  const ended = (once(child, 'exit') as Promise<[number | null]>).then(([code]) => {
    throw new Error(`ended with ${code} before it was ready: ${output().slice(-2_000)}`);
  });
  ended.catch(() => undefined);
  return (await Promise.race([ready, ended]))[0];
}
