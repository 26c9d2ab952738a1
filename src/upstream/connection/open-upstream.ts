/**
 * Another's MCP server, over stdio or HTTP, of 2026-07-28 or 2025-11-25.
 *
 * It owns the line to the server (connection.ts) and knows which tools want a task. It never sends a call again that the
 * server may have got, and never tells one server of another's requests: each has a line and ids of its own (M8.3).
 *
 * 1. Nothing is opened before the first request, and a line that broke is replaced at the next.
 * 2. A call ends once: answered, or by its `signal`. The server is told under the id of its own request, at once, in a
 *    message of its own; over 2026-07-28's HTTP by the closed stream. Whatever it still answers is ignored.
 * 3. `close` tells no server that a call was cancelled; what is under way ends in doubt (M5.4).
 *
 * Declared to servers: the Tasks extension, and with it forms (`elicitation`), which come with a task and are carried on.
 * A form in the midst of a call can not be shown to anybody, so it is answered as dismissed; on 2025-11-25 none is declared.
 */
import type { Link } from '../../mcp-client/link.ts';
import { NEVER } from '../../contract/clock.ts';
import type { Json, JsonObject } from '../../task/json.ts';
import type { Upstream, UpstreamCall, UpstreamTool } from '../upstream.ts';
import { cleanerOf, UPSTREAM_TIMEOUTS } from './address.ts';
import type { UpstreamAddress, UpstreamTimeouts } from './address.ts';
import { callTool } from './call-tool.ts';
import { createConnection } from './connection.ts';
import type { Connection } from './connection.ts';
import type { UpstreamLog } from './log.ts';
import { paramHeaders } from './param-headers.ts';
import { createRemoteTasks, resultOf } from './remote-tasks.ts';
import { readTools } from './tool-list.ts';

export interface UpstreamOptions {
  /** What the ledger knows the server by. */
  identity: string;
  address: UpstreamAddress;
  /** Who we are to the server. */
  info: { name: string; version: string };
  timeouts?: Partial<UpstreamTimeouts>;
  log: UpstreamLog;
  /** 2025-11-25: whether a tool is called as a task where it may be (`optional`). One that must be always is. */
  asTask?: (tool: string) => boolean;
  /** Told when the list of tools may be another: the server says so, or it was lost and met again. */
  listChanged?: () => void;
}

export function openUpstream(options: UpstreamOptions): Upstream {
  const { identity, log } = options;
  const clean = cleanerOf(options.address);
  const timeouts = { ...UPSTREAM_TIMEOUTS, ...options.timeouts };
  const listChanged = (why: 'told' | 'new line') => {
    // Whoever reads the list over a new line has it from there.
    if (why === 'told' || !tools.isReading) options.listChanged?.();
  };
  const connection = createConnection({ ...options, timeouts, clean, listChanged });
  const tools = createToolList(connection, clean, (name) => {
    log.warn({ upstream: identity, tool: name }, 'a tool of an upstream has no name or no schema');
  });
  const isTask = (link: Link, tool: string) => calledAsTask(link, tool, tools, options.asTask);
  return {
    identity,
    tools: (signal) => tools.read(signal),
    call: async (call) => {
      const headers = 'url' in options.address ? await headersOf(call, tools) : {};
      return callTool(
        connection,
        { identity, clean, isTask },
        { ...call, headers: { ...headers, ...call.headers } },
      );
    },
    remote: createRemoteTasks(connection, clean),
    close: () => connection.close(),
  };
}

interface ToolList {
  readonly isReading: boolean;
  read(signal: AbortSignal): Promise<UpstreamTool[]>;
  /** None where it never was read. */
  lastRead(): Promise<UpstreamTool[]>;
  /** As last read; read now where it never was. */
  known(): Promise<UpstreamTool[]>;
}

function createToolList(
  connection: Connection,
  clean: (text: string) => string,
  leftOut: (name: Json | undefined) => void,
): ToolList {
  let last: Promise<UpstreamTool[]> | null = null;
  let readers = 0;
  const read = async (signal: AbortSignal): Promise<UpstreamTool[]> => {
    const page = async (params: JsonObject) =>
      resultOf(await connection.control('tools/list', () => params, signal), 'tools/list', clean);
    readers += 1;
    try {
      const tools = await readTools(page, leftOut);
      last = Promise.resolve(tools);
      return tools;
    } finally {
      readers -= 1;
    }
  };
  return {
    get isReading() {
      return readers > 0;
    },
    read,
    lastRead: async () => (last === null ? [] : last.catch(() => [])),
    async known() {
      const reading = (last ??= read(NEVER));
      try {
        return await reading;
      } catch (error) {
        if (last === reading) last = null;
        throw error;
      }
    },
  };
}

/** Of a tool that was never listed nothing is known: the server refuses a call that lacks a header it wants. */
async function headersOf({ tool, args }: UpstreamCall, tools: ToolList): Promise<Record<string, string>> {
  const known = await tools.lastRead();
  const schema = known.find(({ name }) => name === tool)?.inputSchema;
  return schema === undefined ? {} : paramHeaders(schema, args);
}

/** Only a server that says it makes tasks of calls is asked for its tools' wishes. */
async function calledAsTask(
  link: Link,
  tool: string,
  tools: ToolList,
  asTask: UpstreamOptions['asTask'],
): Promise<boolean> {
  const { tasks } = (link.capabilities ?? {}) as { tasks?: { requests?: { tools?: { call?: unknown } } } };
  if (link.era !== 'legacy' || tasks?.requests?.tools?.call === undefined) return false;
  const support = (await tools.known()).find(({ name }) => name === tool)?.taskSupport;
  return support === 'required' || (support === 'optional' && (asTask?.(tool) ?? false));
}
