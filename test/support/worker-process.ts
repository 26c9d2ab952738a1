/** A Holdfast worker in a process of its own that stops where a test wants it killed (worker-options.ts, child-process.ts). */
import { NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { createTaskActivities } from '../../activities/create-task-activities.ts';
import { deriveHmacKey, parseEncryptionKeys } from '../../src/client/encryption-keys.ts';
import type { Action } from '../../src/contract/implement-action.ts';
import { openLedger } from '../../src/ledger/open-ledger.ts';
import { leaseDoor } from '../../worker/lease-door.ts';
import { createLogger, startWorker } from '../../worker/index.ts';
import type { HoldfastWorker } from '../../worker/index.ts';
import { performEffectFirst } from './effect-first.ts';
import { faultActions, onSending } from './fault-actions.ts';
import { Stops, childOptions, onOrders, tell } from './in-child.ts';
import type { WorkerProcessOptions } from './worker-options.ts';

const options = childOptions<WorkerProcessOptions>();
const stops = new Stops(options.stop);
const log = createLogger({ level: 'debug' });
Runtime.install({ shutdownSignals: [] });

onSending(({ operationId, taskId, attempt }) =>
  stops.reach({ point: 'before_sending', operationId, taskId, attempt }),
);

const encryptionKeys =
  options.encryptionKeys === undefined ? [] : parseEncryptionKeys(options.encryptionKeys);
const configured = faultActions({ withSecrets: encryptionKeys.length > 0 });
const actions = options.otherDeploy ? otherDeploy(configured) : configured;
const [ledger, connection] = await Promise.all([
  openLedger({ url: options.ledgerUrl }),
  NativeConnection.connect({ address: options.address }),
]);
const workers = new Map<string, HoldfastWorker>();

async function run(taskQueue: string): Promise<void> {
  const hmacKey = deriveHmacKey(encryptionKeys);
  const faults = stops.reach.bind(stops);
  const activities = createTaskActivities({
    ledger,
    actions,
    log,
    ...(hmacKey && { hashKey: hmacKey }),
    faults,
    leases: leaseDoor({ connection, namespace: options.namespace, taskQueue, encryptionKeys }),
  });
  const attemptOperation = told(
    options.protocol === 'effect_first' ? effectFirst : activities.attemptOperation,
  );
  const endProcedure = stoppingBefore(activities.endProcedure);
  const taken = { ...activities, attemptOperation, endProcedure };
  if (options.takes === 'activities') return takeActivities(taskQueue, taken);
  const worker = await startWorker({
    connection,
    namespace: options.namespace,
    taskQueue,
    ledger,
    actions,
    encryptionKeys,
    hmacKey,
    log,
    temporal: {
      workflowBundle: { codePath: options.bundleFile },
      activities: options.takes === 'workflows' ? {} : taken,
      sinks: { holdfastHints: { changed: { fn: stopAfterActivity, callDuringReplay: false } } },
      maxConcurrentActivityTaskExecutions: options.activitySlots ?? 40,
      activityTaskPollerBehavior: polls(options.activityPolls ?? 2),
      workflowTaskPollerBehavior: polls(2),
      maxCachedWorkflows: 100,
    },
  });
  workers.set(taskQueue, worker);
}

const polls = (maximum: number) => ({ type: 'simple-maximum', maximum }) as const;

/** Without workflow tasks there is no worker of Holdfast's own making. */
async function takeActivities(taskQueue: string, activities: object): Promise<void> {
  const worker = await Worker.create({
    connection,
    namespace: options.namespace,
    taskQueue,
    activities,
    activityTaskPollerBehavior: polls(options.activityPolls ?? 2),
  });
  void worker.run();
}

/** The outcome is in the engine's history; until this returns, the workflow task that saw it is not completed. */
async function stopAfterActivity(
  info: { workflowId: string },
  _taskId: string,
  _seq: number,
  status: string,
): Promise<void> {
  if (!['completed', 'failed', 'cancelled', 'needs_attention'].includes(status)) return;
  await stops.reach({ point: 'after_activity', taskId: info.workflowId, operationId: '', attempt: 0 });
}

type Attempting = ReturnType<typeof createTaskActivities>['attemptOperation'];

function told(attempting: Attempting): Attempting {
  return async (request) => {
    const { taskId, attempt } = request;
    const say = (outcome: string | null) => tell({ notice: 'ran', ran: { taskId, attempt, outcome } });
    say(null);
    try {
      const outcome = await attempting(request);
      say(outcome.kind);
      return outcome;
    } catch (error) {
      say(`threw ${String(error)}`);
      throw error;
    }
  };
}

type Ending = ReturnType<typeof createTaskActivities>['endProcedure'];

function stoppingBefore(ending: Ending): Ending {
  return async (request) => {
    const { taskId, plan } = request;
    await stops.reach({ point: 'before_end', taskId, operationId: plan.operationId, attempt: 0 });
    return ending(request);
  };
}

const effectFirst: Attempting = (request) =>
  performEffectFirst({ ledger, actions, faults: stops.reach.bind(stops) }, request);

/** Other thresholds, other order, one action gone: what a running task may not notice (field case 15). */
function otherDeploy(all: readonly Action[]): Action[] {
  return all
    .filter(({ contract }) => contract.name !== 'target_large')
    .map(({ contract, handlers }) => ({
      contract: {
        ...contract,
        version: contract.version + 1,
        deadlines: { ...contract.deadlines, attemptMs: 9_999 },
      },
      handlers,
    }))
    .reverse();
}

onOrders(async (order) => {
  switch (order.order) {
    case 'run':
      return run(order.taskQueue);
    case 'stop':
      return workers.get(order.taskQueue)?.stop();
    case 'goOn':
      return stops.goOn();
    case 'start':
      throw new Error('a worker starts no tasks');
    default:
      return order satisfies never;
  }
});

if (options.taskQueue !== undefined) await run(options.taskQueue);
tell({ notice: 'ready', data: {} });
