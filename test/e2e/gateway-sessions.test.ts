/** 2025-11-25 over Streamable HTTP with a session: what its client can do in it, and what becomes of it. */
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Gateway, GatewayOptions } from '../../src/gateway/index.ts';
import { drivenGateway, LOCAL } from '../support/driven-gateway.ts';
import type { HandDrivenTaskClient } from '../support/hand-driven-task-client.ts';
import { messagesOf } from '../support/mcp-messages.ts';

const ARGS = { name: 'transfer', arguments: { to: 'bob', amount: 5 } };

const opened: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

async function gatewayWith(options: Partial<GatewayOptions> = {}) {
  const { gateway, client: tasks } = drivenGateway(options);
  opened.push(() => gateway.close());
  return { gateway, tasks, url: await urlOf(gateway) };
}
const urlOf = async (gateway: Gateway) => `${(await gateway.serveHttp({ port: 0 })).url}/mcp`;

async function connectV1(url: string, token?: string) {
  const client = new Client({ name: 'old', version: '1' });
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { ...(token && { authorization: `Bearer ${token}` }) } },
  });
  await client.connect(transport);
  opened.push(() => client.close());
  return { client, transport, sessionId: transport.sessionId ?? '' };
}

const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
const send = (url: string, message: object | null, headers: Record<string, string>, method = 'POST') =>
  fetch(url, {
    method,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    ...(message && { body: JSON.stringify(message) }),
  });
const sha = async (token: string) =>
  Buffer.from(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token))).toString('hex');
const whenWaiting = (tasks: HandDrivenTaskClient, count: number) =>
  vi.waitFor(() => expect(tasks.openWaits).toBe(count), { timeout: 20_000 });

describe('a v1 client in its session', () => {
  it('cancels a call: the wait is freed, the task goes on, and the next call finds it [M5.1] [M5.3]', async () => {
    const { tasks, url } = await gatewayWith();
    const { client, sessionId } = await connectV1(url);
    expect(sessionId).not.toBe('');
    const cancel = new AbortController();
    const call = client.callTool(ARGS, undefined, { signal: cancel.signal });
    call.catch(() => undefined);
    await whenWaiting(tasks, 1);
    cancel.abort('enough');
    await expect(call).rejects.toThrow();
    await whenWaiting(tasks, 0);
    expect(tasks.cancels).toEqual([]);
    const again = client.callTool(ARGS);
    await whenWaiting(tasks, 1);
    tasks.complete({ receipt: 'r' });
    expect(await again).toMatchObject({
      structuredContent: { receipt: 'r' },
      _meta: { 'holdfast/task': { attached: true } },
    });
  });

  it('cancels a safe call, which is then aborted [M5.3]', async () => {
    const { tasks, url } = await gatewayWith();
    const { client } = await connectV1(url);
    const cancel = new AbortController();
    const call = client.callTool({ name: 'read_balance', arguments: { account: 'a' } }, undefined, {
      signal: cancel.signal,
    });
    call.catch(() => undefined);
    await whenWaiting(tasks, 1);
    cancel.abort('enough');
    await vi.waitFor(() => expect(tasks.cancels).toHaveLength(1));
  });

  it('is told progress under its own token [M4.2]', async () => {
    const { tasks, url } = await gatewayWith({ limits: { progressIntervalMs: 0 } });
    const { client } = await connectV1(url);
    const progress: { progress: number; message?: string | undefined }[] = [];
    const call = client.callTool(ARGS, undefined, { onprogress: (each) => progress.push(each) });
    await whenWaiting(tasks, 1);
    tasks.move({ statusMessage: 'half way' });
    await vi.waitFor(() => expect(progress.map(({ message }) => message)).toContain('half way'));
    tasks.complete({ receipt: 'r' });
    expect(await call).toMatchObject({ structuredContent: { receipt: 'r' } });
  });

  it('whose connection breaks has cancelled nothing: its safe call runs on [M5.1]', async () => {
    const { tasks, url } = await gatewayWith();
    const { sessionId } = await connectV1(url);
    const gone = new AbortController();
    const lost = fetch(url, {
      method: 'POST',
      signal: gone.signal,
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-session-id': sessionId,
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 7,
        method: 'tools/call',
        params: { name: 'read_balance', arguments: { account: 'a' } },
      }),
    });
    await whenWaiting(tasks, 1);
    await lost;
    gone.abort();
    // The gateway has seen that the connection is gone by the time it has answered many others.
    for (let round = 0; round < 20; round += 1)
      expect((await messagesOf(await send(url, LIST, { 'mcp-session-id': sessionId })))[0]).toHaveProperty(
        'result',
      );
    expect([tasks.openWaits, tasks.cancels]).toEqual([1, []]);
  });
});

