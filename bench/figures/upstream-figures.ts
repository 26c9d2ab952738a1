/**
 * A gateway in front of 20 servers with 300 tools: its list when warm, and a safe call through it against the same call
 * made to the server itself. Both calls go over the same kept connection to the server; what the gateway adds is HTTP, MCP,
 * the check of the arguments.
 */
import { fileURLToPath } from 'node:url';
import { createGateway } from '../../src/gateway/index.ts';
import type { ToolSpec } from '../../src/gateway/index.ts';
import type { JsonObject } from '../../src/task/json.ts';
import { openUpstream } from '../../src/upstream/connection/open-upstream.ts';
import { directCall } from '../../src/upstream/direct-call.ts';
import type { Upstream } from '../../src/upstream/upstream.ts';
import { figure } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { McpCaller } from '../mcp-caller.ts';
import { ratio, takeTurns } from '../pairs.ts';
import { shorter } from '../size.ts';
import type { Size } from '../size.ts';
import { median } from '../statistics.ts';
import type { System } from '../system.ts';

const SERVERS = 20;
const TOOLS_EACH = 15;
const LIST_MS_MAX = 100;
const NEVER = new AbortController().signal;

export async function upstreamFigures({ holdfast, principal }: System, size: Size): Promise<Figure[]> {
  const upstreams = Array.from({ length: SERVERS }, (_, at) => openServer(`shelf${at}`));
  const tools = (await Promise.all(upstreams.map(toolsOf))).flat();
  const { client } = holdfast;
  const gateway = createGateway({ client, tools, auth: { kind: 'loopback', principal } });
  const mcp = new McpCaller((await gateway.serveHttp({ port: 0 })).url);
  const server = upstreams[0];
  if (server === undefined) throw new Error('no server was opened');
  try {
    const contenders = {
      list: { call: () => mcp.listTools() },
      proxied: { call: () => mcp.callTool('shelf0_read_0', { sku: 'widget' }) },
      direct: { call: () => server.call({ tool: 'read_0', args: { sku: 'widget' }, signal: NEVER }) },
    };
    await takeTurns(contenders, shorter(size.reads));
    const { list, proxied, direct } = await takeTurns(contenders, size.reads);
    return [
      figure(`tools/list, ${SERVERS} upstreams with ${tools.length} tools, p50`, median(list), 'ms', {
        atMost: LIST_MS_MAX,
      }),
      figure(
        'safe call of an upstream’s tool, p50',
        ratio(proxied, direct),
        '× the same call made to the server',
      ),
    ];
  } finally {
    mcp.close();
    await gateway.close();
    await Promise.all(upstreams.map((upstream) => upstream.close()));
  }
}

const nowhere = (): void => undefined;

function openServer(identity: string): Upstream {
  const entry = fileURLToPath(new URL('../processes/upstream-server.ts', import.meta.url));
  const flags = ['--experimental-strip-types', '--disable-warning=ExperimentalWarning'];
  return openUpstream({
    identity,
    address: { command: process.execPath, args: [...flags, entry, String(TOOLS_EACH)] },
    info: { name: 'bench', version: '1' },
    log: { info: nowhere, warn: nowhere },
  });
}

async function toolsOf(upstream: Upstream): Promise<ToolSpec[]> {
  const listed = await upstream.tools(NEVER);
  return listed.map(({ name, description = '', inputSchema }) => ({
    name: `${upstream.identity}_${name}`,
    description,
    effect: 'safe',
    isReversible: false,
    direct: directCall(upstream, name),
    publishSchema: (): JsonObject => inputSchema,
  }));
}
