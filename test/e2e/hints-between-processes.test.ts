// Gateway and worker as two processes with the ledger on PostgreSQL. The gateway reads a watched task once a day, so that
// whatever it says of one it heard from the worker.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startEmbeddedTemporal } from '../../src/embedded/index.ts';
import { holdfast, startHoldfast } from '../support/holdfast-command.ts';
import type { Place, RunningCommand } from '../support/holdfast-command.ts';
import { createTestDatabase } from '../support/postgres.ts';
import type { TestDatabase } from '../support/postgres.ts';
import { connectTaskClient } from '../support/task-session.ts';
import type { TaskClientUnderTest } from '../support/task-session.ts';

const CONFIG = fileURLToPath(new URL('../support/heard.config.ts', import.meta.url));
const FORMS = { extensions: { 'io.modelcontextprotocol/tasks': {} }, elicitation: {} };

const closers: (() => Promise<unknown>)[] = [];
let place: Place;
let database: TestDatabase;
let gateway: RunningCommand;
let mcp: TaskClientUnderTest;

beforeAll(async () => {
  const cwd = mkdtempSync(join(tmpdir(), 'holdfast-hints-'));
  closers.push(() => Promise.resolve(rmSync(cwd, { recursive: true, force: true })));
  const temporal = await startEmbeddedTemporal({ stateDir: join(cwd, 'temporal'), ephemeral: true });
  closers.push(() => temporal.stop());
  database = await createTestDatabase();
  closers.push(() => database.drop());
  place = {
    cwd,
    env: {
      HOLDFAST_CONFIG: CONFIG,
      HOLDFAST_DATABASE_URL: database.url,
      HOLDFAST_PORT: '0',
      HOLDFAST_LOG_LEVEL: 'warn',
      TEMPORAL_ADDRESS: temporal.address,
      TEMPORAL_NAMESPACE: temporal.namespace,
    },
  };
  expect((await holdfast(place, 'migrate')).code).toBe(0);
  gateway = await start('gateway');
  mcp = await connectTaskClient({ transport: 'http', url: `${gateway.url}/mcp` }, FORMS);
  closers.push(() => mcp.close());
});
afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

async function start(command: 'gateway' | 'worker'): Promise<RunningCommand> {
  const running = await startHoldfast(place, command);
  closers.push(() => running.end('SIGKILL'));
  return running;
}

/** A task that is listened to and has been told of as it stood before any worker came by. */
async function listened(text: string) {
  const called = await mcp.request('tools/call', { name: 'publish_note', arguments: { text } });
  const taskId = String(called.result?.['taskId']);
  const { closed } = await mcp.listen({ taskIds: [taskId] });
  const told = () =>
    mcp.received
      .filter(({ method, params }) => method === 'notifications/tasks' && params?.['taskId'] === taskId)
      .map(({ params }) => params ?? {});
  await expect.poll(told, { timeout: 20_000 }).toHaveLength(1);
  return { taskId, closed, told };
}
const until = { timeout: 60_000 };

describe('what a worker does, with the ledger on PostgreSQL', () => {
  it('is heard in the gateway’s process: the question, and after its answer the end [M2.5] [M2.3]', async () => {
    const { taskId, closed, told } = await listened('hello');
    expect(told()[0]).toMatchObject({ status: 'working' });
    const worker = await start('worker');
    await expect.poll(() => told().at(-1), until).toMatchObject({ status: 'input_required' });
    const [callId] = Object.keys(told().at(-1)?.['inputRequests'] as object);
    await mcp.request('tasks/update', {
      taskId,
      inputResponses: { [String(callId)]: { action: 'accept', content: { decision: 'approve' } } },
    });
    expect(await closed).toBe('graceful');
    expect(told().at(-1)).toMatchObject({
      status: 'completed',
      result: { structuredContent: { published: 'hello' } },
    });
    await worker.end('SIGTERM');
  });

  it('is heard again after the server cut the connections that hints go over [M2.5]', async () => {
    const { told } = await listened('cut');
    const cut = await database.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'holdfast hints'",
    );
    expect(cut.length).toBeGreaterThan(0);
    const listening = () =>
      database.query(
        "select pid from pg_stat_activity where application_name = 'holdfast hints' and query like 'listen%'",
      );
    await expect.poll(listening, until).toHaveLength(1);
    await start('worker');
    await expect.poll(() => told().at(-1), until).toMatchObject({ status: 'input_required' });
    expect(gateway.output().match(/hints between processes are not heard/g)).toHaveLength(1);
  });
});
