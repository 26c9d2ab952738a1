/** How a request is cancelled on each transport, what follows, and what is no cancel (M5). */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createGateway, toolOf } from '../../src/gateway/index.ts';
import { drivenClient, drivenGateway, LOCAL, transfer as transferAction } from '../support/driven-gateway.ts';
import type { DrivenGateway } from '../support/driven-gateway.ts';
import { answerOf, envelope, post, rawHeaders } from '../support/mcp-messages.ts';
import { RawStdio } from '../support/raw-stdio.ts';

const LIMITS = { blockingMs: 30_000, progressIntervalMs: 0 };
const tool = (name: string, args: object = {}) => ({
  method: 'tools/call',
  params: { name, arguments: args },
});
const transfer = tool('transfer', { to: 'bob', amount: 5 });
const readBalance = tool('read_balance', { account: 'a' });

describe('on stdio', () => {
  let gateway: RawStdio;
  afterEach(() => gateway.close());
  const cancelled = (params: object) => ({
    jsonrpc: '2.0',
    method: 'notifications/cancelled',
    params: { ...params, _meta: envelope() },
  });
  /** A call under way, known by its first progress. */
  const begin = async (id: string | number, message: typeof transfer = transfer) => {
    gateway.send({ ...message, id, meta: { progressToken: id } });
    await gateway.until('progress', () =>
      gateway.received.some(({ params }) => params?.progressToken === id),
    );
  };
  const openTasks = async () => (await gateway.ask(tool('open_tasks'))).result?.structuredContent;

  it.each(['seven', 7, 0])(
    'the notification ends request %o without a response, and its task goes on [M5.1] [M5.2] [M5.3]',
    async (id) => {
      gateway = new RawStdio(LIMITS);
      await begin(id);
      gateway.write(cancelled({ requestId: id, reason: 'changed my mind' }));
      expect(await openTasks()).toEqual({ open: 1 });
      await begin('again');
      await gateway.ask(tool('release', { result: { receipt: 'r' } }));
      await gateway.until('the answer', () => gateway.answersTo('again').length > 0);
      expect(gateway.answersTo('again')[0]?.result).toMatchObject({
        structuredContent: { receipt: 'r' },
        _meta: { 'holdfast/task': { attached: true, cause: 'committed' } },
      });
      expect(await openTasks()).toEqual({ open: 0 });
      expect(gateway.answersTo(id)).toEqual([]);
      const told = gateway.received.filter(({ params }) => params?.progressToken === id);
      expect(told).toHaveLength(1); // and none after the cancel, though the task went on
    },
  );

  it('a safe call ends with its request [M5.3]', async () => {
    gateway = new RawStdio(LIMITS);
    await begin(1, readBalance);
    gateway.write(cancelled({ requestId: 1 }));
    await vi.waitFor(async () =>
      expect((await gateway.ask(tool('cancels'))).result?.structuredContent).toEqual({
        cancels: [{ taskId: 'task_1', reason: 'the request was cancelled' }],
      }),
    );
    expect(gateway.answersTo(1)).toEqual([]);
  });

  it('unknown, malformed and finished requests are cancelled without any effect or answer [M5.1] [M5.2]', async () => {
    gateway = new RawStdio(LIMITS);
    await begin(1);
    for (const params of [
      { requestId: 'unknown' },
      { requestId: '1' }, // not the number
      { requestId: null },
      { requestId: { id: 1 } },
      {},
    ])
      gateway.write(cancelled(params));
    gateway.write({ jsonrpc: '2.0', method: 'notifications/cancelled' });
    await gateway.ask(tool('release', { result: 'done' }));
    await gateway.until('the answer', () => gateway.answersTo(1).length > 0);
    expect(gateway.answersTo(1)[0]?.result).toMatchObject({ content: [{ text: 'done' }] });
    gateway.write(cancelled({ requestId: 1 }));
    expect(await openTasks()).toEqual({ open: 0 });
    expect(gateway.received.filter(({ error }) => error !== undefined)).toEqual([]);
    expect(gateway.answersTo(1)).toHaveLength(1);
  });
});

