/**
 * A service that fails on purpose, in a process of its own, and keeps count of what it really did.
 *
 * `startFaultTarget()` starts it; `connectFaultTarget(url)` speaks to one that runs already. Its counter is the oracle
 * of "once": no test asks our own journal. It survives the SIGKILL of anything but the process that started it, and
 * with `file` its own.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Gate, Mode, Report, RequestRecord, Rule } from './fault-target-mode.ts';

export type { Endpoint, Gate, Mode, Report, RequestRecord, Resource, Rule } from './fault-target-mode.ts';

export interface FaultTargetClient {
  url: string;
  /** How often the effect of this operation took place (undone or not). */
  count(operationId: string): Promise<number>;
  /** How often it was undone. */
  undone(operationId: string): Promise<number>;
  /** Effects of all operations. */
  total(): Promise<number>;
  /** Requests that arrived, in order, whatever came of them. */
  requests(filter?: Partial<RequestRecord>): Promise<RequestRecord[]>;
  report(): Promise<Report>;
  /** Sets what happens to the next requests that fit; see {@link Rule}. The rule set last wins. */
  setMode(mode: Mode, match?: Omit<Rule, 'mode'>): Promise<void>;
  /** Resolves once `count` requests have reached the gate. */
  reached(gate: Gate, count?: number): Promise<void>;
  release(gate: Gate): Promise<void>;
  /** Forgets effects, modes, gates and requests. */
  reset(): Promise<void>;
}

export interface FaultTarget extends FaultTargetClient {
  pid: number;
  /** For worker processes: what target-actions.ts reads. */
  env: { HOLDFAST_TARGET_URL: string };
  stop(): Promise<void>;
}

export function connectFaultTarget(url: string): FaultTargetClient {
  const read = async (path: string): Promise<unknown> =>
    (await asked(fetch(`${url}/control/${path}`))).json();
  const write = async (path: string, body: object): Promise<void> => {
    const init = { method: 'POST', body: JSON.stringify(body) };
    await (await asked(fetch(`${url}/control/${path}`, init))).arrayBuffer();
  };
  const report = () => read('report') as Promise<Report>;
  return {
    url,
    report,
    count: async (operationId) => (await report()).applied[operationId] ?? 0,
    undone: async (operationId) => (await report()).undone[operationId] ?? 0,
    total: async () => (await report()).total,
    requests: async (filter = {}) => (await report()).requests.filter((each) => matches(each, filter)),
    setMode: (mode, match = {}) => write('mode', { ...match, mode }),
    reached: async (gate, count = 1) =>
      void (await read(`reached?gate=${encodeURIComponent(gate)}&count=${count}`)),
    release: (gate) => write('release', { gate }),
    reset: () => write('reset', {}),
  };
}

/** `file`: effects survive the target's own death; start again with the same file and port. */
export async function startFaultTarget(options: { port?: number; file?: string } = {}): Promise<FaultTarget> {
  const script = fileURLToPath(new URL('./fault-target-server.ts', import.meta.url));
  const args = ['--experimental-strip-types', '--disable-warning=ExperimentalWarning', script];
  if (options.port !== undefined) args.push('--port', String(options.port));
  if (options.file !== undefined) args.push('--file', options.file);
  // Its own process group: a signal to a worker's group doesn't reach it.
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'], detached: true });
  const exited = once(child, 'exit');
  const firstLine = once(createInterface(child.stdout), 'line') as Promise<[string]>;
  const ended = exited.then(() => Promise.reject(new Error('the fault target ended before it listened')));
  const [line] = await Promise.race([firstLine, ended]);
  ended.catch(() => undefined);
  const { url } = JSON.parse(line) as { url: string };
  return {
    ...connectFaultTarget(url),
    pid: child.pid ?? 0,
    env: { HOLDFAST_TARGET_URL: url },
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
      await exited;
    },
  };
}

async function asked(answer: Promise<Response>): Promise<Response> {
  const response = await answer;
  if (!response.ok) throw new Error(`the fault target answered ${response.status}: ${await response.text()}`);
  return response;
}

function matches(record: RequestRecord, filter: Partial<RequestRecord>): boolean {
  return Object.entries(filter).every(([field, value]) => record[field as keyof RequestRecord] === value);
}
