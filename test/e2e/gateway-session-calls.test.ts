/** Calls of a 2025 session: cancelled, left by their client or by the end of the session, and what each holds until then. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { GatewayOptions } from '../../src/gateway/index.ts';
import { drivenGateway } from '../support/driven-gateway.ts';
import type { DrivenGateway } from '../support/driven-gateway.ts';
import { HandDrivenClock } from '../support/hand-driven-clock.ts';
import { beginSession } from '../support/legacy-session.ts';
import { messagesOf } from '../support/mcp-messages.ts';

let driven: DrivenGateway;
let url: string;
let session: Record<string, string>;
const serve = async (options: Partial<GatewayOptions> = {}) => {
  driven = drivenGateway(options);
  url = `${(await driven.gateway.serveHttp({ port: 0 })).url}/mcp`;
  session = await beginSession(url);
};
afterEach(() => driven.gateway.close());

const send = (body: object | null, init: RequestInit = {}) =>
  fetch(url, { method: 'POST', headers: session, ...init, ...(body && { body: JSON.stringify(body) }) });
const call = (id: number, name: string, args: object) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args },
});
const transfer = (id: number) => call(id, 'transfer', { to: 'bob', amount: id });
const readBalance = (id: number) => call(id, 'read_balance', { account: 'a' });
const list = { jsonrpc: '2.0', id: 'list', method: 'tools/list' };
const cancelled = (requestId: number) => ({
  jsonrpc: '2.0',
  method: 'notifications/cancelled',
  params: { requestId },
});
/** Answers that came after a connection was closed, on others: the gateway has had its turns to see that. */
const letItNotice = async () => {
  for (let round = 0; round < 20; round += 1) await (await send(cancelled(99))).text();
};
/** On a loaded machine. */
const SOON = { timeout: 10_000 };
const whenWaiting = (count: number) => vi.waitFor(() => expect(driven.client.openWaits).toBe(count), SOON);

describe('a cancelled call', () => {
  it('has its stream closed and its place given back, again and again, its client still reading [M5.1] [M7.2]', async () => {
    await serve({ limits: { openCallsMax: 1 } });
    for (const id of [1, 2, 3]) {
      const answer = await send(transfer(id));
      await whenWaiting(1);
      expect((await send(cancelled(id))).status).toBe(202);
      expect(await messagesOf(answer)).toEqual([]);
      await whenWaiting(0);
      expect((await send(list)).status).toBe(200);
    }
  });

  it('of a batch leaves the stream to the others, and the last answer closes it [M5.1] [M5.2]', async () => {
    await serve({ limits: { openCallsMax: 3 } });
    const answer = await send([transfer(1), transfer(2), transfer(3)]);
    await whenWaiting(3);
    await send(cancelled(2));
    await whenWaiting(2);
    expect((await send(list)).status).toBe(429);
    driven.client.complete({ receipt: 'a' }, 'task_1');
    driven.client.complete({ receipt: 'c' }, 'task_3');
    expect((await messagesOf(answer)).map(({ id }) => id)).toEqual([1, 3]);
    await vi.waitFor(async () => expect((await send([list])).status).toBe(200), SOON);
  });

  it('that has ended, or never was, closes nothing [M5.1] [M5.2]', async () => {
    await serve();
    const answer = await send(transfer(1));
    await whenWaiting(1);
    for (const params of [{ requestId: 7 }, { requestId: '1' }, { requestId: null }, {}])
      await send({ ...cancelled(1), params });
    driven.client.complete({ receipt: 'r' });
    expect((await messagesOf(answer))[0]).toHaveProperty('result.structuredContent', { receipt: 'r' });
    expect((await send(cancelled(1))).status).toBe(202);
  });
});

describe('an id that is under way', () => {
  it('is refused for another request, which would take its answer; afterwards it is free [M5.2]', async () => {
    await serve();
    const answer = await send(transfer(1));
    await whenWaiting(1);
    for (const body of [transfer(1), [transfer(5), transfer(5)]]) {
      const refused = await send(body);
      expect(refused.status).toBe(400);
      expect(await refused.json()).toMatchObject({
        error: { code: -32600, data: { code: 'invalid_arguments' } },
      });
    }
    driven.client.complete({ receipt: 'r' });
    expect((await messagesOf(answer)).map(({ id }) => id)).toEqual([1]);
    expect((await messagesOf(await send({ ...list, id: 1 })))[0]).toHaveProperty('result.tools');
  });
});

describe('a client that is gone', () => {
  it('has its place as long as its call goes on [M7.2] [M5.1]', async () => {
    await serve({ limits: { openCallsMax: 1 } });
    const gone = new AbortController();
    const answer = await send(transfer(1), { signal: gone.signal });
    await whenWaiting(1);
    gone.abort();
    await expect(answer.text()).rejects.toThrow();
    await letItNotice();
    const again = await send(transfer(2));
    expect([again.status, driven.client.openTasks]).toEqual([429, 1]);
    driven.client.complete({ receipt: 'r' });
    await vi.waitFor(async () => expect((await send(list)).status).toBe(200), SOON);
  });

  it.each([
    ['with its stream', (signal: AbortSignal) => send(null, { method: 'GET', signal })],
    ['in the midst of a call', (signal: AbortSignal) => send(transfer(1), { signal })],
  ])('%s leaves a session that expires [M7.2]', async (_name, open) => {
    const clock = new HandDrivenClock();
    await serve({ clock, limits: { legacySessionIdleMs: 60_000 } });
    const gone = new AbortController();
    const stream = await open(gone.signal);
    expect(stream.status).toBe(200);
    gone.abort();
    await expect(stream.text()).rejects.toThrow();
    await letItNotice();
    await vi.waitFor(async () => {
      clock.pass(2 * 60_000);
      expect((await send(list)).status).toBe(404);
    }, SOON);
  });
});

describe('a session that ends', () => {
  it('ends the waits in it and has cancelled nothing, safe calls included [M5.1] [M5.3]', async () => {
    await serve();
    const answers = [await send(transfer(1)), await send(readBalance(2))];
    await whenWaiting(2);
    expect((await send(null, { method: 'DELETE' })).status).toBe(200);
    for (const answer of answers) expect(await messagesOf(answer)).toEqual([]);
    await whenWaiting(0);
    expect(driven.client).toMatchObject({ cancels: [], openTasks: 2 });
  });
});
