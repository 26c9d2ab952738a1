// How a connection hears that a server's tools are others.
import { afterEach, expect, test } from 'vitest';
import { openUpstream } from '../../src/upstream/connection/open-upstream.ts';
import type { Upstream } from '../../src/upstream/upstream.ts';
import { deferred } from '../support/deferred.ts';

const NEVER = new AbortController().signal;
const quiet = { info: () => undefined, warn: () => undefined };

/** `grow` adds a tool, of which the SDK tells; `end` ends the process. */
const SERVER = `
  import { McpServer } from '@modelcontextprotocol/server';
  import { serveStdio } from '@modelcontextprotocol/server/stdio';
  serveStdio(() => {
    const server = new McpServer({ name: 'growing', version: '1' });
    server.registerTool('grow', {}, () => {
      server.registerTool('more', {}, () => ({ content: [] }));
      return { content: [] };
    });
    server.registerTool('end', {}, () => process.exit(0));
    return server;
  });
`;
/** The same of 2025-11-25, without the SDK. */
const LEGACY = `
  const tools = [{ name: 'grow', inputSchema: { type: 'object' } }];
  const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
  const serverInfo = { name: 'growing', version: '1' };
  const initialized = { protocolVersion: '2025-11-25', capabilities: { tools: { listChanged: true } }, serverInfo };
  const answers = {
    initialize: () => initialized,
    'tools/list': () => ({ tools }),
    'tools/call': () => {
      tools.push({ name: 'more', inputSchema: { type: 'object' } });
      say({ method: 'notifications/tools/list_changed' });
      return { content: [] };
    },
  };
  const { createInterface } = await import('node:readline');
  createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method } = JSON.parse(line);
    if (id === undefined) return;
    if (answers[method]) say({ id, result: answers[method]() });
    else say({ id, error: { code: -32601, message: 'Method not found' } });
  });
`;

let upstream: Upstream;
afterEach(() => upstream.close());

function open(program: string) {
  let changes = 0;
  let heard = deferred();
  upstream = openUpstream({
    identity: 'growing',
    address: { command: process.execPath, args: ['--input-type=module', '-e', program] },
    ...{ info: { name: 'test', version: '1' }, log: quiet },
    listChanged: () => {
      changes += 1;
      heard.resolve();
    },
  });
  return {
    changes: () => changes,
    names: async () => (await upstream.tools(NEVER)).map(({ name }) => name),
    call: (tool: string) => upstream.call({ tool, args: {}, signal: NEVER }),
    async heard() {
      await heard.promise;
      heard = deferred();
    },
  };
}

test.each([
  ['2026-07-28', SERVER],
  ['2025-11-25', LEGACY],
])('[M8.5] a server of %s that adds a tool is heard', async (_revision, program) => {
  const { names, call, heard } = open(program);
  expect(await names()).not.toContain('more');
  await call('grow');
  await heard();
  expect(await names()).toContain('more');
});

test('[M8.5] a server that is met over a new line may be another: told, but not to whoever reads the list over it', async () => {
  const { names, call, heard, changes } = open(SERVER);
  await names();
  await call('end');
  await names();
  expect(changes()).toBe(0);
  await call('end');
  await call('absent');
  await heard();
  expect(changes()).toBe(1);
});
