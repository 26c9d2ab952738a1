/** Processes of the demo: real ones, so that they can really be killed; all of them gone when the demo ends. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';

export interface DemoChild {
  pid: number;
  /** SIGKILL: no chance to say goodbye. Resolves when the process is gone. */
  kill(): Promise<void>;
  signal(name: 'SIGSTOP' | 'SIGCONT'): void;
  /** What the child said of itself when it was ready. */
  ready: { url?: string };
}

const READY_TIMEOUT_MS = 30_000;

/** Starts `script` and resolves once it sent `{ready: true, …}` over IPC, or printed a line that ends in a URL. */
export async function startChild(
  script: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  logFile: string,
): Promise<DemoChild> {
  const log = openSync(logFile, 'a');
  const child = spawn(process.execPath, [script, ...args], { env, stdio: ['ignore', 'pipe', log, 'ipc'] });
  const ready = await untilReady(child, script);
  child.stdout?.resume();
  return {
    pid: child.pid ?? 0,
    ready,
    signal: (name) => void child.kill(name),
    kill: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    },
  };
}

async function untilReady(child: ChildProcess, script: string): Promise<{ url?: string }> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => fail(`${script} was not ready within ${READY_TIMEOUT_MS / 1_000} s`),
      READY_TIMEOUT_MS,
    );
    const done = (ready: { url?: string }): void => {
      clearTimeout(timer);
      resolve(ready);
    };
    const fail = (why: string): void => {
      clearTimeout(timer);
      child.kill('SIGKILL');
      reject(new Error(why));
    };
    child.once('exit', (code) => fail(`${script} ended with ${code} before it was ready`));
    child.once('message', (message) => done(message as { url?: string }));
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      const url = /(https?:\/\/\S+)\s*$/.exec(text)?.[1];
      if (url !== undefined) done({ url });
    });
  });
}
