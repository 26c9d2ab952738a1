/**
 * A whole Holdfast inside a test: Temporal test server, worker with the test's actions, fresh ledger, client.
 *
 * Nothing is mocked: what runs here is what runs in production, on a server that can skip time. The ledger's clock
 * follows the server's, so that leases, deadlines and retries agree about the time that was skipped.
 */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { WorkerInterceptors } from '@temporalio/worker';
import { createLogger, dataConverterOf, startWorker } from '../../worker/index.ts';
import type { AlertSink, HoldfastWorker, WorkerOptions } from '../../worker/index.ts';
import { createHints, deriveHmacKey, HoldfastClient, parseEncryptionKeys } from '../client/index.ts';
import type { EncryptionKey, Hints } from '../client/index.ts';
import { parseDuration } from '../contract/duration.ts';
import type { Duration } from '../contract/duration.ts';
import type { ConfiguredProcedures } from '../contract/define-config.ts';
import type { Action } from '../contract/implement-action.ts';
import type { RemoteServers } from '../contract/remote-server.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { openLedger } from '../ledger/open-ledger.ts';
import type { FaultPoints } from '../operation/faults.ts';
import { TestClock } from './test-clock.ts';
import { openTestServer } from './test-server.ts';
import type { TestServer, TestServerKind } from './test-server.ts';

export interface TestHoldfastOptions {
  actions: Action[];
  /** `code`: absolute path. */
  procedures?: ConfiguredProcedures;
  /** A kind to start one of for this Holdfast alone, or one that is running. Default `time-skipping`. */
  server?: TestServerKind | TestServer;
  /** Address of the ledger. Default: a new SQLite file, deleted at the end. On it only SQLite follows skipped time. */
  store?: string;
  /** As HOLDFAST_ENCRYPTION_KEY; with it a running server can't be reused. */
  encryptionKey?: string;
  /** Default: alerts are delivered nowhere (they are in `ledger.alerts`). */
  alerts?: AlertSink;
  /** False: nobody takes work until `startWorker`. Default true. */
  worker?: boolean;
  /** Servers whose tasks are watched. */
  remotes?: RemoteServers;
  faults?: FaultPoints;
  /** With a server of its own, `local`: runs whose history has so many events continue as new. */
  historyEventsMax?: number;
  /** Around every activity of the worker. */
  interceptors?: NonNullable<WorkerInterceptors['activity']>;
  /** A shared queue, for several Holdfasts that stand for several processes. Default: one of its own. */
  taskQueue?: string;
}

export interface TestHoldfast {
  client: HoldfastClient;
  /** A bare Temporal client on the same server. */
  temporal: Client;
  env: TestWorkflowEnvironment;
  ledger: Ledger;
  hints: Hints;
  taskQueue: string;
  namespace: string;
  /** The one that runs, if any. */
  readonly worker: HoldfastWorker | null;
  /** Another client of the same tasks, as another process would have it: without the worker's hints. */
  newClient(options?: { ledger?: Ledger; temporal?: Client }): HoldfastClient;
  startWorker(): Promise<HoldfastWorker>;
  stopWorker(): Promise<void>;
  /** Lets time pass: skipped on a time-skipping server, waited for on a local one. */
  skip(duration: Duration): Promise<void>;
  close(): Promise<void>;
}

export async function createTestHoldfast(options: TestHoldfastOptions): Promise<TestHoldfast> {
  const keys = parseEncryptionKeys(options.encryptionKey);
  const server = await serverFor(options, keys);
  try {
    return await openOn(server, options, keys);
  } catch (error) {
    if (server !== options.server) await server.close();
    throw error;
  }
}

function serverFor(
  { server = 'time-skipping', historyEventsMax }: TestHoldfastOptions,
  keys: EncryptionKey[],
): Promise<TestServer> | TestServer {
  return typeof server === 'string'
    ? openTestServer(server, {
        dataConverter: dataConverterOf(keys),
        ...(historyEventsMax !== undefined && { historyEventsMax }),
      })
    : server;
}

