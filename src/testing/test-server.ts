/** A Temporal server for tests, found or fetched like the embedded one. One may serve many test Holdfasts. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import type { DataConverter } from '@temporalio/common';
import { addSearchAttribute, SEARCH_ATTRIBUTE_TYPES } from '../../worker/index.ts';
import { quietAtItsEnd } from '../client/quiet-connection.ts';
import { findTestServer, startEmbeddedTemporal } from '../embedded/index.ts';

/**
 * `time-skipping`: time jumps to the next timer while a task is waited for; lacks deletion, retention and visibility.
 * `local`: the real server, tuned as `holdfast dev` has it, on the real clock.
 */
export type TestServerKind = 'local' | 'time-skipping';

export interface TestServer {
  readonly kind: TestServerKind;
  readonly env: TestWorkflowEnvironment;
  close(): Promise<void>;
}

export async function openTestServer(
  kind: TestServerKind,
  options: { dataConverter?: DataConverter; historyEventsMax?: number } = {},
): Promise<TestServer> {
  quietRuntime();
  const client = options.dataConverter ? { client: { dataConverter: options.dataConverter } } : {};
  return kind === 'local' ? openLocal(client, options.historyEventsMax) : openTimeSkipping(client);
}

type ClientPart = { client?: { dataConverter: DataConverter } };

async function openTimeSkipping(client: ClientPart): Promise<TestServer> {
  const { path } = await findTestServer();
  const server = { executable: { type: 'existing-path' as const, path } };
  const env = await TestWorkflowEnvironment.createTimeSkipping({ server, ...client });
  quietAtItsEnd(env.connection);
  const close = (): Promise<void> => env.teardown();
  try {
    for (const name of Object.keys(SEARCH_ATTRIBUTE_TYPES)) {
      await addSearchAttribute(env.connection, env.namespace ?? 'default', name);
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { kind: 'time-skipping', env, close };
}

async function openLocal(client: ClientPart, historyEventsMax?: number): Promise<TestServer> {
  const stateDir = await mkdtemp(join(tmpdir(), 'holdfast-server-'));
  const server = await startEmbeddedTemporal({
    stateDir,
    ephemeral: true,
    ...(historyEventsMax !== undefined && { historyEventsMax }),
  });
  const stop = async (): Promise<void> => {
    await server.stop();
    await rm(stateDir, { recursive: true, force: true });
  };
  const { address, namespace } = server;
  try {
    const env = await TestWorkflowEnvironment.createFromExistingServer({ address, namespace, ...client });
    quietAtItsEnd(env.connection);
    const close = (): Promise<void> => env.teardown().finally(stop);
    return { kind: 'local', env, close };
  } catch (error) {
    await stop();
    throw error;
  }
}

let isQuiet = false;

/** A test's output is the test's; only errors of the engine's client are worth a line. */
function quietRuntime(): void {
  if (isQuiet) return;
  isQuiet = true;
  try {
    Runtime.install({
      logger: new DefaultLogger('ERROR'),
      telemetryOptions: { logging: { filter: { core: 'ERROR', other: 'ERROR' }, forward: {} } },
      shutdownSignals: [],
    });
  } catch {
    // installed by the test itself
  }
}
