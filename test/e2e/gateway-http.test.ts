/** The HTTP face below MCP: who is let in, what is read, and how an answer travels. */
import { createHash } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { HoldfastError } from '../../src/contract/error.ts';
import type { GatewayAuth, GatewayOptions, HttpOptions } from '../../src/gateway/index.ts';
import { drivenGateway } from '../support/driven-gateway.ts';
import type { DrivenGateway } from '../support/driven-gateway.ts';
import { answerOf, messagesOf, post, rawHeaders, rawMessage } from '../support/mcp-messages.ts';

let driven: DrivenGateway;
let base: string;
const serve = async (options: Partial<GatewayOptions> = {}, http: HttpOptions = {}) => {
  driven = drivenGateway(options);
  base = (await driven.gateway.serveHttp({ port: 0, ...http })).url;
  return driven;
};
afterEach(() => driven.gateway.close());

const sha256 = (token: string) => createHash('sha256').update(token).digest('hex');
const TOKENS: GatewayAuth = {
  kind: 'tokens',
  tokens: [
    { sha256: sha256('alpha-secret'), tenant: 'alpha', subject: 'ann', roles: ['buyer'] },
    { sha256: sha256('beta-secret').toUpperCase(), tenant: 'beta', subject: 'bob', roles: [] },
  ],
};

const transfer = { method: 'tools/call', params: { name: 'transfer', arguments: { to: 'bob', amount: 5 } } };
const readBalance = { method: 'tools/call', params: { name: 'read_balance', arguments: { account: 'a' } } };
const listTools = { method: 'tools/list' };

/** `fetch` sets Host itself. */
const statusWithHost = (host: string, path: string): Promise<number> =>
  new Promise((resolve, reject) => {
    httpRequest(`${base}${path}`, { headers: { host } }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    })
      .on('error', reject)
      .end();
  });

describe('who is let in', () => {
  it('on loopback needs no token, and is the configured principal [M7.1]', async () => {
    await serve();
    driven.client.immediate.set('transfer', () => ({ status: 'completed' }));
    expect((await post(`${base}/mcp`, transfer)).status).toBe(200);
    expect(driven.client.starts[0]?.principal).toEqual({ tenant: 'local', subject: 'tester', roles: [] });
  });

  it.each([
    ['0.0.0.0', { kind: 'loopback', principal: { tenant: 't', subject: 's', roles: [] } }, 'auth'],
    ['::', { kind: 'loopback', principal: { tenant: 't', subject: 's', roles: [] } }, 'auth'],
    ['0.0.0.0', TOKENS, 'gateway.allowedHosts'],
  ] as [string, GatewayAuth, string][])(
    'refuses to listen on %s without what that takes: %o [M7.1]',
    async (host, auth, name) => {
      driven = drivenGateway({ auth });
      await expect(driven.gateway.serveHttp({ host, port: 0 })).rejects.toMatchObject({
        code: 'invalid_configuration',
        details: { name },
      });
    },
  );

  it('needs a configured token once there are any, and takes tenant and subject from it alone [M7.1]', async () => {
    await serve({ auth: TOKENS });
    for (const headers of [
      {},
      { authorization: 'Bearer guess' },
      { authorization: 'Basic alpha-secret' },
    ] as Record<string, string>[]) {
      const refused = await post(`${base}/mcp`, transfer, { headers });
      expect(refused.status).toBe(401);
      expect(refused.headers.get('www-authenticate')).toMatch(/^Bearer realm="holdfast"/);
      expect(await answerOf(refused)).toMatchObject({ error: { data: { code: 'unauthorized' } } });
    }
    expect(driven.client.starts).toHaveLength(0);
    driven.client.immediate.set('transfer', () => ({ status: 'completed' }));
    await answerOf(await post(`${base}/mcp`, transfer, { headers: { authorization: 'Bearer beta-secret' } }));
    expect(driven.client.starts[0]?.principal).toEqual({ tenant: 'beta', subject: 'bob', roles: [] });
  });

  it('never shows one tenant the task of another [M2.6] [M7.1]', async () => {
    await serve({ auth: TOKENS, limits: { inlineWaitMs: 0 } });
    const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
    const capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
    const started = await answerOf(
      await post(`${base}/mcp`, { ...transfer, capabilities }, as('alpha-secret')),
    );
    const taskId = started.result?.taskId as string;
    for (const method of ['tasks/get', 'tasks/cancel']) {
      const read = async (id: string, token: string) =>
        answerOf(await post(`${base}/mcp`, { method, params: { taskId: id }, capabilities }, as(token)));
      expect((await read(taskId, 'alpha-secret')).error).toBeUndefined();
      const foreign = await read(taskId, 'beta-secret');
      expect(foreign.error).toEqual({ code: -32602, message: 'task not found' });
      expect((await read('task_nobody_has', 'alpha-secret')).error).toEqual(foreign.error);
    }
  });

  it('refuses foreign Host and Origin before anything else [M7.1]', async () => {
    await serve({}, { allowedOrigins: ['console.example'] });
    expect(await statusWithHost('evil.example', '/mcp')).toBe(403);
    expect(await statusWithHost('localhost:1', '/mcp')).toBe(405);
    const origin = (value: string) => post(`${base}/mcp`, listTools, { headers: { origin: value } });
    expect((await origin('https://evil.example')).status).toBe(403);
    expect((await origin('null')).status).toBe(403);
    expect((await origin('https://console.example')).status).toBe(200);
  });

  it.each(['not hex', 'ab'.repeat(31)])(
    'refuses the malformed token hash %s when it is configured',
    (hash) => {
      expect(() =>
        drivenGateway({ auth: { kind: 'tokens', tokens: [{ sha256: hash, tenant: 't', subject: 's' }] } }),
      ).toThrow(HoldfastError);
    },
  );
});

