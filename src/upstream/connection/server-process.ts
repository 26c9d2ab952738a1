/**
 * One stdio server as a process whose life is bound to ours: it ends when we stop it and when this process ends, however
 * it ends, whether or not it heeds the end of its stdin.
 *
 * How: `sh` forks a watcher that reads from a pipe only we hold open, then becomes the server (same pid). Our death closes
 * the pipe; the watcher sees the end and kills the group.
 *
 * 1. The watcher exists before the server does, so there is no moment without it.
 * 2. The server leads a process group of its own: what it starts in turn (`npx`) ends with it, and Ctrl-C does not reach it.
 * 3. Once the server itself has ended, nothing of its group is left.
 *
 * Without a POSIX shell (Windows) there is no watcher: such a server ends at the end of its stdin, or stays.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { getDefaultEnvironment } from '@modelcontextprotocol/client/stdio';

export interface ServerCommand {
  command: string;
  args?: readonly string[];
  /** Besides PATH, HOME and the like: a server gets nothing of ours unasked. */
  env?: Readonly<Record<string, string>>;
  cwd?: string;
}

export interface ServerProcess {
  readonly pid: number;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** How it ended, in words; settles once all that it wrote was read. */
  readonly ended: Promise<string>;
  /** End of stdin, SIGTERM after `graceMs`, SIGKILL after as long again. */
  stop(graceMs: number): Promise<void>;
}

const LIFELINE = 3;
const WATCH = `(trap '' TERM; read -r ended <&${LIFELINE}; kill -s KILL -- "-$pid") </dev/null >/dev/null 2>&1 &`;
const SCRIPT = `pid=$$; ${WATCH} exec "$@" ${LIFELINE}<&-`;
/** For what is left in the pipes of a process that has ended. */
const LAST_WORDS_MS = 1_000;

/** Rejects where no process could be made. A command that does not exist is one that ends with code 127. */
export async function startServerProcess(server: ServerCommand): Promise<ServerProcess> {
  const { command, args = [], env, cwd } = server;
  const [program, words] =
    process.platform === 'win32'
      ? [command, [...args]]
      : ['/bin/sh', ['-c', SCRIPT, 'holdfast-upstream', command, ...args]];
  const child = spawn(program, words, {
    env: { ...getDefaultEnvironment(), ...env },
    ...(cwd !== undefined && { cwd }),
    detached: process.platform !== 'win32',
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
    windowsHide: true,
  });
  await once(child, 'spawn');
  const { pid, stdin, stdout, stderr } = child;
  if (pid === undefined || !stdin || !stdout || !stderr) throw new Error('the process has no pipes');
  child.stdio[LIFELINE]?.on('error', () => undefined); // its other end goes with the watcher
  const ended = endOf(child, pid);
  return {
    ...{ pid, stdin, stdout, stderr, ended },
    async stop(graceMs) {
      stdin.end();
      for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
        if (await settles(ended, graceMs)) return;
        signalGroup(pid, signal);
      }
      await ended;
    },
  };
}

async function endOf(child: ChildProcess, pid: number): Promise<string> {
  const closed = once(child, 'close');
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  // The watcher is one of the group, so the group's id is still its own.
  signalGroup(pid, 'SIGKILL');
  if (!(await settles(closed, LAST_WORDS_MS))) {
    child.stdout?.destroy();
    child.stderr?.destroy();
  }
  if (signal !== null) return `by ${signal}`;
  return code === 127 ? 'with code 127: the command was not found' : `with code ${code}`;
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, signal);
  } catch {
    // it has ended
  }
}

async function settles(work: Promise<unknown>, withinMs: number): Promise<boolean> {
  const timer = new AbortController();
  const tooLate = delay(withinMs, false, { signal: timer.signal }).catch(() => false);
  const isSettled = await Promise.race([work.then(() => true), tooLate]);
  timer.abort();
  return isSettled;
}
