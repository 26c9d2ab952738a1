/**
 * Memory of a worker while many tasks wait, and of worker and gateway over many calls. Both are processes of their own,
 * started by the command line; megabytes are what the operating system counts.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { figure } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { McpCaller } from '../mcp-caller.ts';
import { startGatewayProcess, startWorkerProcess } from '../processes/child.ts';
import type { Child } from '../processes/child.ts';
import { median } from '../statistics.ts';
import type { System } from '../system.ts';

const booking = { sku: 'widget', quantity: 3 };
const LANES = 50;
const WAITING_MB_MAX = 300;

/** Tasks that their target put off for an hour. */
export async function waitingFigures(system: System, counts: readonly number[]): Promise<Figure[]> {
  const worker = await startWorkerProcess(system);
  try {
    const figures: Figure[] = [];
    for (const count of counts) {
      await startWaiting(system, count);
      const bar = count >= 10_000 ? { atMost: WAITING_MB_MAX } : null;
      figures.push(figure(`worker with ${count} waiting tasks`, worker.memoryMb(), 'MB resident', bar));
    }
    return figures;
  } finally {
    await worker.stop();
  }
}

/** Until so many wait in all. */
async function startWaiting({ holdfast, principal, config }: System, count: number): Promise<void> {
  const { client } = holdfast;
  const ledger = new Database(config.databaseUrl.slice('sqlite:'.length), { readonly: true });
  const released = ledger.prepare<[], { n: number }>(
    "select count(*) as n from operation where state = 'released'",
  );
  const waiting = (): number => released.get()?.n ?? 0;
  let missing = count - waiting();
  await inLanes(async () => {
    while ((missing -= 1) >= 0)
      await client.start({ action: 'book_later', args: { ...booking }, key: randomUUID(), principal });
  });
  while (waiting() < count) await delay(100);
  ledger.close();
  await delay(2_000); // the engine is told a moment after the ledger
}

/** Windows of equal length after the first half: growth is the last one over the first one. */
const WINDOWS = 5;
const GROWTH_MAX = 1.1;

export async function growthFigures(system: System, calls: number): Promise<Figure[]> {
  const [worker, gateway] = [await startWorkerProcess(system), await startGatewayProcess(system)];
  const mcp = new McpCaller(gateway.url);
  try {
    await callMany(mcp, calls / 2);
    const seen: { worker: number; gateway: number }[] = [];
    for (let window = 0; window < WINDOWS; window += 1) {
      seen.push({ worker: await memoryDuring(worker), gateway: await memoryDuring(gateway) });
      await callMany(mcp, calls / 2 / WINDOWS);
    }
    const growth = (of: 'worker' | 'gateway') => (seen.at(-1)?.[of] ?? 0) / (seen[0]?.[of] ?? 1);
    const bar = { atMost: GROWTH_MAX };
    const unit = `× memory after ${calls / 2} calls`;
    return [
      figure(`worker after ${calls} calls`, growth('worker'), unit, bar),
      figure(`gateway after ${calls} calls`, growth('gateway'), unit, bar),
      figure('worker, memory', seen.at(-1)?.worker ?? null, 'MB resident'),
      figure('gateway, memory', seen.at(-1)?.gateway ?? null, 'MB resident'),
    ];
  } finally {
    mcp.close();
    await gateway.stop();
    await worker.stop();
  }
}

async function callMany(mcp: McpCaller, calls: number): Promise<void> {
  let left = calls;
  await inLanes(async () => {
    while ((left -= 1) >= 0) {
      const answer = await mcp.callTool('book_inline', booking, randomUUID());
      if (answer.isError) throw new Error(`a call failed: ${JSON.stringify(answer.structuredContent)}`);
    }
  });
}

/** The median of a few looks: a garbage collection away from one another. */
async function memoryDuring(child: Child): Promise<number> {
  const looks: number[] = [];
  for (let look = 0; look < 5; look += 1) {
    looks.push(child.memoryMb());
    await delay(200);
  }
  return median(looks);
}

const inLanes = (lane: () => Promise<void>): Promise<unknown> =>
  Promise.all(Array.from({ length: LANES }, lane));
