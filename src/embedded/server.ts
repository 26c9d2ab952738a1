/**
 * Runs the Temporal dev server for one machine: found or fetched, tuned, durable, and gone when we are gone.
 *
 * 1. One server per state folder; a second start gets `state_dir_in_use` with the holder's pid.
 * 2. It never outlives this process (see tethered.ts). A start after a crash first waits for the old server's end.
 * 3. Everything acknowledged is on disk, unless `ephemeral`: then nothing is.
 * 4. When the promise resolves, the namespace and the search attributes are there.
 */
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { commandOf } from './command-of.ts';
import { EmbeddedError } from './embedded-error.ts';
import { findTemporal } from './find.ts';
import { freePort } from './free-port.ts';
import { untilHealthy } from './health.ts';
import { serverFlags } from './server-flags.ts';
import { takeStateFolder } from './state-folder.ts';
import type { ServerRecord, StateFolder } from './state-folder.ts';
import { spawnTethered } from './tethered.ts';
import type { Exit, Tethered } from './tethered.ts';

const NAMESPACE = 'default';
const HEALTHY_TIMEOUT_MS = 30_000;
const STOP_GRACE_MS = 5_000;
const PREDECESSOR_TIMEOUT_MS = 10_000;
const PREDECESSOR_POLL_MS = 50;
/** A port can be taken between choosing and using it. */
const START_ATTEMPTS = 3;
const LOG_TAIL_CHARACTERS = 2_000;

export interface EmbeddedOptions {
  /** Made if missing. Holds the database, the server's log and who runs it. */
  readonly stateDir: string;
  /** Keep nothing: the server's data lives in memory. Default: false. */
  readonly ephemeral?: boolean;
  /** As the server's settings. For tests of what continues as new. */
  readonly historyEventsMax?: number;
  /** The web interface. Default: on, unless ephemeral. */
  readonly ui?: boolean;
  /** Default: this process's environment. */
  readonly env?: NodeJS.ProcessEnv;
  readonly log?: (line: string) => void;
}

export interface EmbeddedTemporal {
  /** host:port on loopback; the same again after a restart if it is still free. */
  readonly address: string;
  readonly namespace: string;
  readonly uiUrl?: string;
  readonly pid: number;
  /** Settles when the server ended, asked to or not. */
  readonly exited: Promise<Exit>;
  /** Stops the server and frees the state folder. Safe to call again. */
  stop(): Promise<void>;
}

/** Starts it and waits until it is healthy; throws an EmbeddedError otherwise, leaving nothing running. */
export async function startEmbeddedTemporal(options: EmbeddedOptions): Promise<EmbeddedTemporal> {
  const env = options.env ?? process.env;
  const binary = await findTemporal({ env, ...(options.log && { log: options.log }) });
  const folder = await takeStateFolder(resolve(options.stateDir));
  try {
    const before = await folder.read();
    await folder.write({ port: 0, ...before, ownerPid: process.pid }); // names us while we start
    await predecessorGone(folder, before);
    return await startWithRetries(binary.path, folder, before, options, env);
  } catch (error) {
    folder.release();
    throw error;
  }
}

async function startWithRetries(
  binary: string,
  folder: StateFolder,
  before: ServerRecord | undefined,
  options: EmbeddedOptions,
  env: NodeJS.ProcessEnv,
): Promise<EmbeddedTemporal> {
  const hasUi = options.ui ?? !options.ephemeral;
  for (let attempt = 1; ; attempt += 1) {
    const preferred = attempt === 1 ? before : undefined;
    const port = await freePort(preferred?.port || undefined);
    const uiPort = hasUi ? await freePort(preferred?.uiPort) : undefined;
    const databasePath = options.ephemeral ? undefined : join(folder.path, 'temporal.db');
    try {
      const server = await start(
        binary,
        folder,
        { port, uiPort, databasePath, historyEventsMax: options.historyEventsMax },
        env,
      );
      const graceMs = options.ephemeral ? 0 : STOP_GRACE_MS; // in memory, nothing is worth a second of farewell
      return handle(server, folder, graceMs, {
        ownerPid: process.pid,
        port,
        ...(uiPort !== undefined && { uiPort }),
      });
    } catch (error) {
      const isPortTaken = error instanceof EmbeddedError && /address already in use/i.test(error.message);
      if (!isPortTaken || attempt === START_ATTEMPTS) throw error;
    }
  }
}

async function start(
  binary: string,
  folder: StateFolder,
  settings: Parameters<typeof serverFlags>[0],
  env: NodeJS.ProcessEnv,
): Promise<Tethered> {
  const logPath = join(folder.path, 'temporal.log');
  const outputFd = openSync(logPath, 'w', 0o600);
  let server: Tethered;
  try {
    server = await spawnTethered(binary, serverFlags(settings), { env, outputFd });
  } finally {
    closeSync(outputFd);
  }
  const { port, uiPort } = settings;
  await folder.write({
    ownerPid: process.pid,
    serverPid: server.pid,
    port,
    ...(uiPort !== undefined && { uiPort }),
  });
  const health = await untilHealthy(
    { address: `127.0.0.1:${port}`, namespace: NAMESPACE },
    { timeoutMs: HEALTHY_TIMEOUT_MS, isHopeless: server.hasExited },
  );
  if (health.isHealthy) return server;
  await server.stop(STOP_GRACE_MS);
  const lastWords = (await readFile(logPath, 'utf8')).slice(-LOG_TAIL_CHARACTERS).trim();
  throw new EmbeddedError(
    'start_failed',
    `the Temporal server (${binary}) did not become healthy: ${health.reason}\n${lastWords}`,
  );
}

function handle(
  server: Tethered,
  folder: StateFolder,
  graceMs: number,
  record: ServerRecord,
): EmbeddedTemporal {
  let stopping: Promise<void> | undefined;
  const stop = async () => {
    await server.stop(graceMs);
    await folder.write(record); // without a serverPid: ended in order
    folder.release();
  };
  return {
    address: `127.0.0.1:${record.port}`,
    namespace: NAMESPACE,
    ...(record.uiPort !== undefined && { uiUrl: `http://127.0.0.1:${record.uiPort}` }),
    pid: server.pid,
    exited: server.exited,
    stop: () => (stopping ??= stop()),
  };
}

/** The holder before us crashed if its server's pid is still recorded; its watcher is killing that server now. */
async function predecessorGone(folder: StateFolder, before: ServerRecord | undefined): Promise<void> {
  if (before?.serverPid === undefined) return;
  const giveUpAt = Date.now() + PREDECESSOR_TIMEOUT_MS;
  while ((await commandOf(before.serverPid)).includes('start-dev')) {
    if (Date.now() > giveUpAt) {
      throw new EmbeddedError(
        'state_dir_in_use',
        `a Temporal server left behind still runs on ${folder.path}: process ${before.serverPid}`,
        { details: { pid: before.serverPid } },
      );
    }
    await delay(PREDECESSOR_POLL_MS);
  }
}
