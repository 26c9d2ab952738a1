/**
 * Plays every path of paths.ts on a real server and writes its history and its journal, for all later versions to
 * replay. Run by scripts/record-histories.ts; what a released version recorded is never recorded again, so VERSION is
 * that of the next release.
 */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { findTemporal } from '../../src/embedded/index.ts';
import { SEARCH_ATTRIBUTE_TYPES, addSearchAttribute } from '../../worker/index.ts';
import { WorkflowStage } from '../support/workflow-stage.ts';
import type { ActionHandle } from '../support/workflow-stage.ts';
import { CONTINUED, PATHS, continued } from './paths.ts';

const VERSION = 'v2';
/** Only these paths, where named on the command line: for a path that is new. Without names: every path anew. */
const ONLY = process.argv.slice(2);
const folder = (kind: 'histories' | 'journals') =>
  fileURLToPath(new URL(`./${kind}/${VERSION}/`, import.meta.url));

type History = Awaited<ReturnType<ActionHandle['fetchHistory']>>;

/** What says nothing about the run and differs each time. */
const NOISE = new Set(['identity', 'requestId', 'taskId', 'workerVersion', 'header']);

async function writeHistory(name: string, history: History): Promise<void> {
  const plain: unknown = JSON.parse(historyToJSON(history), (key, value: unknown) =>
    NOISE.has(key) ? undefined : value,
  );
  await writeFile(`${folder('histories')}${name}.json`, `${JSON.stringify(plain)}\n`);
}

async function writeJournal(name: string, handle: ActionHandle): Promise<void> {
  const journal = { events: await handle.query('events'), state: await handle.query('task') };
  await writeFile(`${folder('journals')}${name}.json`, `${JSON.stringify(journal)}\n`);
}

async function recordPaths(): Promise<void> {
  const stage = await WorkflowStage.open('local');
  for (const [name, path] of Object.entries(PATHS)) {
    if (ONLY.length > 0 && !ONLY.includes(name)) continue;
    const handle = await path(stage);
    await writeHistory(name, await handle.fetchHistory());
    if (name !== 'misuse') await writeJournal(name, handle);
    console.log(name);
  }
  await stage.close();
}

/** A server that suggests to continue as new after a few events. */
async function recordContinued(): Promise<void> {
  const { path } = await findTemporal();
  const extraArgs = ['--dynamic-config-value', 'limit.historyCount.suggestContinueAsNew=60'];
  const executable = { type: 'existing-path' as const, path };
  const env = await TestWorkflowEnvironment.createLocal({ server: { executable, ui: false, extraArgs } });
  for (const name of Object.keys(SEARCH_ATTRIBUTE_TYPES))
    await addSearchAttribute(env.connection, 'default', name);
  const stage = await WorkflowStage.open({ kind: 'local', env, close: () => env.teardown() });
  const handle = await continued(stage);
  const after = await handle.fetchHistory();
  const before = after.events?.[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId;
  if (!before) throw new Error('the run did not continue as new');
  await writeHistory(
    CONTINUED.before,
    await env.client.workflow.getHandle(handle.workflowId, before).fetchHistory(),
  );
  await writeHistory(CONTINUED.after, after);
  await writeJournal(CONTINUED.after, handle);
  await stage.close();
}

for (const kind of ['histories', 'journals'] as const) {
  if (ONLY.length > 0) break;
  await rm(folder(kind), { recursive: true, force: true });
  await mkdir(folder(kind), { recursive: true });
}
await recordPaths();
if (ONLY.length === 0) await recordContinued();