describe('what is read', () => {
  beforeEach(() => serve({ limits: { messageBytesMax: 10_000 } }));
  const send = async (text: string | ReadableStream, headers: Record<string, string> = {}) =>
    fetch(`${base}/mcp`, {
      method: 'POST',
      headers: { ...rawHeaders(transfer), ...headers },
      body: text,
      duplex: 'half',
    });

  it('is at most messageBytesMax, declared or not, with a typed 413 [M7.2]', async () => {
    const text = JSON.stringify({ ...rawMessage(transfer), padding: 'x'.repeat(3_000_000) });
    for (const body of [text, new Blob([text]).stream()]) {
      const refused = await send(body);
      expect(refused.status).toBe(413);
      expect(await answerOf(refused)).toMatchObject({
        error: { data: { code: 'payload_too_large', details: { bytesMax: 10_000 } } },
      });
    }
  });

  it('is JSON in UTF-8, not nested beyond its bound, and not encoded [M7.2]', async () => {
    const deep = `{"a":${'['.repeat(4_000)}${']'.repeat(4_000)}}`;
    expect(await answerOf(await send(deep))).toMatchObject({
      error: { code: -32600, data: { details: { depthMax: 110 } } },
    });
    expect((await send('{"jsonrpc":')).status).toBe(400);
    expect((await send(new Blob([new Uint8Array([0x22, 0xff, 0x22])]).stream())).status).toBe(400);
    expect((await send('{}', { 'content-encoding': 'gzip' })).status).toBe(415);
    expect((await send('{}', { 'content-type': 'text/plain' })).status).toBe(415);
    expect(driven.client.starts).toHaveLength(0);
  });

  it.each([
    ['an integer beyond 2^53', '{"to":"b","amount":9007199254740993}', '/amount'],
    ['a big number in another notation', '{"to":"b","amount":1e30}', '/amount'],
    ['a number too small to keep', '{"to":"b","amount":1e-400}', '/amount'],
    ['a key that is there twice', '{"to":"b","amount":1,"amount":2}', '/amount'],
    ['a key twice, once escaped', '{"to":"b","amount":1,"a\\u006dount":2}', '/amount'],
  ])('%s in arguments is refused by path, and nothing is started [M1.6]', async (_what, args, path) => {
    const text = JSON.stringify(
      rawMessage({ method: 'tools/call', params: { name: 'transfer', arguments: 'HERE' } }),
    ).replace('"HERE"', args);
    expect(await answerOf(await send(text))).toMatchObject({
      result: {
        isError: true,
        structuredContent: { error: { code: 'invalid_arguments', details: { issues: [{ path }] } } },
      },
    });
    expect(driven.client.starts).toHaveLength(0);
  });

  it('what can not be kept exactly elsewhere is a JSON-RPC error with the id [M1.6]', async () => {
    const text = JSON.stringify(
      rawMessage({ ...transfer, id: 'mine', meta: { progressToken: 'HERE' } }),
    ).replace('"HERE"', '9007199254740993');
    const refused = await send(text);
    expect(refused.status).toBe(400);
    expect(await answerOf(refused)).toMatchObject({
      id: 'mine',
      error: { code: -32600, data: { code: 'invalid_arguments' } },
    });
  });

  it('keeps own keys such as __proto__ as data [S1.4]', async () => {
    driven.client.immediate.set('transfer', () => ({ status: 'completed' }));
    const text = JSON.stringify(
      rawMessage({ method: 'tools/call', params: { name: 'transfer', arguments: 'HERE' } }),
    ).replace('"HERE"', '{"to":"b","__proto__":{"amount":1}}');
    await answerOf(await send(text));
    expect(Object.keys(driven.client.starts[0]?.args ?? {})).toEqual(['to', '__proto__']);
  });
});

