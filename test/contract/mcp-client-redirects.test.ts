// S5: a redirect of a call is an answer of the server that was called, and never a second request.
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openLink } from '../../src/mcp-client/link.ts';
import type { Link } from '../../src/mcp-client/link.ts';

const NEVER = new AbortController().signal;

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A server of 2025-11-25 that carries a call out and then redirects its client. */
class Redirecting {
  effects = 0;
  redirect: { status: number; to: string } = { status: 307, to: '/' };
  readonly headersElsewhere: IncomingMessage['headers'][] = [];
  isGoneAfterwards = false;
  readonly server = createServer((request, response) => void this.#answer(request, response));
  readonly elsewhere = createServer((request, response) => {
    this.headersElsewhere.push(request.headers);
    response.writeHead(500).end();
  });

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const { id, method } = (text === '' ? {} : JSON.parse(text)) as { id?: string; method?: string };
    if (method === 'initialize') {
      const result = {
        protocolVersion: '2025-11-25',
        capabilities: { tools: {} },
        serverInfo: { name: 'redirecting', version: '1' },
      };
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    } else if (method === 'tools/call') {
      this.effects += 1;
      if (this.isGoneAfterwards) this.server.close();
      response.writeHead(this.redirect.status, { location: this.redirect.to, connection: 'close' }).end();
    } else response.writeHead(method === undefined ? 405 : 202).end();
  }
}

let stage: Redirecting;
let link: Link;
let elsewhere: string;
beforeEach(async () => {
  stage = new Redirecting();
  const url = await listening(stage.server);
  elsewhere = await listening(stage.elsewhere);
  link = await openLink({
    server: { url, headers: { 'X-API-Key': 'hush-hush' } },
    info: { name: 'test', version: '1' },
    answersInput: false,
    openMs: 5_000,
    isLegacy: true,
  });
});
afterEach(async () => {
  await link.close();
  for (const server of [stage.server, stage.elsewhere]) {
    server.close();
    server.closeAllConnections();
  }
});

const call = () => link.request('tools/call', { name: 'pay', arguments: {} }, { signal: NEVER });

test.each([303, 307, 308])(
  '[S5] a call that was carried out and then redirected (%i) to where nobody listens is lost, not unsent',
  async (status) => {
    stage.isGoneAfterwards = true;
    stage.redirect = { status, to: '/gone' };
    expect(await call()).toMatchObject({
      ...{ kind: 'failure', failure: 'lost' },
      message: expect.stringContaining('configure the address that it redirects to') as string,
    });
    expect(stage.effects).toBe(1);
  },
);

test('[S2.10] [S5] a redirect to another origin is not followed, and gets no header', async () => {
  stage.redirect = { status: 307, to: `${elsewhere}/mcp` };
  expect(await call()).toMatchObject({ kind: 'failure', failure: 'lost' });
  expect(stage.headersElsewhere).toEqual([]);
  expect(stage.effects).toBe(1);
});
