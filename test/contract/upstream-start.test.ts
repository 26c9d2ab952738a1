// Other people's servers as one process starts them: what of them is logged, and that none stays behind.
import { expect, test } from 'vitest';
import type { UpstreamDefinition } from '../../src/contract/upstream-definition.ts';
import type { ConfiguredUpstream } from '../../worker/config.ts';
import { openUnkeptUpstreams, openUpstreams } from '../../worker/upstreams.ts';
import type { OpenUpstreamsOptions } from '../../worker/upstreams.ts';
import { deferred } from '../support/deferred.ts';

/** A program in place of a server, run by this Node. */
function configured(
  name: string,
  program: string,
  tools: UpstreamDefinition['tools'] = {},
): ConfiguredUpstream {
  const [command, args] = [process.execPath, ['-e', program]];
  return {
    name,
    definition: { command, args, tools },
    target: () => ({ name, identity: name, secrets: [], kind: 'stdio', command, args, env: {} }),
  };
}

const configOf = (upstreams: ConfiguredUpstream[]): OpenUpstreamsOptions['config'] => ({
  upstreams,
  actions: [],
  procedures: null,
  hmacKey: null,
});

function logging() {
  const lines: string[] = [];
  const write = (fields: object, message: string) => void lines.push(`${message} ${JSON.stringify(fields)}`);
  return { lines, log: { debug: write, info: write, warn: write, error: write } };
}

test.each([
  [true, { pay: { sensitive: { args: ['/card'] } } }],
  [false, { pay: {} }],
])(
  '[S2.10] what a server prints is hidden (%s) where a tool of it has sensitive fields',
  async (isHidden, tools) => {
    const { lines, log } = logging();
    const program = 'console.error("called with card 4111"); console.error("and again")';
    const upstreams = await openUnkeptUpstreams(configOf([configured('bank', program, tools)]), log);
    await upstreams.close();
    expect(lines.some((line) => line.includes('4111'))).toBe(!isHidden);
    expect(lines.filter((line) => line.includes('is not shown'))).toHaveLength(isHidden ? 1 : 0);
  },
);

/** A server of 2025-11-25 with no tools. */
const EMPTY_SERVER = `
  const answer = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
  const serverInfo = { name: 'empty', version: '1' };
  const results = {
    initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo },
    'tools/list': { tools: [] },
  };
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method } = JSON.parse(line);
    if (id === undefined) return;
    if (results[method]) answer({ id, result: results[method] });
    else answer({ id, error: { code: -32601, message: 'Method not found' } });
  });
`;

test('[M8.3] where one server’s list can not be read from the ledger, the others are closed before that is told', async () => {
  const isListed = deferred();
  const { lines, log } = logging();
  const ledger = {
    upstreamList: async (identity: string) => {
      if (identity === 'other') return null;
      await isListed.promise;
      throw new Error('the ledger is away');
    },
    keepUpstreamList: (_identity: string, tools: unknown[]) => {
      isListed.resolve();
      return Promise.resolve({ tools, gone: [], seenAt: 1 });
    },
  } as unknown as OpenUpstreamsOptions['ledger'];
  const config = configOf([configured('other', EMPTY_SERVER), configured('broken', EMPTY_SERVER)]);
  await expect(openUpstreams({ config, ledger, log, isConnected: true })).rejects.toThrow(
    'the ledger is away',
  );
  expect(lines.filter((line) => line.startsWith('upstream process ended'))).toHaveLength(1);
});

/** A server of 2025-11-25 whose tool may be called as a task. */
const TASK_SERVER = EMPTY_SERVER.replace(
  'capabilities: { tools: {} }',
  'capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } }',
)
  .replace(
    "'tools/list': { tools: [] }",
    "'tools/list': { tools: [{ name: 'work', inputSchema: { type: 'object' }, execution: { taskSupport: 'optional' } }] }",
  )
  .replace(
    'const { id, method } = JSON.parse(line);',
    `const { id, method, params } = JSON.parse(line);
     const task = { taskId: 't1', status: 'working', createdAt: '2026-01-01T00:00:00Z', ttl: null };
     if (method === 'tools/call') return answer({ id, result: params.task ? { task } : { content: [] } });`,
  );

test.each([
  [true, 'task'],
  [false, 'answer'],
])(
  '[M8.4] a tool of 2025-11-25 that may be a task is called as one where it is configured so: %s',
  async (asTask, kind) => {
    const { log } = logging();
    const upstreams = await openUnkeptUpstreams(
      configOf([configured('kiln', TASK_SERVER, { work: { asTask } })]),
      log,
    );
    const [server] = upstreams.servers;
    const reply = await server?.line?.call({ tool: 'work', args: {}, signal: new AbortController().signal });
    await upstreams.close();
    expect(reply).toMatchObject({ kind });
  },
);
