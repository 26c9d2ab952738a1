/**
 * Opens everything a process of Holdfast needs from its configuration, and closes it again in the right order. What
 * `serve`, `worker`, `gateway`, `dev` and the other commands are made of.
 */
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import type { ClientInterceptors } from '@temporalio/client';
import { IllegalStateError } from '@temporalio/common';
import { NativeConnection, Runtime } from '@temporalio/worker';
import { createHints, HoldfastClient, openPostgresHints } from '../src/client/index.ts';
import type { HoldfastClientOptions, Hints } from '../src/client/index.ts';
import { quietAtItsEnd } from '../src/client/quiet-connection.ts';
import { HoldfastError } from '../src/contract/error.ts';
import type { Ledger } from '../src/ledger/ledger.ts';
import { openLedger } from '../src/ledger/open-ledger.ts';
import { webhookSink } from './alert-webhook.ts';
import type { Config } from './config.ts';
import { configurationError } from './configuration-error.ts';
import { startWorker } from './create-worker.ts';
import type { HoldfastWorker, WorkerOptions } from './create-worker.ts';
import { dataConverterOf } from './data-converter.ts';
import { createLogger, temporalLogger } from './logger.ts';
import { createMetrics } from './metrics.ts';
import type { Metrics } from './metrics.ts';
import { checkSearchAttributes, migrate } from './migrate.ts';
import type { AlertSink } from './outbox-relay.ts';
import { CONFIG } from './settings.ts';
import { runSetup } from './setup.ts';
import { openUpstreams } from './upstreams.ts';
import type { Upstreams } from '../src/upstream/upstreams.ts';
import { openTracing } from './tracing.ts';
import type { Tracing } from './tracing.ts';

export interface OpenOptions {
  config: Config;
  /** Take work in this process too; the client then starts tasks eagerly. Default false. */
  worker?: boolean;
  /** Keep lines to other people's servers, as a worker does in any case. Default false: their last lists are enough. */
  upstreams?: boolean;
  /** Bring schema and search attributes up to date first, as `dev` and `demo` do. Default false: `holdfast migrate` does. */
  migrate?: boolean;
  log?: ReturnType<typeof createLogger>;
}

export interface Holdfast {
  client: HoldfastClient;
  temporal: Client;
  ledger: Ledger;
  /** Other people's servers and their tools. */
  upstreams: Upstreams;
  hints: Hints;
  log: ReturnType<typeof createLogger>;
  /** What this process counts, its gateway aside. */
  metrics: Metrics;
  /** Null in a process without one. */
  worker: HoldfastWorker | null;
  /** Whether engine and ledger answer just now; for readiness. */
  check(): Promise<{ engine: boolean; ledger: boolean; worker: boolean | null }>;
  /** Stops the worker, then closes connection and ledger. Safe to call again. */
  close(): Promise<void>;
}

type EngineConnection = { connection: Connection | NativeConnection; native: NativeConnection | null };

/** Throws `engine_unavailable`, `engine_unprepared`, `ledger_unavailable`, `ledger_unsuitable`; leaves nothing open then. */
export async function openHoldfast(options: OpenOptions): Promise<Holdfast> {
  const { config, log = createLogger({ level: options.config.logLevel }) } = options;
  const closers: (() => Promise<unknown>)[] = [];
  const close = once(async () => {
    for (const closer of closers.reverse()) await closer();
  });
  try {
    const { tracing, close: closeTracing } = await openTracing(config, log);
    closers.push(closeTracing);
    const metrics = createMetrics();
    const ledger = await openStore(config, metrics);
    closers.push(() => ledger.close());
    const engine = await connect(options, log);
    closers.push(() => engine.connection.close());
    const { namespace } = config.temporal;
    if (options.migrate) await migrate(ledger, engine.connection, namespace);
    else await Promise.all([ledger.check(), checkSearchAttributes(engine.connection, namespace)]);
    const upstreams = await openUpstreams({ config, ledger, log, isConnected: keepsLines(options) });
    closers.push(() => upstreams.close());
    const { find: moreActions, remotes } = upstreams;
    const hints = openHints(config, log, closers);
    const temporal = new Client({
      connection: engine.connection,
      namespace,
      dataConverter: dataConverterOf(config.encryptionKeys),
      ...(tracing && { interceptors: await clientInterceptors(tracing) }),
    });
    const worker =
      engine.native === null
        ? null
        : await openWorker(config, engine.native, {
            ledger,
            hints,
            log,
            metrics,
            moreActions,
            remotes,
          });
    if (worker) {
      closers.push(() => worker.stop());
      metrics.addWorker(worker);
    }
    metrics.addWaiting(temporal, log);
    return {
      client: clientOf(config, { temporal, ledger, hints, moreActions, hasWorker: worker !== null }),
      temporal,
      ledger,
      upstreams,
      hints,
      log,
      metrics,
      worker,
      close,
      check: () => check(temporal, ledger, worker),
    };
  } catch (error) {
    await close().catch((problem: unknown) => log.warn({ err: problem }, 'closing after a failed start'));
    throw error;
  }
}

const keepsLines = ({ worker, upstreams }: OpenOptions): boolean => worker === true || upstreams === true;

