/**
 * Runs a program whose life is bound to ours: it is killed when this process ends, however it ends.
 *
 * How: `sh` forks a watcher that reads from a pipe only we hold open, then becomes the program (same pid). Our death
 * closes the pipe; the watcher sees the end and kills. When the program ends first, we tell the watcher so.
 *
 * 1. The watcher exists before the program does, so there is no moment without it.
 * 2. The program runs in a session of its own: Ctrl-C and signals to our group don't reach it, so we can stop it last.
 * 3. The files it makes are its owner's alone.
 * 4. Neither program nor pipe keeps our event loop alive.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { EmbeddedError } from './embedded-error.ts';

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Tethered {
  readonly pid: number;
  /** Settles when the program ended, asked to or not. */
  readonly exited: Promise<Exit>;
  hasExited(): boolean;
  /** SIGTERM, and SIGKILL if it is still there after `graceMs`. */
  stop(graceMs: number): Promise<void>;
}

const LIFELINE = 3;
const SCRIPT = `umask 077; pid=$$; (read -r ended <&${LIFELINE} || kill -KILL "$pid") & exec "$@" ${LIFELINE}<&-`;

export async function spawnTethered(
  program: string,
  args: readonly string[],
  options: { readonly env: NodeJS.ProcessEnv; readonly outputFd: number },
): Promise<Tethered> {
  if (process.platform === 'win32') {
    throw new EmbeddedError(
      'unsupported_platform',
      'the embedded server needs a POSIX system: start a Temporal server yourself and set TEMPORAL_ADDRESS',
    );
  }
  const { outputFd, env } = options;
  const child = spawn('/bin/sh', ['-c', SCRIPT, 'holdfast-embedded', program, ...args], {
    env,
    detached: true,
    stdio: ['ignore', outputFd, outputFd, 'pipe'],
  });
  await once(child, 'spawn');
  const { pid } = child;
  const lifeline = child.stdio[LIFELINE] as (Writable & { unref(): void }) | null;
  if (pid === undefined || !lifeline) throw new EmbeddedError('start_failed', '/bin/sh could not be started');
  child.unref();
  lifeline.unref();
  lifeline.on('error', () => undefined); // the watcher may be gone already: nothing is left to tell it

  let exit: Exit | undefined;
  const exited = once(child, 'exit').then(([code, signal]) => {
    exit = { code: code as number | null, signal: signal as NodeJS.Signals | null };
    lifeline.end('ended\n');
    return exit;
  });
  return {
    pid,
    exited,
    hasExited: () => exit !== undefined,
    async stop(graceMs) {
      if (exit) return;
      child.ref();
      child.kill('SIGTERM');
      const killer = setTimeout(() => child.kill('SIGKILL'), graceMs);
      await exited;
      clearTimeout(killer);
    },
  };
}
