// The topology of docker-compose.yml as processes: two gateways, two workers, the ledger on PostgreSQL, one Temporal.
// Workers are replaced one by one under load; the target counts.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startEmbeddedTemporal } from '../../src/embedded/index.ts';
import { startFaultTarget } from '../support/fault-target.ts';
import type { FaultTarget } from '../support/fault-target.ts';
import { holdfast, holdfastJson, startHoldfast } from '../support/holdfast-command.ts';
import type { Place, RunningCommand } from '../support/holdfast-command.ts';
import { createTestDatabase } from '../support/postgres.ts';

const CONFIG = fileURLToPath(new URL('../support/target.config.ts', import.meta.url));
const CALLS = 60;
const AT_ONCE = 6;

const closers: (() => Promise<unknown>)[] = [];
let target: FaultTarget;
let place: Place;

beforeAll(async () => {
  const cwd = mkdtempSync(join(tmpdir(), 'holdfast-topology-'));
  closers.push(() => Promise.resolve(rmSync(cwd, { recursive: true, force: true })));
  const temporal = await startEmbeddedTemporal({ stateDir: join(cwd, 'temporal'), ephemeral: true });
  closers.push(() => temporal.stop());
  const database = await createTestDatabase();
  closers.push(() => database.drop());
  target = await startFaultTarget();
  closers.push(() => target.stop());
  place = {
    cwd,
    env: {
      ...target.env,
      HOLDFAST_CONFIG: CONFIG,
      HOLDFAST_DATABASE_URL: database.url,
      HOLDFAST_PORT: '0',
      HOLDFAST_LOG_LEVEL: 'warn',
      TEMPORAL_ADDRESS: temporal.address,
      TEMPORAL_NAMESPACE: temporal.namespace,
    },
  };
  expect((await holdfast(place, 'migrate')).code).toBe(0);
});
afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

async function start(command: 'gateway' | 'worker'): Promise<RunningCommand> {
  const running = await startHoldfast(place, command);
  closers.push(() => running.end('SIGKILL'));
  return running;
}

async function connect(gateway: RunningCommand): Promise<Client> {
  const client = new Client({ name: 'agent', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`)));
  closers.push(() => client.close());
  return client;
}

describe('two gateways, two workers, the ledger on PostgreSQL', () => {
  it('loses no call and repeats no effect while workers are replaced one by one under load [S1.5] [S2.11] [S3.8] [mode 6]', async () => {
    const agents = await Promise.all((await Promise.all([start('gateway'), start('gateway')])).map(connect));
    const workers: RunningCommand[] = await Promise.all([start('worker'), start('worker')]);

    let next = 0;
    const answers = new Map<string, unknown>();
    const agent = async (): Promise<void> => {
      while (next < CALLS) {
        const turn = next++;
        const client = agents[turn % agents.length] as Client;
        const answer = await client.callTool({
          name: 'target_conditional',
          arguments: { value: `v${turn}`, idempotencyKey: `load-${turn}` },
        });
        answers.set(`load-${turn}`, answer._meta?.['holdfast/task']);
      }
    };
    const load = Promise.all(Array.from({ length: AT_ONCE }, agent));
    for (const old of workers) {
      await start('worker');
      await old.end('SIGTERM');
    }
    await load;

    expect(answers.size).toBe(CALLS);
    for (const [key, task] of answers)
      expect(task, key).toMatchObject({ status: 'completed', effect: 'applied' });
    const { applied, total } = await target.report();
    expect(total).toBe(CALLS);
    expect(Object.values(applied).every((count) => count === 1)).toBe(true);
    expect((await holdfastJson<{ ok: boolean }>(place, 'audit', 'verify')).value.ok).toBe(true);
  }, 180_000);

  it('meets the same task through either gateway [S1.5] [case 10]', async () => {
    const agents = await Promise.all((await Promise.all([start('gateway'), start('gateway')])).map(connect));
    await start('worker');
    const call = (client: Client) =>
      client.callTool({ name: 'target_conditional', arguments: { value: 'one', idempotencyKey: 'both' } });
    const before = await target.total();
    const tasks = (await Promise.all(agents.map(call))).map(
      (answer) => answer._meta?.['holdfast/task'] as { taskId: string },
    );
    expect(new Set(tasks.map((task) => task.taskId)).size).toBe(1);
    expect((await target.total()) - before).toBe(1);
  });
});