describe('a session’s id', () => {
  it('is not found for another principal, whatever is sent under it [M7.1] [M2.6]', async () => {
    const tokens = [
      { sha256: await sha('ann'), ...LOCAL },
      { sha256: await sha('eve'), ...LOCAL, subject: 'eve' },
    ];
    const { url } = await gatewayWith({ auth: { kind: 'tokens', tokens } });
    const { client, sessionId } = await connectV1(url, 'ann');
    const as = (token: string, method: string, message: object | null = null) =>
      send(url, message, { authorization: `Bearer ${token}`, 'mcp-session-id': sessionId }, method);
    for (const [method, message] of [
      ['POST', LIST],
      ['GET', null],
      ['DELETE', null],
    ] as const) {
      const [foreign, unknown] = [
        await as('eve', method, message),
        await send(url, message, { authorization: 'Bearer eve', 'mcp-session-id': 'made-up' }, method),
      ];
      expect(foreign.status).toBe(404);
      const body = await foreign.text();
      expect(body).toBe(await unknown.text());
      expect(JSON.parse(body)).toMatchObject({
        error: { code: -32001, data: { code: 'session_not_found' } },
      });
    }
    expect((await client.listTools()).tools.length).toBeGreaterThan(0);
    expect((await as('ann', 'DELETE')).status).toBe(200);
    expect((await as('ann', 'POST', LIST)).status).toBe(404);
  });

  it('is not found after the gateway was started anew; its client initializes again and finds its task [M5.4]', async () => {
    const { gateway, tasks, url } = await gatewayWith({ limits: { drainMs: 0 } });
    const port = Number(new URL(url).port);
    const { client, sessionId } = await connectV1(url);
    const lost = client.callTool(ARGS);
    lost.catch(() => undefined);
    await whenWaiting(tasks, 1);
    await gateway.close();
    expect(tasks.cancels).toEqual([]);
    const next = drivenGateway({ client: tasks });
    opened.push(() => next.gateway.close());
    await next.gateway.serveHttp({ port });
    expect((await send(url, LIST, { 'mcp-session-id': sessionId })).status).toBe(404);
    const anew = await connectV1(url);
    expect(anew.sessionId).not.toBe(sessionId);
    const again = anew.client.callTool(ARGS);
    await whenWaiting(tasks, 1);
    tasks.complete({ receipt: 'r' });
    expect(await again).toMatchObject({ structuredContent: { receipt: 'r' } });
  });

  it('is none of a 2026-07-28 client’s business, and a 2025 client without one is served as before [M3.1]', async () => {
    const { url } = await gatewayWith({ limits: { legacySessionsMax: 0 } });
    const { client, sessionId } = await connectV1(url);
    expect(sessionId).toBe('');
    expect((await client.listTools()).tools.length).toBeGreaterThan(0);
    const { url: withSessions } = await gatewayWith();
    expect((await messagesOf(await send(withSessions, LIST, {})))[0]).toHaveProperty('result.tools');
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const headers = {
      'mcp-session-id': 'made-up',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/list',
    };
    const modern = await send(withSessions, { ...LIST, params: { _meta: meta } }, headers);
    expect((await messagesOf(modern))[0]).toHaveProperty('result.tools');
  });
});
