/**
 * One worker: workflows, activities, hints, and the relay of alerts, on a connection and a ledger it is given.
 *
 * Owns none of them: who gave them closes them, after `stop`. Never reads the environment.
 */
import { hostname } from 'node:os';
import { Worker } from '@temporalio/worker';
import type {
  ActivityInterceptorsFactory,
  InjectedSinks,
  NativeConnection,
  WorkerInterceptors,
  WorkerOptions as TemporalWorkerOptions,
} from '@temporalio/worker';
import { createTaskActivities } from '../activities/create-task-activities.ts';
import type { EncryptionKey } from '../src/client/encryption-keys.ts';
import type { Hints } from '../src/client/hints.ts';
import type { ConfiguredProcedures } from '../src/contract/define-config.ts';
import type { Action } from '../src/contract/implement-action.ts';
import type { Ledger } from '../src/ledger/ledger.ts';
import type { RemoteServers } from '../src/contract/remote-server.ts';
import { RemoteCalls } from '../src/remote/remote-calls.ts';
import type { FaultPoints } from '../src/operation/faults.ts';
import type { HintSinks } from '../workflows/journal.ts';
import type { TraceSinks } from '../workflows/trace-context.ts';
import { dataConverterOf } from './data-converter.ts';
import { checkKeyPresence } from './key-presence.ts';
import { deploymentOptions } from './deployment.ts';
import type { Deployment } from './deployment.ts';
import { leaseDoor } from './lease-door.ts';
import type { Log } from './logger.ts';
import type { AlertFate } from './metrics.ts';
import { OutboxRelay } from './outbox-relay.ts';
import type { AlertSink } from './outbox-relay.ts';
import { registeredTracing } from './tracing.ts';
import { workflowSource } from './workflow-source.ts';

export interface WorkerOptions {
  connection: NativeConnection;
  namespace: string;
  taskQueue: string;
  ledger: Ledger;
  actions: readonly Action[];
  /** Others, which may come and go: tools of other people's servers. */
  moreActions?: (name: string) => Action | undefined;
  /** `code`: absolute path of the file, bundled with our workflow code. */
  procedures?: ConfiguredProcedures | null;
  /** Servers whose tasks may be watched here. Default: none. */
  remotes?: RemoteServers;
  encryptionKeys: readonly EncryptionKey[];
  hmacKey: Uint8Array | null;
  log: Log;
  /** Told of every change of a task; for clients in this process. */
  hints?: Hints;
  /** Default: the log. */
  alerts?: AlertSink;
  /** Told what became of each delivery of an alert. */
  onAlert?: (fate: AlertFate) => void;
  /** Default 150. */
  maxCachedWorkflows?: number;
  /** Default 40. */
  activitySlots?: number;
  /** Default 15 s. */
  shutdownGraceMs?: number;
  /** Default: any worker takes any task. */
  deployment?: Deployment | null;
  /** Tests alone. */
  faults?: FaultPoints;
  /** Tests alone: what Temporal's worker is given besides. */
  temporal?: { [Name in keyof TemporalWorkerOptions]?: TemporalWorkerOptions[Name] | undefined };
}

export interface HoldfastWorker {
  /** Settles when the worker has stopped; rejects when it died of something (the connection's loss is not that). */
  readonly stopped: Promise<void>;
  /** Takes no more work, lets what runs finish within the grace, then aborts it. Safe to call again. */
  stop(): Promise<void>;
  health(): WorkerHealth;
}

export interface WorkerHealth {
  isTakingWork: boolean;
  activitiesRunning: number;
  workflowsCached: number;
}

/** Cancel reaches a handler within this (S7.5); it is also how often a heartbeat may cross the network. */
const HEARTBEAT_THROTTLE_MS = 300;
/** A frozen worker swallows one attempt for each open poll, so few of them (facts/temporal.md 0.4). */
const ACTIVITY_POLLS = 2;
/** A task cached by a worker that died is given to another after this. */
const STICKY_MS = 2_000;
/** Handlers that ignore their signal are left behind this long after it was sent; the engine reconciles them. */
const FORCE_MARGIN_MS = 2_000;