async function openOn(
  server: TestServer,
  options: TestHoldfastOptions,
  keys: EncryptionKey[],
): Promise<TestHoldfast> {
  const { env } = server;
  const clock = new TestClock(() => env.currentTimeMs());
  const { ledger, closeStore } = await openStore(options.store, server.kind, clock);
  const hints = createHints();
  const taskQueue = options.taskQueue ?? `test-${randomUUID()}`;
  const shared = { temporal: env.client, taskQueue, hmacKey: deriveHmacKey(keys) };
  const callable = [...options.actions, ...(options.procedures?.contracts ?? [])];
  const namespace = env.namespace ?? 'default';
  const workerOptions: WorkerOptions = {
    ...shared,
    actions: options.actions,
    ...(options.procedures && { procedures: options.procedures }),
    connection: env.nativeConnection,
    namespace,
    ledger,
    encryptionKeys: keys,
    log: createLogger({ level: 'fatal' }),
    hints,
    alerts: options.alerts ?? { deliver: () => Promise.resolve() },
    shutdownGraceMs: 1_000,
    ...(options.remotes && { remotes: options.remotes }),
    ...(options.faults && { faults: options.faults }),
    temporal: { interceptors: { activity: [followClock(clock), ...(options.interceptors ?? [])] } },
  };
  const slot = new WorkerSlot(workerOptions);
  const holdfast: TestHoldfast = {
    client: new HoldfastClient({ ...shared, actions: callable, ledger, hints }),
    temporal: env.client,
    env,
    ledger,
    hints,
    taskQueue,
    namespace,
    get worker() {
      return slot.worker;
    },
    newClient: (own = {}) => new HoldfastClient({ ...shared, actions: callable, ledger, ...own }),
    startWorker: () => slot.start(),
    stopWorker: () => slot.stop(),
    skip: (duration) => skip(env, clock, duration),
    close: () =>
      slot
        .stop()
        .finally(closeStore)
        .finally(() => (server === options.server ? undefined : server.close())),
  };
  if (options.worker !== false) await slot.start().catch((error: unknown) => rejectAfter(closeStore, error));
  return holdfast;
}

/** The worker of a test, which it may stop and start again. */
class WorkerSlot {
  worker: HoldfastWorker | null = null;
  readonly #options: WorkerOptions;

  constructor(options: WorkerOptions) {
    this.#options = options;
  }

  async start(): Promise<HoldfastWorker> {
    return (this.worker ??= await startWorker(this.#options));
  }

  async stop(): Promise<void> {
    const running = this.worker;
    this.worker = null;
    await running?.stop();
  }
}

async function skip(env: TestWorkflowEnvironment, clock: TestClock, duration: Duration): Promise<void> {
  const ms = parseDuration(duration);
  if (ms === null) throw new TypeError(`not a duration: ${duration}`);
  await env.sleep(ms);
  await clock.sync();
}

async function openStore(url: string | undefined, kind: TestServerKind, clock: TestClock) {
  const folder = url === undefined ? await mkdtemp(join(tmpdir(), 'holdfast-ledger-')) : null;
  const address = url ?? `sqlite:${join(folder ?? '.', 'ledger.db')}`;
  const follows = kind === 'time-skipping' && address.startsWith('sqlite:');
  if (follows) await clock.sync();
  const ledger = await openLedger({ url: address, ...(follows && { nowMs: clock.nowMs }) });
  await ledger.migrate();
  const closeStore = async (): Promise<void> => {
    await ledger.close();
    if (folder !== null) await rm(folder, { recursive: true, force: true });
  };
  return { ledger, closeStore };
}

async function rejectAfter(cleanUp: () => Promise<void>, error: unknown): Promise<never> {
  await cleanUp();
  throw error;
}

/** Time is skipped between activities only, so each begins by asking how late it has become. */
function followClock(clock: TestClock): NonNullable<WorkerInterceptors['activity']>[number] {
  return () => ({
    inbound: {
      async execute(input, next) {
        await clock.sync();
        return next(input);
      },
    },
  });
}
