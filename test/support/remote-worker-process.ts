/**
 * A worker in a process of its own that watches tasks of http-depot.ts, under a lease short enough for a test to outwait;
 * with `isWhole` as `startWorker` wires it, and stopped by SIGTERM.
 */
import { NativeConnection, Runtime } from '@temporalio/worker';
import { createTaskActivities } from '../../activities/create-task-activities.ts';
import { openLedger } from '../../src/ledger/open-ledger.ts';
import { RemoteCalls } from '../../src/remote/remote-calls.ts';
import { createLogger, startWorker } from '../../worker/index.ts';
import { leaseDoor } from '../../worker/lease-door.ts';
import { httpDepotAction, httpDepotServer } from './http-depot.ts';
import { childOptions, onOrders, tell } from './in-child.ts';
import type { WorkerProcessOptions } from './worker-options.ts';

const LEASE_MS = 3_000;
/** Nothing that only the end of the grace brings about is seen by a test. */
const GRACE_MS = 600_000;

const options = childOptions<WorkerProcessOptions>();
const { address, namespace, ledgerUrl, bundleFile } = options;
const log = createLogger({ level: 'debug' });
Runtime.install({ shutdownSignals: [] });

const [ledger, connection] = await Promise.all([
  openLedger({ url: ledgerUrl }),
  NativeConnection.connect({ address }),
]);
const actions = [httpDepotAction];
const remotes = () => httpDepotServer;

async function run(taskQueue: string): Promise<void> {
  const whole = { connection, namespace, taskQueue, ledger, actions, log };
  const keys = { encryptionKeys: [], hmacKey: null };
  const workflowBundle = { codePath: bundleFile };
  if (options.isWhole === true) {
    const worker = await startWorker({
      ...{ ...whole, ...keys, remotes, shutdownGraceMs: GRACE_MS, temporal: { workflowBundle } },
    });
    process.once('SIGTERM', () => void worker.stop().then(() => process.exit(0)));
    return;
  }
  const activities = createTaskActivities({
    ...{ ledger, actions, log, remotes },
    leases: leaseDoor({ connection, namespace, taskQueue, encryptionKeys: [] }),
    remoteCalls: new RemoteCalls({
      ...{ ledger, servers: remotes, worker: `worker-${process.pid}` },
      bounds: { leaseMs: LEASE_MS },
    }),
  });
  await startWorker({ ...whole, ...keys, temporal: { workflowBundle, activities } });
}

onOrders((order) =>
  order.order === 'run' ? run(order.taskQueue) : Promise.reject(new Error('it only runs')),
);
if (options.taskQueue !== undefined) await run(options.taskQueue);
tell({ notice: 'ready', data: {} });