describe('how an answer travels', () => {
  it('a blocking call has its first byte at once and comments from then on, with nothing to report [M6.2]', async () => {
    await serve({ limits: { keepAliveMs: 20 } });
    const response = await post(`${base}/mcp`, transfer);
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    expect(response.headers.get('cache-control')).toContain('no-cache');
    expect(response.headers.get('x-accel-buffering')).toBe('no');
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const read = async () => new TextDecoder().decode((await reader.read()).value);
    expect(await read()).toMatch(/^:/);
    expect(await read()).toMatch(/^:/);
    await vi.waitFor(() => expect(driven.client.openWaits).toBe(1));
    driven.client.complete({ receipt: 'r' });
    let rest = '';
    for (let part = await reader.read(); !part.done; part = await reader.read())
      rest += new TextDecoder().decode(part.value);
    expect(rest).toContain('"receipt":"r"');
  });

  it('progress carries the caller’s own token, 0 included, and is absent without one [M4.2]', async () => {
    await serve({ limits: { progressIntervalMs: 0 } });
    for (const progressToken of [0, 'p', undefined]) {
      const response = post(`${base}/mcp`, { ...transfer, meta: { progressToken } });
      await vi.waitFor(() => expect(driven.client.openWaits).toBe(1));
      driven.client.move({ statusMessage: 'half way' });
      driven.client.complete(null);
      const messages = await messagesOf(await response);
      const tokens = messages
        .filter(({ method }) => method === 'notifications/progress')
        .map(({ params }) => params?.progressToken);
      expect(new Set(tokens)).toEqual(new Set(progressToken === undefined ? [] : [progressToken]));
      expect(messages.at(-1)).toHaveProperty('result');
    }
  });

  it('a dropped connection frees the wait, and only a safe call of its own is cancelled with it [M5.3]', async () => {
    await serve();
    for (const message of [transfer, readBalance]) {
      const dropped = new AbortController();
      const response = await post(`${base}/mcp`, message, { signal: dropped.signal });
      await vi.waitFor(() => expect(driven.client.openWaits).toBe(1));
      dropped.abort();
      await expect(response.text()).rejects.toThrow();
      await vi.waitFor(() => expect(driven.client.openWaits).toBe(0));
    }
    await vi.waitFor(() =>
      expect(driven.client.cancels).toEqual([{ taskId: 'task_2', reason: 'the request was cancelled' }]),
    );
  });

  it('a dropped safe call of an older client is not cancelled: there a disconnect is no cancel [M5.1]', async () => {
    await serve();
    const dropped = new AbortController();
    const legacy = JSON.stringify({ jsonrpc: '2.0', id: 1, ...readBalance });
    const response = await fetch(`${base}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: legacy,
      signal: dropped.signal,
    });
    await vi.waitFor(() => expect(driven.client.openWaits).toBe(1));
    dropped.abort();
    await expect(response.text()).rejects.toThrow();
    await vi.waitFor(() => expect(driven.client.openWaits).toBe(0));
    expect(driven.client.cancels).toEqual([]);
  });

  it('our own shutdown hands open calls their task and cancels nothing, a safe one neither [M5.4]', async () => {
    await serve();
    const calls = [transfer, readBalance].map((message) => post(`${base}/mcp`, message));
    await vi.waitFor(() => expect(driven.client.openWaits).toBe(2));
    await driven.gateway.close();
    for (const call of calls) {
      expect((await answerOf(await call)).result).toMatchObject({
        structuredContent: { code: 'operation_in_progress' },
      });
    }
    expect(driven.client).toMatchObject({ cancels: [], openWaits: 0 });
    await expect(fetch(`${base}/healthz`)).rejects.toThrow();
  });

  it('an unexpected error shows a correlation id that the log has too, and neither stack nor cause [M1.2]', async () => {
    const log = { info: vi.fn(), warn: vi.fn(), error: vi.fn() };
    await serve({ log });
    driven.client.failNext('start', new Error('password=hunter2'));
    const { result } = await answerOf(await post(`${base}/mcp`, transfer));
    const { correlationId } = (
      result as { structuredContent: { error: { details: { correlationId: string } } } }
    ).structuredContent.error.details;
    expect(result).toMatchObject({ isError: true, structuredContent: { error: { code: 'internal_error' } } });
    expect(JSON.stringify(result)).not.toMatch(/hunter2|\.ts:/);
    expect(log.error).toHaveBeenCalledWith(expect.objectContaining({ correlationId }), expect.any(String));
  });

  it('an error of the system’s that callers can act on keeps its code and says what to do', async () => {
    await serve();
    driven.client.failNext('start', new HoldfastError('engine_unavailable', 'Temporal does not answer.'));
    expect((await answerOf(await post(`${base}/mcp`, transfer))).result).toMatchObject({
      isError: true,
      structuredContent: {
        error: { code: 'engine_unavailable', retryable: true, action: 'Call again with the same key.' },
      },
    });
  });

  it('the answer waits for the fault seam, after the start is durable [M1.2]', async () => {
    const seen: string[] = [];
    await serve({
      beforeAnswer: async (answer) => void seen.push(`${answer.taskId} ${driven.client.starts.length}`),
    });
    driven.client.immediate.set('transfer', () => ({ status: 'completed' }));
    await answerOf(await post(`${base}/mcp`, transfer));
    expect(seen).toEqual(['task_1 1']);
  });
});

describe('beside /mcp', () => {
  it('health is answered to anyone, readiness follows what it is given [M7.1]', async () => {
    let isReady = true;
    await serve(
      { auth: TOKENS },
      {
        readiness: () =>
          isReady
            ? Promise.resolve()
            : Promise.reject(new HoldfastError('engine_unavailable', 'Temporal does not answer.')),
      },
    );
    expect(await statusWithHost('10.0.0.7', '/healthz')).toBe(200);
    expect((await fetch(`${base}/readyz`)).status).toBe(200);
    isReady = false;
    const refused = await fetch(`${base}/readyz`);
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({ error: { code: 'engine_unavailable' } });
  });

  it('other paths are routes that were given, or nothing', async () => {
    await serve(
      {},
      { routes: [{ path: '/metrics', handle: (_request, response) => void response.end('up 1') }] },
    );
    expect(await (await fetch(`${base}/metrics`)).text()).toBe('up 1');
    expect((await fetch(`${base}/metricsx`)).status).toBe(404);
    expect((await fetch(`${base}/`)).status).toBe(404);
    expect(await statusWithHost('evil.example', '/metrics')).toBe(403);
  });

  it('a port that is taken is a configuration error', async () => {
    await serve();
    const port = Number(new URL(base).port);
    const other = drivenGateway().gateway;
    await expect(other.serveHttp({ port })).rejects.toMatchObject({
      code: 'invalid_configuration',
      details: { reason: 'EADDRINUSE' },
    });
  });
});