/** Starts it. Throws `encryption_key_required`, and what Temporal throws when the namespace is not there. */
export async function startWorker(options: WorkerOptions): Promise<HoldfastWorker> {
  const { ledger, log, alerts } = options;
  checkKeyPresence([...options.actions, ...(options.procedures?.contracts ?? [])], options.encryptionKeys);
  const remoteCalls = new RemoteCalls({
    ledger,
    servers: options.remotes ?? (() => undefined),
    worker: `${hostname()}:${process.pid}`,
  });
  const worker = await Worker.create(await temporalOptions(options, remoteCalls));
  const relay = new OutboxRelay({
    ledger,
    log,
    ...(alerts && { sink: alerts }),
    ...(options.onAlert && { told: options.onAlert }),
  });
  const running = worker.run();
  const stopped = running.finally(() => relay.stop());
  stopped.catch((error: unknown) => log.error({ err: error }, 'the worker ended'));
  relay.start();
  if (options.deployment)
    log.info({ ...options.deployment }, 'a versioned worker: it takes work once its build is current');
  return {
    stopped,
    async stop() {
      // Polls of other servers are begun anew elsewhere; none of them is waited for.
      remoteCalls.stop();
      if (worker.getState() === 'RUNNING') worker.shutdown();
      await stopped;
    },
    health() {
      const { runState, numInFlightActivities, numCachedWorkflows } = worker.getStatus();
      return {
        isTakingWork: runState === 'RUNNING',
        activitiesRunning: numInFlightActivities,
        workflowsCached: numCachedWorkflows,
      };
    },
  };
}

async function temporalOptions(
  options: WorkerOptions,
  remoteCalls: RemoteCalls,
): Promise<TemporalWorkerOptions> {
  const { connection, namespace, taskQueue, ledger, actions, procedures, hmacKey, log, faults, hints } =
    options;
  const shutdownGraceMs = options.shutdownGraceMs ?? 15_000;
  const traced = await tracedParts();
  return {
    connection,
    namespace,
    taskQueue,
    workflowBundle: options.temporal?.workflowBundle ?? (await workflowSource(procedures?.code)),
    activities: createTaskActivities({
      ledger,
      actions,
      remoteCalls,
      ...(options.remotes && { remotes: options.remotes }),
      ...(options.moreActions && { moreActions: options.moreActions }),
      ...(procedures && { procedures: procedures.contracts }),
      log,
      ...(hmacKey && { hashKey: hmacKey }),
      leases: leaseDoor(options),
      ...(faults && { faults }),
      ...traced.handlers,
    }),
    sinks: { ...hintSinks(hints), ...traced.sinks },
    dataConverter: dataConverterOf(options.encryptionKeys),
    maxCachedWorkflows: options.maxCachedWorkflows ?? 150,
    maxConcurrentActivityTaskExecutions: options.activitySlots ?? 40,
    // Not maxConcurrentActivityTaskPolls: SDK 1.24 documents it and ignores it, and polls ten times.
    activityTaskPollerBehavior: { type: 'simple-maximum', maximum: ACTIVITY_POLLS },
    maxHeartbeatThrottleInterval: HEARTBEAT_THROTTLE_MS,
    stickyQueueScheduleToStartTimeout: STICKY_MS,
    shutdownGraceTime: shutdownGraceMs,
    shutdownForceTime: shutdownGraceMs + FORCE_MARGIN_MS,
    ...(options.deployment && { workerDeploymentOptions: deploymentOptions(options.deployment) }),
    ...options.temporal,
    interceptors: withActivityTrace(traced.activity, options.temporal?.interceptors),
  } as TemporalWorkerOptions;
}

/** With a provider registered before; else none of it is loaded, and what other processes trace is taken in silence. */
async function tracedParts() {
  const tracing = registeredTracing();
  if (tracing === null) return { sinks: silentTraceSinks, handlers: {}, activity: undefined };
  const { activityTrace, handlerTrace, traceSinks } = await import('./trace-interceptors.ts');
  return {
    sinks: traceSinks(tracing),
    handlers: { trace: handlerTrace(tracing) },
    activity: activityTrace(tracing),
  };
}

const withActivityTrace = (
  trace: ActivityInterceptorsFactory | undefined,
  others: WorkerInterceptors = {},
): WorkerInterceptors =>
  trace === undefined ? others : { ...others, activity: [trace, ...(others.activity ?? [])] };

const untold = { fn: () => undefined, callDuringReplay: false };
const silentTraceSinks: InjectedSinks<TraceSinks> = { holdfastTrace: { began: untold, ended: untold } };

function hintSinks(hints: Hints | undefined): InjectedSinks<HintSinks> {
  return {
    holdfastHints: {
      changed: {
        fn: (_info, taskId, seq, status) => hints?.publish(taskId, seq, status),
        callDuringReplay: false,
      },
    },
  };
}
