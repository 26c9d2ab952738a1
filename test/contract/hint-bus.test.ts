/** The bus between processes, on a real PostgreSQL. Each bus here stands for a process. */
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { openPostgresHints } from '../../src/client/postgres-hints.ts';
import type { HintBus } from '../../src/client/postgres-hints.ts';
import type { Hint } from '../../src/client/hints.ts';
import { createTestDatabase } from '../support/postgres.ts';
import type { TestDatabase } from '../support/postgres.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());
const opened: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

function open(url = database.url) {
  const said: { level: string; fields: object; text: string }[] = [];
  const at = (level: string) => (fields: object, text: string) => void said.push({ level, fields, text });
  const bus = openPostgresHints({ url, log: { info: at('info'), warn: at('warn') } });
  opened.push(() => bus.close());
  return { bus, said };
}

const sessions = async (): Promise<number> =>
  (await database.query("select pid from pg_stat_activity where application_name = 'holdfast hints'")).length;
const listening = (count: number) =>
  vi.waitFor(
    async () =>
      expect(
        await database.query(
          "select pid from pg_stat_activity where application_name = 'holdfast hints' and query like 'listen%'",
        ),
      ).toHaveLength(count),
    { timeout: 10_000 },
  );

async function listener(bus: HintBus, taskId: string): Promise<Hint[]> {
  const heard: Hint[] = [];
  bus.subscribe(taskId, (hint) => heard.push(hint));
  await listening(1);
  return heard;
}

describe('hints over PostgreSQL', () => {
  test('reach whoever waits in another process, with number and status, and once in their own', async () => {
    const worker = open().bus;
    const gateway = open().bus;
    const there = await listener(gateway, 'task_a');
    const here: Hint[] = [];
    worker.subscribe('task_a', (hint) => here.push(hint));
    worker.publish('task_b', 9, 'running');
    worker.publish('task_a', 4, 'awaiting_approval');
    expect(here).toEqual([{ seq: 4, status: 'awaiting_approval' }]);
    await vi.waitFor(() => expect(there).toEqual([{ seq: 4, status: 'awaiting_approval' }]));
    // Whatever else was sent has been heard once a later hint is.
    gateway.publish('task_a', 5);
    await vi.waitFor(() => expect(here).toHaveLength(2));
    expect([here[1], there]).toEqual([{ seq: 5 }, [{ seq: 4, status: 'awaiting_approval' }, { seq: 5 }]]);
  });

  test('of a burst are the latest of each task, in few notifications that each fit', async () => {
    const gateway = open().bus;
    const heard = await listener(gateway, 'täsk_7');
    const spy = new pg.Client({ connectionString: database.url });
    const payloads: string[] = [];
    spy.on('notification', ({ payload = '' }) => payloads.push(payload));
    await spy.connect();
    opened.push(() => spy.end());
    await spy.query('listen holdfast_hints');
    const worker = open().bus;
    for (let seq = 1; seq <= 20; seq += 1)
      for (let task = 0; task < 500; task += 1) worker.publish(`täsk_${task}`, seq, 'running');
    await vi.waitFor(() => expect(heard.at(-1)).toEqual({ seq: 20, status: 'running' }));
    const told = payloads.flatMap((payload) => (JSON.parse(payload) as { hints: unknown[] }).hints);
    expect(told.length).toBeLessThanOrEqual(1_000); // not the 10,000 that were published
    expect(payloads.length).toBeLessThan(10);
    for (const payload of payloads) expect(Buffer.byteLength(payload)).toBeLessThan(8_000);
    // One is under way at a time: what comes meanwhile goes together, however it comes.
    payloads.length = 0;
    for (let seq = 21; seq <= 220; seq += 1) {
      worker.publish('täsk_7', seq);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await vi.waitFor(() => expect(heard.at(-1)).toEqual({ seq: 220 }));
    expect(payloads.length).toBeLessThan(100);
  });

  test('are lost with the connection, which is said once, and heard again when it is back', async () => {
    const worker = open();
    const gateway = open();
    const heard = await listener(gateway.bus, 'task_a');
    worker.bus.publish('task_a', 1);
    await vi.waitFor(() => expect(heard).toHaveLength(1));
    for (let cuts = 0; cuts < 2; cuts += 1) {
      await database.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'holdfast hints'",
      );
      const before = heard.length;
      let seq = 10;
      await vi.waitFor(
        () => {
          worker.bus.publish('task_a', (seq += 1));
          expect(heard.length).toBeGreaterThan(before);
        },
        { timeout: 20_000 },
      );
    }
    const levels = gateway.said.map(({ level }) => level);
    expect(levels).toEqual(['warn', 'info', 'warn', 'info']);
    expect(gateway.said[0]?.fields).toEqual({ driverCode: '57P01' });
  });

  test('without a server cost nobody anything but latency: own ones are heard, and one line says so', async () => {
    let tries = 0;
    const refusing = createServer((socket) => {
      tries += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => refusing.listen(0, '127.0.0.1', resolve));
    opened.push(() => new Promise((resolve) => refusing.close(resolve)));
    const { port } = refusing.address() as AddressInfo;
    const { bus, said } = open(`postgres://nobody:secret@127.0.0.1:${port}/none`);
    const heard: Hint[] = [];
    bus.subscribe('task_a', (hint) => heard.push(hint));
    await vi.waitFor(() => expect(tries).toBeGreaterThan(2), { timeout: 10_000 });
    for (let seq = 1; seq <= 3; seq += 1) bus.publish('task_a', seq);
    expect(heard.map(({ seq }) => seq)).toEqual([1, 2, 3]);
    expect(said.map(({ level }) => level)).toEqual(['warn']);
    expect(JSON.stringify(said)).not.toContain('secret');
    await bus.close();
  });

  test('need a connection only where somebody publishes or waits, and leave none behind', async () => {
    const { bus } = open();
    expect(await sessions()).toBe(0);
    await listener(bus, 'task_a');
    await bus.close();
    await vi.waitFor(async () => expect(await sessions()).toBe(0));
    bus.publish('task_a', 1);
    await bus.close();
    expect(await sessions()).toBe(0);
  });

  test('that are none of ours are nothing', async () => {
    const gateway = open();
    const heard = await listener(gateway.bus, 'task_a');
    for (const payload of ['no json', '{}', '{"hints":[["task_a"]]}', '{"hints":[["task_a","1"]]}', 'null'])
      await database.query('select pg_notify($1, $2)', ['holdfast_hints', payload]);
    open().bus.publish('task_a', 2);
    await vi.waitFor(() => expect(heard).toEqual([{ seq: 2 }]));
    expect(gateway.said).toEqual([]);
  });
});
