/**
 * What is measured: the embedded server as `holdfast dev` runs it (tuned, file WAL+FULL), and in this process the
 * client and two workers on one native connection, as `serve` has them: Holdfast's, and one for the bare workflows, made
 * by the same function with the same options.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode } from '@temporalio/worker';
import type { NativeConnection, WorkflowBundle } from '@temporalio/worker';
import { startEmbeddedTemporal } from '../src/embedded/index.ts';
import type { EmbeddedTemporal } from '../src/embedded/index.ts';
import type { Principal } from '../src/task/plan.ts';
import { createLogger, loadConfig, openHoldfast, startWorker } from '../worker/index.ts';
import type { Config, Holdfast } from '../worker/index.ts';
import { bareActivities } from './bare/activities.ts';

export const CONFIG_FILE = fileURLToPath(new URL('holdfast.config.ts', import.meta.url));
export const BARE_QUEUE = 'bare';

export interface System {
  server: EmbeddedTemporal;
  config: Config;
  holdfast: Holdfast;
  principal: Principal;
  /** For processes that join this system. */
  env: Record<string, string>;
  folder: string;
  close(): Promise<void>;
}

export async function openSystem(options: { worker: boolean }): Promise<System> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-bench-'));
  const server = await startEmbeddedTemporal({ stateDir: join(folder, 'temporal'), ui: false });
  const env = {
    HOLDFAST_CONFIG: CONFIG_FILE,
    HOLDFAST_STATE_DIR: folder,
    HOLDFAST_BENCH_TARGET: join(folder, 'target.db'),
    HOLDFAST_LOG_LEVEL: 'error',
    HOLDFAST_PORT: '0',
    TEMPORAL_ADDRESS: server.address,
  };
  Object.assign(process.env, env);
  const config = await loadConfig({ env: { ...process.env, ...env } });
  const holdfast = await openHoldfast({ config, worker: options.worker, migrate: true });
  const stopBare = options.worker ? await startBareWorker(holdfast, config) : undefined;
  return {
    server,
    config,
    holdfast,
    principal: config.principal,
    env,
    folder,
    async close() {
      await stopBare?.();
      await holdfast.close();
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The same options as Holdfast's worker, by construction; other workflows, other activities, no sinks. */
export async function startBareWorker(holdfast: Holdfast, config: Config): Promise<() => Promise<void>> {
  const worker = await startWorker({
    connection: holdfast.temporal.connection as NativeConnection,
    namespace: config.temporal.namespace,
    taskQueue: BARE_QUEUE,
    ledger: holdfast.ledger,
    actions: [],
    encryptionKeys: config.encryptionKeys,
    hmacKey: null,
    log: holdfast.log,
    maxCachedWorkflows: config.maxCachedWorkflows,
    activitySlots: config.activitySlots,
    temporal: { workflowBundle: await bareBundle(), activities: bareActivities, sinks: {} },
  });
  return () => worker.stop();
}

function bareBundle(): Promise<WorkflowBundle> {
  const quiet = createLogger({ level: 'silent' });
  const workflowsPath = fileURLToPath(new URL('bare/workflows.ts', import.meta.url));
  return bundleWorkflowCode({
    workflowsPath,
    logger: {
      log: () => undefined,
      trace: () => undefined,
      debug: () => undefined,
      info: () => undefined,
      warn: (message) => quiet.warn({}, message),
      error: (message) => console.error(message),
    },
  });
}
