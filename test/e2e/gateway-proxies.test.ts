/** Streams behind proxies that hold back what they can and cut what is silent (field case 32, M6.2). Times are scaled. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { GatewayLimits } from '../../src/gateway/index.ts';
import { bufferingProxy } from '../support/buffering-proxy.ts';
import { drivenGateway } from '../support/driven-gateway.ts';
import type { DrivenGateway } from '../support/driven-gateway.ts';
import { beginSession } from '../support/legacy-session.ts';
import { messagesOf, post, rawMessage } from '../support/mcp-messages.ts';
import type { RpcResponse } from '../support/mcp-messages.ts';
import { hasNginx, startNginx } from '../support/nginx.ts';

/** The edge's patience and the gateway's comments, in the proportion of 60 s and 15 s. */
const IDLE_MS = 800;
const KEEP_ALIVE_MS = 200;

const transfer = {
  method: 'tools/call',
  params: { name: 'transfer', arguments: { to: 'bob', amount: 5, idempotencyKey: 'k' } },
};

let driven: DrivenGateway;
let proxy: { url: string; close(): Promise<void> };
const serve = async (start: typeof startNginx, limits: Partial<GatewayLimits>) => {
  driven = drivenGateway({ limits: { blockingMs: 600_000, ...limits } });
  const { url } = await driven.gateway.serveHttp({ port: 0 });
  proxy = await start(url, { idleMs: IDLE_MS });
};
afterEach(async () => {
  await proxy.close();
  await driven.gateway.close();
});

const inSession = async (init: (headers: Record<string, string>) => RequestInit) =>
  fetch(`${proxy.url}/mcp`, init(await beginSession(`${proxy.url}/mcp`)));

const CALLS = {
  'a 2026-07-28 call': () => post(`${proxy.url}/mcp`, transfer),
  'a 2025 call': () =>
    fetch(`${proxy.url}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...transfer }),
    }),
  'a 2025 batch of one call': () =>
    fetch(`${proxy.url}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify([{ jsonrpc: '2.0', id: 1, ...transfer }]),
    }),
  'a call in a 2025 session': () =>
    inSession((headers) => ({
      method: 'POST',
      headers,
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...transfer }),
    })),
};

describe.each([
  ['a proxy that buffers and cuts', bufferingProxy, true],
  ['nginx as it comes', startNginx, hasNginx],
] as [string, typeof startNginx, boolean][])('behind %s', (_name, start, isThere) => {
  it.skipIf(!isThere).each(Object.keys(CALLS) as (keyof typeof CALLS)[])(
    '%s has its first byte before the first keepalive is due, outlives the idle limit on comments, and delivers [M6.2] [case 32] [mode 11]',
    async (which) => {
      await serve(start, { keepAliveMs: KEEP_ALIVE_MS });
      const calledAt = performance.now();
      const response = await CALLS[which]();
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      const read = async () => new TextDecoder().decode((await reader.read()).value);
      expect(await read()).toMatch(/^: open/);
      expect(response.headers.get('content-type')).toBe('text/event-stream');
      for (let comments = 0; comments < (3 * IDLE_MS) / KEEP_ALIVE_MS; comments += 1)
        expect(await read()).toMatch(/^: keepalive/);
      expect(performance.now() - calledAt).toBeGreaterThan(2 * IDLE_MS);
      driven.client.complete({ receipt: 'r' });
      let rest = '';
      for (let part = await reader.read(); !part.done; part = await reader.read())
        rest += new TextDecoder().decode(part.value);
      expect(rest).toContain('"receipt":"r"');
    },
  );

  it.skipIf(!isThere)(
    'the stream of a 2025 session outlives the idle limit, though it has nothing to say [M6.2] [case 32]',
    async () => {
      await serve(start, { keepAliveMs: KEEP_ALIVE_MS });
      const response = await inSession((headers) => ({ method: 'GET', headers }));
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      const read = async () => new TextDecoder().decode((await reader.read()).value);
      expect(await read()).toMatch(/^: open/);
      for (let comments = 0; comments < (3 * IDLE_MS) / KEEP_ALIVE_MS; comments += 1)
        expect(await read()).toMatch(/^: keepalive/);
      await reader.cancel();
    },
  );

  it.skipIf(!isThere)(
    'a call whose stream is cut for its silence is found again by the same call [M5.3] [case 32]',
    async () => {
      await serve(start, { keepAliveMs: 60_000 });
      const cut = await post(`${proxy.url}/mcp`, transfer);
      await expect(cut.text()).rejects.toThrow();
      await vi.waitFor(() => expect(driven.client.openWaits).toBe(0));
      expect(driven.client.cancels).toEqual([]);
      const again = post(`${proxy.url}/mcp`, transfer);
      await vi.waitFor(() => expect(driven.client.openWaits).toBe(1));
      driven.client.complete({ receipt: 'r' });
      const [answer] = (await messagesOf(await again)) as [RpcResponse];
      expect(answer.result).toMatchObject({ structuredContent: { receipt: 'r' } });
      expect(driven.client.openTasks).toBe(0);
    },
  );
});

it('what is no stream is short enough to be held back whole [M6.2]', async () => {
  await serve(bufferingProxy, {});
  const { method, params } = rawMessage({ method: 'tools/list' });
  const [answer] = await messagesOf(await post(`${proxy.url}/mcp`, { method, params }));
  expect(answer?.result).toHaveProperty('tools');
});