describe('on HTTP', () => {
  let driven: DrivenGateway;
  let url: string;
  afterEach(() => driven.gateway.close());
  const serve = async (limits: object = LIMITS) => {
    driven = drivenGateway({ limits });
    url = `${(await driven.gateway.serveHttp({ port: 0 })).url}/mcp`;
  };
  const waiting = (count = 1) => vi.waitFor(() => expect(driven.client.openWaits).toBe(count));
  const legacyHeaders = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2025-11-25',
  };
  const send = (body: object, headers: Record<string, string>, signal?: AbortSignal) =>
    fetch(url, { method: 'POST', headers, body: JSON.stringify(body), ...(signal && { signal }) });
  const legacy = (message: object, signal?: AbortSignal) =>
    send({ jsonrpc: '2.0', id: 1, ...message }, legacyHeaders, signal);

  it('a posted notification does nothing, neither on 2026-07-28 nor before [M5.1] [M5.2] [mode 1]', async () => {
    await serve();
    const notification = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } };
    for (const [call, cancel] of [
      [
        () => post(url, { ...readBalance, id: 1 }),
        () =>
          send(
            { ...notification, params: { requestId: 1, _meta: envelope() } },
            rawHeaders({ method: 'notifications/cancelled' }),
          ),
      ],
      [() => legacy(readBalance), () => send(notification, legacyHeaders)],
    ] as [() => Promise<Response>, () => Promise<Response>][]) {
      const pending = call();
      await waiting();
      expect((await cancel()).status).toBeLessThan(500);
      expect(driven.client).toMatchObject({ openWaits: 1, cancels: [] });
      driven.client.complete({ balance: 7 });
      expect((await answerOf(await pending)).result).toMatchObject({ structuredContent: { balance: 7 } });
    }
  });

  it('the closed stream is the cancel on 2026-07-28: a safe call ends, any other task goes on [M5.1] [M5.3]', async () => {
    await serve();
    for (const message of [transfer, readBalance]) {
      const dropped = new AbortController();
      const call = post(url, message, { signal: dropped.signal });
      await waiting();
      dropped.abort();
      await expect(call.then((response) => response.text())).rejects.toThrow();
      await waiting(0);
    }
    await vi.waitFor(() =>
      expect(driven.client.cancels).toEqual([{ taskId: 'task_2', reason: 'the request was cancelled' }]),
    );
  });

  it('a stream that closes after its answer is no cancel: the answer came first [M5.2]', async () => {
    await serve();
    const dropped = new AbortController();
    const call = await post(url, readBalance, { signal: dropped.signal });
    await waiting();
    driven.client.complete({ balance: 7 });
    expect((await answerOf(call)).result).toMatchObject({ structuredContent: { balance: 7 } });
    dropped.abort();
    await answerOf(await post(url, tool('open_tasks')));
    expect(driven.client.cancels).toEqual([]);
  });

  it('one waiter’s leaving cancels no other’s task, by whatever leg it came [M5.3]', async () => {
    await serve();
    const dropped = new AbortController();
    const leaving = [post(url, transfer, { signal: dropped.signal }), legacy(transfer, dropped.signal)];
    const staying = [post(url, transfer), legacy(transfer)];
    await waiting(4);
    dropped.abort();
    for (const call of leaving) await expect(call.then((response) => response.text())).rejects.toThrow();
    await waiting(2);
    driven.client.complete({ receipt: 'r' });
    for (const call of staying)
      expect((await answerOf(await call)).result).toMatchObject({ structuredContent: { receipt: 'r' } });
    expect(driven.client).toMatchObject({ cancels: [], openTasks: 0 });
  });
});

