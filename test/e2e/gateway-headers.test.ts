/** What 2026-07-28 says in HTTP beside the message: arguments mirrored in headers, and the status of a refusal. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import * as z from 'zod';
import { defineAction } from '../../src/contract/define-action.ts';
import { toolOf } from '../../src/gateway/index.ts';
import { drivenGateway, drivenTools } from '../support/driven-gateway.ts';
import type { DrivenGateway } from '../support/driven-gateway.ts';
import { TASKS_CAPABILITIES } from '../support/mcp-clients.ts';
import { answerOf, post } from '../support/mcp-messages.ts';

const base = {
  version: 1,
  output: z.json(),
  rollback: { kind: 'outOfBand' },
  verify: { none: 'a test' },
} as const;
const route = defineAction({
  ...base,
  name: 'route',
  description: 'Takes an argument that proxies may route by.',
  input: z.object({ region: z.string().meta({ 'x-mcp-header': 'Region' }) }),
  effect: 'conditional',
});
const siege = defineAction({
  ...base,
  name: 'siege',
  description: 'Takes days.',
  input: z.object({}),
  effect: 'conditional',
  tasks: 'required',
});

let driven: DrivenGateway;
let url: string;
const log = { info: vi.fn(), warn: vi.fn(), error: vi.fn() };
beforeEach(async () => {
  driven = drivenGateway({
    log,
    tools: [...drivenTools, ...[route, siege].map(toolOf)],
    limits: { inlineWaitMs: 0 },
  });
  driven.client.immediate.set('route', () => ({ status: 'completed', result: 'routed' }));
  url = `${(await driven.gateway.serveHttp({ port: 0 })).url}/mcp`;
});
afterEach(() => driven.gateway.close());

describe('an argument with an x-mcp-header', () => {
  const call = (headers: Record<string, string>, region = 'eu') =>
    post(url, { method: 'tools/call', params: { name: 'route', arguments: { region } } }, { headers });

  it('must be in its header as it is in the body, before anything is started [M1.1]', async () => {
    for (const headers of [{}, { 'mcp-param-region': 'us' }] as Record<string, string>[]) {
      const refused = await call(headers);
      expect(refused.status).toBe(400);
      expect((await answerOf(refused)).error).toMatchObject({ code: -32020 });
    }
    expect(driven.client.starts).toEqual([]);
    expect((await answerOf(await call({ 'mcp-param-region': 'eu' }))).result).toMatchObject({
      content: [{ type: 'text', text: 'routed' }],
    });
  });

  it('that differs from its header is in no log, for it may be a secret [S2.10]', async () => {
    log.warn.mockClear();
    for (const headers of [{}, { 'mcp-param-region': 'hush-header' }] as Record<string, string>[])
      expect((await call(headers, 'hush-body')).status).toBe(400);
    expect(log.warn).toHaveBeenCalledTimes(2);
    expect(JSON.stringify(log.warn.mock.calls)).not.toContain('hush');
  });
});

describe('a tool that needs the Tasks extension', () => {
  const call = (capabilities: object) =>
    post(url, { method: 'tools/call', params: { name: 'siege', arguments: {} }, capabilities });

  it('refuses whoever did not declare it with -32021 under HTTP 400, naming it, and answers others with a task [M2.1]', async () => {
    const refused = await call({ elicitation: {} });
    expect(refused.status).toBe(400);
    expect((await answerOf(refused)).error).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: TASKS_CAPABILITIES },
    });
    expect(driven.client.starts).toEqual([]);
    expect((await answerOf(await call(TASKS_CAPABILITIES))).result).toMatchObject({ resultType: 'task' });
  });
});
