/** Readers that do not keep up (M6.1), over real sockets, with the gateway in a process of its own. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { GatewayLimits } from '../../src/gateway/index.ts';
import { drivenGateway } from '../support/driven-gateway.ts';
import type { DrivenGateway } from '../support/driven-gateway.ts';
import { FloodStage, progressIn, tool } from '../support/flood-stage.ts';
import { SlowReader } from '../support/slow-reader.ts';

const KIB = 1024;
const MIB = 1024 * KIB;

let stage: FloodStage;
const serve = async (limits: Partial<GatewayLimits>) => {
  stage = await FloodStage.open(limits);
};
const soon = (check: () => void | Promise<void>) => vi.waitFor(check, { timeout: 60_000, interval: 50 });

describe('readers that do not keep up', () => {
  afterEach(() => stage.close());

  it('50 of them, 1,000 notifications of 64 KiB each: memory stays bounded, everyone else is served [M6.1] [mode 9]', async () => {
    await serve({ streamBytesMax: 256 * KIB, stalledReaderMs: 600_000 });
    const stalled = Array.from({ length: 50 }, (_each, index) => stage.call(index));
    const good = stage.call('good');
    good.read();
    const { before, flooded, served } = await stage.stall([...stalled, good], 1_000, 64 * KIB);
    console.info('flooded', flooded, 'before', before, 'served meanwhile', served);
    expect(flooded.moves).toBe(1_000);
    expect(flooded.arrayBufferBytes - before.arrayBufferBytes).toBeLessThan(200 * MIB);
    expect(flooded.rssBytes - before.rssBytes).toBeLessThan(400 * MIB);
    expect(served).toBeGreaterThan(5);

    // Whoever begins to read at last gets what is left of the progress, and the response after it.
    const [late] = stalled;
    late?.read();
    await soon(() => expect(progressIn(late as SlowReader).at(-1)?.params?.message).toMatch(/^1000 /));
    await stage.answer('release', { result: { receipt: 'r' } });
    for (const reader of [late as SlowReader, good]) {
      await soon(() =>
        expect(reader.messages.at(-1)?.result).toMatchObject({ structuredContent: { receipt: 'r' } }),
      );
      const values = progressIn(reader).map(({ params }) => params?.progress as number);
      expect(values).toEqual([...new Set(values)].sort((a, b) => a - b));
      expect(values.at(-1)).toBe(1_001); // the latest is never the one that goes
    }
    expect(progressIn(late as SlowReader).length).toBeLessThan(200);
  });

  it('one that stays stalled is disconnected and its memory freed; its task and the others go on [M6.1]', async () => {
    await serve({ streamBytesMax: MIB, stalledReaderMs: 1_500 });
    const good = stage.call('good');
    good.read();
    await stage.whenWaiting(1);
    const before = await stage.memory();
    const stalled = Array.from({ length: 20 }, (_each, index) => stage.call(index));
    await stage.whenWaiting(21);
    await stage.flood(100, 65536);
    expect((await stage.memory()).arrayBufferBytes - before.arrayBufferBytes).toBeGreaterThan(5 * MIB);
    await stage.whenWaiting(1);
    await soon(async () =>
      expect((await stage.memory()).arrayBufferBytes - before.arrayBufferBytes).toBeLessThan(2 * MIB),
    );
    for (const reader of stalled) reader.read();
    await soon(() => expect(stalled.every(({ isCut }) => isCut)).toBe(true));
    for (const { messages } of stalled)
      expect(messages.every(({ method }) => method !== undefined)).toBe(true);
    await stage.answer('release', { result: { receipt: 'r' } });
    await soon(() =>
      expect(good.messages.at(-1)?.result).toMatchObject({ structuredContent: { receipt: 'r' } }),
    );
    expect(good.isCut).toBe(false);
  });

  it('are told in the response that progress was dropped for it, and that means: read again [M6.1]', async () => {
    await serve({ streamBytesMax: 64 * KIB });
    const slow = stage.call('slow');
    await stage.whenWaiting(1);
    await stage.flood(200, 60000);
    const receipt = 'r'.repeat(40 * KIB);
    await stage.answer('release', { result: { receipt } });
    slow.read();
    await soon(() =>
      expect(slow.messages.at(-1)?.result).toMatchObject({
        structuredContent: { receipt },
        _meta: { 'holdfast/refetch': { dropped: 1 }, 'holdfast/task': { status: 'completed' } },
      }),
    );
  });
});

describe('a response that its reader does not take', () => {
  let driven: DrivenGateway;
  let base: string;
  let readers: SlowReader[] = [];
  const open = (sent: ConstructorParameters<typeof SlowReader>[1]): SlowReader => {
    const reader = new SlowReader(`${base}/mcp`, sent);
    readers.push(reader);
    return reader;
  };
  const log = { info: vi.fn(), warn: vi.fn(), error: vi.fn() };
  const serveHere = async (limits: Partial<GatewayLimits>) => {
    driven = drivenGateway({ limits, log });
    base = (await driven.gateway.serveHttp({ port: 0 })).url;
  };
  afterEach(async () => {
    for (const reader of readers) reader.close();
    readers = [];
    await driven.gateway.close();
    vi.clearAllMocks();
  });
  const logged = (message: string) =>
    soon(() => expect(log.warn).toHaveBeenCalledWith(expect.anything(), message));

  it('is kept whole, however large, until the reader has stalled too long; its task has ended all the same [M6.1]', async () => {
    await serveHere({ streamBytesMax: 64 * KIB, stalledReaderMs: 1_000 });
    const slow = open({ ...tool('transfer', { to: 'bob', amount: 5 }), meta: { progressToken: 'slow' } });
    await soon(() => expect(driven.client.openWaits).toBe(1));
    driven.client.complete({ receipt: 'r'.repeat(8 * MIB) });
    await logged('a stalled reader was disconnected');
    slow.read();
    await soon(() => expect(slow.isCut).toBe(true));
    expect(slow.messages.every(({ method }) => method !== undefined)).toBe(true);
    expect(driven.client).toMatchObject({ cancels: [], openTasks: 0 });
  });

  it('is never dropped for another: the one without room is refused, and the connection ends after those that wait [M6.1]', async () => {
    await serveHere({ streamBytesMax: 6 * MIB });
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const batch = ['a', 'b', 'c'].map((account, id) => ({
      jsonrpc: '2.0',
      id,
      ...tool('read_balance', { account }),
    }));
    const slow = open({ headers, body: JSON.stringify(batch) });
    await soon(() => expect(driven.client.openWaits).toBe(3));
    const balance = 'r'.repeat(5 * MIB);
    // The first is in the hands of Node and the socket, the second waits, the third has no room.
    for (const taskId of ['task_1', 'task_2', 'task_3']) {
      driven.client.complete({ balance }, taskId);
      await soon(() => expect(driven.client.openWaits).toBe(3 - Number(taskId.at(-1))));
    }
    await logged('a response was refused, none was dropped');
    expect(log.warn).toHaveBeenCalledWith(
      { err: expect.objectContaining({ code: 'response_overflow' }) as unknown },
      expect.any(String),
    );
    slow.read();
    await soon(() => expect(slow.isCut).toBe(true));
    const answered = slow.messages.filter(({ result }) => result !== undefined);
    expect(answered.map(({ id }) => id)).toEqual([0, 1]);
    for (const { result } of answered) expect(result?.structuredContent).toEqual({ balance });
  });
});
