/**
 * Plays every path of paths.ts and procedure-paths.ts on a real server and writes its history and its journal, for all
 * later versions to replay. Run by scripts/record-histories.ts; what a released version recorded is never recorded again,
 * so VERSION is that of the next release.
 */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { WorkflowHandle } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { findTemporal } from '../../src/embedded/index.ts';
import { SEARCH_ATTRIBUTE_TYPES, addSearchAttribute } from '../../worker/index.ts';
import type { TestServer } from '../../src/testing/index.ts';
import { WorkflowStage } from '../support/workflow-stage.ts';
import { CONTINUED, LEASE, PATHS, continued, leased } from './paths.ts';
import {
  PROCEDURE_CONTINUED,
  PROCEDURE_PATHS,
  openProcedureStage,
  procedureContinued,
} from './procedure-paths.ts';
import { REMOTE_PATHS, watchNameOf, watchOf } from './remote-paths.ts';

const VERSION = 'v2';
/** Only these paths, where named on the command line: for a path that is new. Without names: every path anew. */
const ONLY = process.argv.slice(2);
const isWanted = (name: string): boolean => ONLY.length === 0 || ONLY.includes(name);
const folder = (kind: 'histories' | 'journals') =>
  fileURLToPath(new URL(`./${kind}/${VERSION}/`, import.meta.url));

type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;

/** What says nothing about the run and differs each time. */
const NOISE = new Set(['identity', 'requestId', 'taskId', 'workerVersion', 'header']);

async function writeHistory(name: string, history: History): Promise<void> {
  const plain: unknown = JSON.parse(historyToJSON(history), (key, value: unknown) =>
    NOISE.has(key) ? undefined : value,
  );
  await writeFile(`${folder('histories')}${name}.json`, `${JSON.stringify(plain)}\n`);
}

async function writeJournal(name: string, handle: WorkflowHandle): Promise<void> {
  const journal = { events: await handle.query('events'), state: await handle.query('task') };
  await writeFile(`${folder('journals')}${name}.json`, `${JSON.stringify(journal)}\n`);
}

async function recordPaths(): Promise<void> {
  const stage = await WorkflowStage.open('local');
  for (const [name, path] of Object.entries(PATHS)) {
    if (!isWanted(name)) continue;
    const handle = await path(stage);
    await writeHistory(name, await handle.fetchHistory());
    if (name !== 'misuse') await writeJournal(name, handle);
    if (name in REMOTE_PATHS)
      await writeHistory(watchNameOf(name), await watchOf(stage, name, handle).fetchHistory());
    console.log(name);
  }
  if (isWanted(LEASE)) await writeHistory(LEASE, await (await leased(stage)).fetchHistory());
  await stage.close();
}

async function recordProcedures(): Promise<void> {
  const stage = await openProcedureStage('local');
  for (const [name, path] of Object.entries(PROCEDURE_PATHS)) {
    if (!isWanted(name)) continue;
    const handle = stage.holdfast.temporal.workflow.getHandle(await path(stage));
    await handle.result();
    await writeHistory(name, await handle.fetchHistory());
    await writeJournal(name, handle);
    console.log(name);
  }
  await stage.holdfast.close();
}

/** A server that suggests to continue as new after a few events. */
async function openEarlyServer(): Promise<TestServer> {
  const { path } = await findTemporal();
  const extraArgs = ['--dynamic-config-value', 'limit.historyCount.suggestContinueAsNew=60'];
  const executable = { type: 'existing-path' as const, path };
  const env = await TestWorkflowEnvironment.createLocal({ server: { executable, ui: false, extraArgs } });
  for (const name of Object.keys(SEARCH_ATTRIBUTE_TYPES))
    await addSearchAttribute(env.connection, 'default', name);
  return { kind: 'local', env, close: () => env.teardown() };
}

/** The last run of an ended task, and the run before it. */
async function writeBoundary(
  names: { before: string; after: string },
  { client, workflowId }: WorkflowHandle,
): Promise<void> {
  const last = client.getHandle(workflowId);
  const after = await last.fetchHistory();
  const before = after.events?.[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId;
  if (!before) throw new Error('the run did not continue as new');
  await writeHistory(names.before, await client.getHandle(workflowId, before).fetchHistory());
  await writeHistory(names.after, after);
  await writeJournal(names.after, last);
  console.log(names.after);
}

async function recordContinued(): Promise<void> {
  const stage = await WorkflowStage.open(await openEarlyServer());
  await writeBoundary(CONTINUED, await continued(stage));
  await stage.close();
}

async function recordContinuedProcedure(): Promise<void> {
  const server = await openEarlyServer();
  const stage = await openProcedureStage(server);
  const handle = server.env.client.workflow.getHandle(await procedureContinued(stage));
  await handle.result();
  await writeBoundary(PROCEDURE_CONTINUED, handle);
  await stage.holdfast.close();
  await server.close();
}

for (const kind of ['histories', 'journals'] as const) {
  if (ONLY.length > 0) break;
  await rm(folder(kind), { recursive: true, force: true });
  await mkdir(folder(kind), { recursive: true });
}
if ([...Object.keys(PATHS), LEASE].some(isWanted)) await recordPaths();
if (Object.keys(PROCEDURE_PATHS).some(isWanted)) await recordProcedures();
if (isWanted(CONTINUED.after)) await recordContinued();
if (isWanted(PROCEDURE_CONTINUED.after)) await recordContinuedProcedure();
