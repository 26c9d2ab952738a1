/** `/metrics` as Prometheus meets it, and as it must not be met. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { Registry } from 'prom-client';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { metricsRoute, serveMetrics } from '../../src/cli/metrics-route.ts';
import type { MetricsServer } from '../../src/cli/metrics-route.ts';
import { drivenGateway } from '../support/driven-gateway.ts';
import type { DrivenGateway } from '../support/driven-gateway.ts';
import { TASKS } from '../support/mcp-clients.ts';
import { answerOf, post } from '../support/mcp-messages.ts';

const sha256 = (token: string) => createHash('sha256').update(token).digest('hex');
const call = (name: string, args: object = {}) => ({
  method: 'tools/call',
  params: { name, arguments: args },
});

let driven: DrivenGateway | undefined;
let server: MetricsServer | undefined;
let base: string;
afterEach(async () => {
  await driven?.gateway.close();
  await server?.close();
  driven = server = undefined;
});

async function serve(tokenSha256: string | null = null) {
  const registry = new Registry();
  driven = drivenGateway({
    metrics: registry,
    limits: { openCallsMax: 2, messageBytesMax: 5_000, listensMax: 1 },
  });
  const { gateway, client } = driven;
  base = (await gateway.serveHttp({ port: 0, routes: [metricsRoute({ registry, tokenSha256 })] })).url;
  return { client, registry };
}

/** With headers that `fetch` sets itself. */
async function statusWith(headers: Record<string, string>): Promise<number> {
  const request = httpRequest(`${base}/metrics`, { headers }).end();
  const [response] = (await once(request, 'response')) as [{ statusCode: number; resume(): void }];
  response.resume();
  return response.statusCode;
}

const read = async (headers: Record<string, string> = {}) =>
  (await fetch(`${base}/metrics`, { headers })).text();

describe('what the gateway counts', () => {
  it('is every call by tool and end, what is open, and what a limit refused; no caller names a series', async () => {
    const { client } = await serve();
    client.immediate.set('transfer', () => ({ status: 'completed' }));
    await answerOf(await post(`${base}/mcp`, call('transfer', { to: 'bob', amount: 5 })));
    client.failNext('start', new Error('defect'));
    await answerOf(await post(`${base}/mcp`, call('transfer', { to: 'bob', amount: 5 })));
    await answerOf(await post(`${base}/mcp`, call('made_up_by_eve')));
    await post(`${base}/mcp`, call('transfer', { to: 'x'.repeat(6_000), amount: 5 }));
    const dropped = new AbortController();
    const open = [1, 2].map((amount) =>
      post(`${base}/mcp`, call('read_balance', { account: `${amount}` }), { signal: dropped.signal }),
    );
    await vi.waitFor(() => expect(client.openWaits).toBe(2));
    expect((await post(`${base}/mcp`, call('read_balance', { account: '3' }))).status).toBe(429);
    const text = await read();
    for (const line of [
      'holdfast_calls_total{tool="transfer",outcome="completed"} 1',
      'holdfast_calls_total{tool="transfer",outcome="refused"} 1',
      'holdfast_calls_total{tool="(unknown)",outcome="refused"} 1',
      'holdfast_calls_refused_total{limit="messageBytesMax"} 1',
      'holdfast_calls_refused_total{limit="openCallsMax"} 1',
      'holdfast_call_duration_seconds_count{tool="transfer"} 2',
      'holdfast_open_calls 2',
    ])
      expect(text).toContain(`${line}\n`);
    for (const secret of ['eve', 'bob', 'tester', 'local']) expect(text).not.toContain(secret);
    await Promise.all(open);
    dropped.abort();
    await vi.waitFor(async () =>
      expect(await read()).toContain('holdfast_calls_total{tool="read_balance",outcome="abandoned"} 2\n'),
    );
    expect(await read()).toContain('holdfast_open_calls 0\n');
  });
});

describe('listens', () => {
  it('are no calls, and one too many is among what a limit refused [M7.2]', async () => {
    await serve();
    const capabilities = { extensions: { [TASKS]: {} } };
    const started = await answerOf(
      await post(`${base}/mcp`, { ...call('transfer', { to: 'bob', amount: 5 }), capabilities }),
    );
    const params = { notifications: { taskIds: [started.result?.taskId] } };
    const listen = { method: 'subscriptions/listen', params, capabilities };
    const left = new AbortController();
    const first = await post(`${base}/mcp`, listen, { signal: left.signal });
    const reader = (first.body as ReadableStream<Uint8Array>).getReader();
    let heard = '';
    while (!heard.includes('acknowledged')) heard += new TextDecoder().decode((await reader.read()).value);
    expect((await answerOf(await post(`${base}/mcp`, listen))).error?.data).toMatchObject({
      code: 'too_many_listens',
    });
    const text = await read();
    expect(text).toContain('holdfast_calls_refused_total{limit="listensMax"} 1\n');
    expect(text).toContain('holdfast_open_calls 0\n');
    left.abort();
  });
});

describe('who may read it', () => {
  it('without a token: this machine, by its own name, through no proxy [M7.1]', async () => {
    await serve();
    expect((await fetch(`${base}/metrics`)).status).toBe(200);
    expect(await statusWith({ host: 'localhost:1' })).toBe(200);
    for (const headers of [
      { 'x-forwarded-for': '10.0.0.9' },
      { forwarded: 'for=10.0.0.9' },
      { host: 'tools.example.com' },
    ] as Record<string, string>[])
      expect(await statusWith(headers)).toBe(403);
  });

  it('with a token: whoever holds it, and nobody else, this machine included [M7.1]', async () => {
    await serve(sha256('scrape'));
    expect((await fetch(`${base}/metrics`)).status).toBe(401);
    expect(await statusWith({ authorization: 'Bearer guess' })).toBe(401);
    expect(await statusWith({ authorization: 'Basic scrape' })).toBe(401);
    expect(await statusWith({ authorization: 'Bearer scrape', 'x-forwarded-for': '10.0.0.9' })).toBe(200);
  });
});

describe('a worker of its own', () => {
  const registry = new Registry();
  const serveAt = (host: string, port = 0, readiness = () => Promise.resolve()) =>
    serveMetrics({ registry, tokenSha256: null }, { host, port, readiness });

  it('serves metrics alone, on a reachable address only with a token [M7.1]', async () => {
    server = await serveAt('127.0.0.1');
    base = `http://127.0.0.1:${server.port}`;
    expect((await fetch(`${base}/metrics`)).headers.get('content-type')).toContain('text/plain');
    expect((await fetch(`${base}/mcp`)).status).toBe(404);
    await expect(serveAt('0.0.0.0')).rejects.toMatchObject({
      code: 'invalid_configuration',
      details: { name: 'HOLDFAST_METRICS_TOKEN_SHA256' },
    });
    await expect(serveAt('127.0.0.1', server.port)).rejects.toMatchObject({
      details: { name: 'HOLDFAST_WORKER_METRICS_PORT' },
    });
  });

  it('says to any probe that it lives, and whether it can take work', async () => {
    let isWell = true;
    server = await serveAt('127.0.0.1', 0, () =>
      isWell ? Promise.resolve() : Promise.reject(new Error('no')),
    );
    const statusOf = async (path: string) =>
      (await fetch(`http://127.0.0.1:${server?.port}${path}`, { headers: { 'x-forwarded-for': '10.0.0.9' } }))
        .status;
    expect([await statusOf('/healthz'), await statusOf('/readyz')]).toEqual([200, 200]);
    isWell = false;
    expect([await statusOf('/healthz'), await statusOf('/readyz')]).toEqual([200, 503]);
  });
});