describe('a task of a tool with onAbandon: cancel', () => {
  it('is cancelled when the last of its waiters has left, whichever of two gateways each came by [M5.3]', async () => {
    const client = drivenClient();
    const tools = [{ ...toolOf(transferAction), onAbandon: 'cancel' as const }];
    const gateways = [1, 2].map(() =>
      createGateway({
        client,
        tools,
        auth: { kind: 'loopback', principal: LOCAL },
        limits: { ...LIMITS, abandonMs: 600 },
      }),
    );
    try {
      const urls = await Promise.all(
        gateways.map(async (gateway) => `${(await gateway.serveHttp({ port: 0 })).url}/mcp`),
      );
      const calls = urls.map((url) => {
        const dropped = new AbortController();
        const answer = post(url, transfer, { signal: dropped.signal }).then((response) => response.text());
        answer.catch(() => undefined);
        return dropped;
      });
      await vi.waitFor(() => expect(client.openWaits).toBe(2));
      calls[0]?.abort();
      await vi.waitFor(() => expect(client.abandonments).toBe(1), { timeout: 10_000 });
      expect(client).toMatchObject({ cancels: [], openWaits: 1 });
      calls[1]?.abort();
      await vi.waitFor(() => expect(client.cancels).toEqual([{ taskId: 'task_1', reason: 'abandoned' }]), {
        timeout: 10_000,
      });
    } finally {
      await Promise.all(gateways.map((gateway) => gateway.close()));
    }
  });
});

describe('the two clocks of a request', () => {
  let driven: DrivenGateway;
  let url: string;
  afterEach(() => driven.gateway.close());
  const serve = async (limits: object) => {
    driven = drivenGateway({ limits: { progressIntervalMs: 0, ...limits } });
    url = `${(await driven.gateway.serveHttp({ port: 0 })).url}/mcp`;
  };
  const isHandle = { structuredContent: { code: 'operation_in_progress', task: { taskId: 'task_1' } } };

  it('keepalives reset neither: a call with nothing to tell is over at its idle limit [M4.1] [M6.2]', async () => {
    await serve({ keepAliveMs: 20, idleMs: 400, blockingMs: 60_000 });
    const calledAt = performance.now();
    const text = await (await post(url, { ...transfer, meta: { progressToken: 'p' } })).text();
    expect(performance.now() - calledAt).toBeLessThan(30_000);
    expect(text.split(': keepalive').length).toBeGreaterThan(5);
    const last = text.split('\n').findLast((line) => line.startsWith('data: ')) ?? '';
    expect((JSON.parse(last.slice('data: '.length)) as { result: object }).result).toMatchObject(isHandle);
    expect(driven.client.cancels).toEqual([]);
  });

  it('progress resets the idle limit and never the maximum: the handle comes in the midst of progress [M4.1] [mode 3]', async () => {
    await serve({ idleMs: 4_000, blockingMs: 8_500 }); // a machine may pause between two moves
    const calledAt = performance.now();
    const call = post(url, { ...transfer, meta: { progressToken: 0 } });
    await vi.waitFor(() => expect(driven.client.openWaits).toBe(1));
    let moves = 0;
    const telling = setInterval(() => driven.client.move({ statusMessage: `${(moves += 1)}` }), 20);
    const text = await (await call).text().finally(() => clearInterval(telling));
    expect(performance.now() - calledAt).toBeGreaterThan(8_400); // the idle limit alone would have ended it
    const messages = text
      .split('\n')
      .filter((line) => line.startsWith('data: '))
      .map((line) => JSON.parse(line.slice('data: '.length)) as { method?: string; result?: object });
    expect(messages.findIndex(({ result }) => result !== undefined)).toBe(messages.length - 1);
    expect(messages.length).toBeGreaterThan(20);
    expect(messages.at(-1)?.result).toMatchObject(isHandle);
    expect(driven.client).toMatchObject({ cancels: [], openTasks: 1 });
  });
});
