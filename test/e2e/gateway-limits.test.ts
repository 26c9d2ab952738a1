/** The limits of one principal on the wire: over HTTP with its status and header, on stdio as a tool's answer. */
import { createHash } from 'node:crypto';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { GatewayLimits } from '../../src/gateway/index.ts';
import { drivenGateway } from '../support/driven-gateway.ts';
import type { DrivenGateway } from '../support/driven-gateway.ts';
import { connect, TASKS } from '../support/mcp-clients.ts';
import { answerOf, post, rawMessage } from '../support/mcp-messages.ts';

const transfer = { method: 'tools/call', params: { name: 'transfer', arguments: { to: 'bob', amount: 5 } } };
const listTools = { method: 'tools/list' };
const sha256 = (token: string) => createHash('sha256').update(token).digest('hex');

let driven: DrivenGateway | undefined;
let base: string;
const serve = async (limits: Partial<GatewayLimits>) => {
  driven = drivenGateway({
    limits,
    auth: {
      kind: 'tokens',
      tokens: ['ann', 'eve'].map((subject) => ({ sha256: sha256(subject), tenant: 'acme', subject })),
    },
  });
  base = (await driven.gateway.serveHttp({ port: 0 })).url;
  return driven.client;
};
afterEach(async () => {
  await driven?.gateway.close();
  driven = undefined;
});

const as = (subject: string, init: RequestInit = {}) => ({
  ...init,
  headers: { authorization: `Bearer ${subject}` },
});

describe('over HTTP', () => {
  it('calls beyond those of a second are 429 with Retry-After, and others are served [M7.2]', async () => {
    await serve({ callsPerSecondMax: 5 });
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => post(`${base}/mcp`, listTools, as('eve'))),
    );
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThanOrEqual(35); // 50 calls, in two seconds at the most
    expect(refused[0]?.headers.get('retry-after')).toBe('1');
    expect(await answerOf(refused[0] as Response)).toMatchObject({
      error: { data: { code: 'too_many_calls', retryable: true, details: { limit: 'callsPerSecondMax' } } },
    });
    expect((await post(`${base}/mcp`, listTools, as('ann'))).status).toBe(200);
  });

  it('open calls are counted until their end, and a dropped one is counted no more [M7.2]', async () => {
    const client = await serve({ openCallsMax: 2 });
    const dropped = new AbortController();
    const first = await post(`${base}/mcp`, transfer, as('eve', { signal: dropped.signal }));
    const second = post(`${base}/mcp`, transfer, as('eve'));
    await vi.waitFor(() => expect(client.openWaits).toBe(2));
    const refused = await post(`${base}/mcp`, transfer, as('eve'));
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
    expect(await answerOf(refused)).toMatchObject({
      error: { data: { code: 'too_many_calls', details: { limit: 'openCallsMax', most: 2 } } },
    });
    expect((await post(`${base}/mcp`, listTools, as('ann'))).status).toBe(200);
    // A notification needs no place: on a session it may be what frees one.
    const note = JSON.stringify({
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: 1 },
    });
    expect((await post(`${base}/mcp`, transfer, { ...as('eve'), text: note })).status).not.toBe(429);
    dropped.abort();
    await expect(first.text()).rejects.toThrow();
    await vi.waitFor(async () => expect((await post(`${base}/mcp`, listTools, as('eve'))).status).toBe(200));
    client.complete(null);
    await answerOf(await second);
  });

  it('a listen takes no place among them, however long it is open [M7.2] [M2.5]', async () => {
    await serve({ openCallsMax: 1, inlineWaitMs: 0 });
    const capabilities = { extensions: { [TASKS]: {} } };
    const started = await answerOf(await post(`${base}/mcp`, { ...transfer, capabilities }, as('eve')));
    const params = { notifications: { taskIds: [started.result?.taskId] } };
    const left = new AbortController();
    const listen = { method: 'subscriptions/listen', params, capabilities };
    const opened = await post(`${base}/mcp`, listen, as('eve', { signal: left.signal }));
    expect(opened.status).toBe(200);
    expect((await post(`${base}/mcp`, listTools, as('eve'))).status).toBe(200);
    left.abort();
    await expect(opened.text()).rejects.toThrow();
  });

  it('a batch is as many calls as it holds [M7.2]', async () => {
    const client = await serve({ callsPerSecondMax: 5 });
    const batch = Array.from({ length: 6 }, (_, id) => rawMessage({ ...transfer, id }));
    const refused = await post(`${base}/mcp`, transfer, { ...as('eve'), text: JSON.stringify(batch) });
    expect(refused.status).toBe(429);
    expect(client.starts).toEqual([]);
  });
});

describe('on stdio', () => {
  it('open calls beyond the limit are answered as tools are, for a model to read, until one is dropped [M7.2]', async () => {
    const client = await connect('v2 modern', { transport: 'stdio', limits: { openCallsMax: 1 } });
    try {
      const progress = vi.fn();
      const left = new AbortController();
      const options = { onprogress: progress, signal: left.signal };
      const open = client.callTool('transfer', { to: 'bob', amount: 5 }, options);
      await vi.waitFor(() => expect(progress).toHaveBeenCalled(), { timeout: 20_000 });
      expect(await client.callTool('transfer', { to: 'eve', amount: 1 })).toMatchObject({
        isError: true,
        structuredContent: { error: { code: 'too_many_calls', details: { limit: 'openCallsMax' } } },
      });
      left.abort();
      await expect(open).rejects.toThrow();
      await vi.waitFor(async () =>
        expect(await client.callTool('open_tasks', {})).toMatchObject({ structuredContent: { open: 1 } }),
      );
    } finally {
      await client.close();
    }
  });
});
