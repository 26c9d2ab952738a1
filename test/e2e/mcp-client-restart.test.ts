/**
 * 500 clients whose gateway, a process of its own, is killed and started again under them. What 10,000 do is in
 * test/unit/mcp-client/backoff.test.ts, on a simulated clock.
 */
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { McpClient } from '../../src/mcp-client/index.ts';
import { deferred } from '../support/deferred.ts';
import { FaultSystem, unique } from '../support/fault-system.ts';
import { startHoldfast } from '../support/holdfast-command.ts';
import type { RunningCommand } from '../support/holdfast-command.ts';

const WRITERS = 30;
const SEARCHERS = 30;
const WATCHERS = 440;

let system: FaultSystem;
const closers: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  system = await FaultSystem.open();
});
afterAll(async () => {
  for (const close of closers.reverse()) await close();
  await system.close();
});

it('500 clients lose their gateway in the midst of their calls: all are served by the next one, each effect once, and there is no second outage [M6.3] [mode 13]', async () => {
  const taskQueue = unique('restart');
  const store = await system.store('sqlite');
  await system.worker(store, { taskQueue }).ready();
  const start = async (port: string): Promise<RunningCommand> => {
    const env = {
      ...system.target.env,
      HOLDFAST_CONFIG: fileURLToPath(new URL('../support/mcp-client.config.ts', import.meta.url)),
      HOLDFAST_DATABASE_URL: store.url,
      HOLDFAST_TASK_QUEUE: taskQueue,
      HOLDFAST_LOG_LEVEL: 'warn',
      HOLDFAST_PORT: port,
      TEMPORAL_ADDRESS: system.temporal.address,
      TEMPORAL_NAMESPACE: system.temporal.namespace,
    };
    const running = await startHoldfast({ cwd: system.folder, env }, 'gateway');
    closers.push(() => running.end('SIGKILL'));
    return running;
  };
  const first = await start('0');
  const server = { url: `${first.url}/mcp` };
  const connect = (_each: unknown, seed: number) => McpClient.connect({ server, seed });
  const clients = await Promise.all(Array.from({ length: WRITERS + SEARCHERS + WATCHERS }, connect));
  closers.push(() => Promise.all(clients.map((client) => client.close())));
  const writers = clients.slice(0, WRITERS);
  const searchers = clients.slice(WRITERS, WRITERS + SEARCHERS);
  const watchers = clients.slice(WRITERS + SEARCHERS);
  const write = (client: McpClient, key: string) =>
    client.call('target_conditional', { value: key }, { key });
  const known = await write(writers[0] as McpClient, 'before');
  const taskId = known.taskId ?? '';

  let answered = 0;
  const some = deferred();
  const count = <T>(outcome: T): T => {
    if ((answered += 1) === WRITERS / 3) some.resolve();
    return outcome;
  };
  const calls = [
    ...writers.map((client, n) => write(client, `restart-${n}`).then(count)),
    ...searchers.map((client) => client.call('target_inline_safe', { resourceId: 'none' }).then(count)),
  ];
  await some.promise;
  await first.end('SIGKILL');
  expect(answered).toBeLessThan(calls.length);
  // Everybody who watched has lost the stream at this moment, and reads.
  const reads = watchers.map((client) => client.task(taskId).wait());
  const second = await start(new URL(first.url).port);
  const health = watchHealth(second.url);
  const outcomes = await Promise.all([...calls, ...reads]);
  const { well, refused } = await health.stop();

  expect(outcomes.filter(({ kind }) => kind !== 'completed')).toEqual([]);
  const { total, applied } = await system.target.report();
  expect([total, new Set(Object.values(applied))]).toEqual([WRITERS + 1, new Set([1])]);
  expect(refused).toBe(0);
  // One question at a time: a gateway that those who came back kept busy would have answered no second one.
  expect(well).toBeGreaterThan(2);
  expect(await second.end('SIGTERM')).toBe(0);
}, 120_000);

/** Asks the new gateway for its health, over and over, while everybody comes back. */
function watchHealth(url: string) {
  let isOver = false;
  let well = 0;
  let refused = 0;
  const watching = (async () => {
    while (!isOver) {
      const isWell = await fetch(`${url}/healthz`).then(
        ({ ok }) => ok,
        () => false,
      );
      if (isWell) well += 1;
      else refused += 1;
    }
  })();
  return {
    stop: async () => {
      isOver = true;
      await watching;
      return { well, refused };
    },
  };
}
