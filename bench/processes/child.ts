/** Processes that join a system: the real `holdfast worker` and `holdfast gateway`, and the bare worker. */
import { fork, spawn } from 'node:child_process';
import type { ChildProcess, StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { builtEntry } from '../built.ts';
import type { System } from '../system.ts';

export interface Child {
  /** Of a gateway. */
  url: string;
  /** Resident memory, as the operating system counts it. Linux only. */
  memoryMb(): number;
  stop(): Promise<void>;
}

const pathOf = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));
const STOP_MS = 20_000;

export const startWorkerProcess = (system: System): Promise<Child> =>
  ready(spawn(command(), ['worker'], options(system)));
export const startGatewayProcess = (system: System): Promise<Child> =>
  ready(spawn(command(), ['gateway'], options(system)));
export const startBareProcess = (system: System): Promise<Child> =>
  ready(fork(pathOf('bare-worker.ts'), [], options(system)));

const options = ({ env }: System) => ({
  env: { ...process.env, ...env },
  stdio: ['ignore', 'ignore', 'inherit', 'ipc'] satisfies StdioOptions,
});

/** As it is once npm has installed it, so that its first line is heeded. */
function command(): string {
  const entry = builtEntry();
  chmodSync(entry, 0o755);
  return entry;
}

async function ready(process_: ChildProcess): Promise<Child> {
  const { url = '' } = await firstMessage(process_);
  return {
    url,
    memoryMb: () => residentMb(process_.pid),
    stop: () => stop(process_),
  };
}

async function firstMessage(child: ChildProcess): Promise<{ url?: string }> {
  const signal = AbortSignal.timeout(60_000);
  const [message] = (await Promise.race([
    once(child, 'message', { signal }),
    once(child, 'exit', { signal }).then(([code]) => {
      throw new Error(`a process of the benchmark ended at once (${code})`);
    }),
  ])) as [{ url?: string }];
  return message;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  await exited;
  clearTimeout(timer);
}

function residentMb(pid: number | undefined): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1];
  if (kilobytes === undefined) throw new Error(`process ${pid} tells no VmRSS`);
  return Number(kilobytes) / 1_024;
}