function clientOf(
  config: Config,
  {
    hasWorker,
    ...parts
  }: Pick<HoldfastClientOptions, 'temporal' | 'ledger' | 'hints' | 'moreActions'> & {
    hasWorker: boolean;
  },
): HoldfastClient {
  return new HoldfastClient({
    ...parts,
    actions: [...config.actions, ...(config.procedures?.contracts ?? [])],
    taskQueue: config.taskQueue,
    hmacKey: config.hmacKey,
    // Eagerly started, a task would run on this build before it is current.
    eagerStart: hasWorker && config.deployment === null,
  });
}

async function clientInterceptors(tracing: Tracing): Promise<ClientInterceptors> {
  const { clientTrace } = await import('./trace-interceptors.ts');
  return { workflow: [clientTrace(tracing)] };
}

/** Between processes where the ledger is on PostgreSQL; on SQLite within this one. */
function openHints(
  { databaseUrl }: Config,
  log: Holdfast['log'],
  closers: (() => Promise<unknown>)[],
): Hints {
  if (databaseUrl.startsWith('sqlite:')) return createHints();
  const bus = openPostgresHints({ url: databaseUrl, log });
  closers.push(() => bus.close());
  return bus;
}

async function openStore(config: Config, { transaction }: Metrics): Promise<Ledger> {
  if (config.databaseUrl.startsWith('sqlite:')) {
    await mkdir(dirname(config.databaseUrl.slice('sqlite:'.length)), { recursive: true });
  }
  return openLedger({ url: config.databaseUrl, onTransaction: transaction });
}

/** A worker needs the native connection, and a client on the same one may start eagerly. */
async function connect({ config, worker }: OpenOptions, log: Holdfast['log']): Promise<EngineConnection> {
  const options = config.temporal.connectionOptions;
  if (worker) installRuntime(log);
  try {
    if (!worker) {
      const connection = quietAtItsEnd(await Connection.connect({ ...options, connectTimeout: CONNECT_MS }));
      return { connection, native: null };
    }
    const native = await NativeConnection.connect(options);
    return { connection: native, native };
  } catch (cause) {
    const where = options.address ?? 'localhost:7233';
    throw new HoldfastError('engine_unavailable', `Temporal at ${where} can not be reached.`, {
      details: { address: where },
      cause,
    });
  }
}

/** Once for each process: Temporal's own log goes into ours, and signals are ours to handle (drain.ts). */
function installRuntime(log: Holdfast['log']): void {
  try {
    Runtime.install({
      shutdownSignals: [],
      logger: temporalLogger(log),
      telemetryOptions: { logging: { filter: { core: 'WARN', other: 'ERROR' }, forward: {} } },
    });
  } catch (error) {
    if (!(error instanceof IllegalStateError)) throw error; // installed before: by an earlier opening, or by a test
  }
}

type WorkerParts = Pick<Holdfast, 'ledger' | 'hints' | 'log' | 'metrics'> &
  Required<Pick<WorkerOptions, 'moreActions' | 'remotes'>>;

async function openWorker(
  config: Config,
  connection: NativeConnection,
  { ledger, hints, log, metrics, moreActions, remotes }: WorkerParts,
): Promise<HoldfastWorker> {
  const { setup } = config.file;
  const alerts = alertSinkOf(config);
  if (setup) await runSetup(ledger, setup);
  return startWorker({
    connection,
    namespace: config.temporal.namespace,
    taskQueue: config.taskQueue,
    ledger,
    actions: config.actions,
    moreActions,
    remotes,
    procedures: config.procedures,
    encryptionKeys: config.encryptionKeys,
    hmacKey: config.hmacKey,
    log,
    hints,
    ...(alerts && { alerts }),
    onAlert: metrics.alert,
    maxCachedWorkflows: config.maxCachedWorkflows,
    activitySlots: config.activitySlots,
    shutdownGraceMs: config.shutdownGraceMs,
    deployment: config.deployment,
  });
}

/** Null: the log. Throws `invalid_configuration`. */
function alertSinkOf({ alertWebhookUrl: url, alertWebhookSecrets: secrets, file }: Config): AlertSink | null {
  const deliver = file.alerts !== undefined && 'deliver' in file.alerts ? file.alerts : null;
  if (url === null) return deliver;
  const issue = { name: CONFIG.alertWebhookUrl.env, expected: 'one way to deliver alerts, and its secret' };
  if (deliver !== null)
    throw configurationError([
      { ...issue, problem: '`alerts.deliver` is there too', fix: 'leave one of them out' },
    ]);
  if (secrets.length === 0) {
    const { env: name, expected, fix } = CONFIG.alertWebhookSecrets;
    throw configurationError([
      { name, problem: 'alerts go to a webhook and nothing signs them', expected, fix },
    ]);
  }
  return webhookSink({ url, secrets });
}

const CHECK_MS = 1_500;
const CONNECT_MS = 5_000;

async function check(
  temporal: Client,
  ledger: Ledger,
  worker: HoldfastWorker | null,
): ReturnType<Holdfast['check']> {
  const succeeds = (work: Promise<unknown>) =>
    work.then(
      () => true,
      () => false,
    );
  const [engine, stored] = await Promise.all([
    succeeds(temporal.withDeadline(Date.now() + CHECK_MS, () => temporal.workflowService.getSystemInfo({}))),
    succeeds(ledger.check()),
  ]);
  return { engine, ledger: stored, worker: worker === null ? null : worker.health().isTakingWork };
}

function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | null = null;
  return () => (done ??= work());
}
