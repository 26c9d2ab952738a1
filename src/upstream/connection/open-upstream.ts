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
import type { Reply } from '../../mcp-client/reply.ts';
import { isJsonObject } from '../../task/json.ts';
import type { Json, JsonObject } from '../../task/json.ts';
import type { Upstream, UpstreamCall, UpstreamReply, UpstreamTool } from '../upstream.ts';
import { cleanerOf, UPSTREAM_TIMEOUTS } from './address.ts';
import type { UpstreamAddress, UpstreamTimeouts } from './address.ts';
import { createConnection } from './connection.ts';
import type { Connection } from './connection.ts';
import type { UpstreamLog } from './log.ts';
import { createRemoteTasks, resultOf } from './remote-tasks.ts';
import { readTools } from './tool-list.ts';
import { upstreamReply } from './upstream-reply.ts';

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
}

export function openUpstream(options: UpstreamOptions): Upstream {
  const { identity, log } = options;
  const clean = cleanerOf(options.address);
  const timeouts = { ...UPSTREAM_TIMEOUTS, ...options.timeouts };
  const connection = createConnection({ ...options, timeouts, clean });
  const tools = createToolList(connection, clean, (name) => {
    log.warn({ upstream: identity, tool: name }, 'a tool of an upstream has no name or no schema');
  });
  const isTask = (link: Link, tool: string) => calledAsTask(link, tool, tools, options.asTask);
  return {
    identity,
    tools: (signal) => tools.read(signal),
    call: (call) => callTool(connection, { identity, clean, isTask }, call),
    remote: createRemoteTasks(connection, clean),
    close: () => connection.close(),
  };
}

interface ToolList {
  read(signal: AbortSignal): Promise<UpstreamTool[]>;
  /** As last read; read now where it never was. */
  known(): Promise<UpstreamTool[]>;
}

function createToolList(
  connection: Connection,
  clean: (text: string) => string,
  leftOut: (name: Json | undefined) => void,
): ToolList {
  let last: Promise<UpstreamTool[]> | null = null;
  const read = async (signal: AbortSignal): Promise<UpstreamTool[]> => {
    const page = async (params: JsonObject) =>
      resultOf(await connection.control('tools/list', () => params, signal), 'tools/list', clean);
    const tools = await readTools(page, leftOut);
    last = Promise.resolve(tools);
    return tools;
  };
  return {
    read,
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

interface CallParts {
  identity: string;
  clean: (text: string) => string;
  isTask: (link: Link, tool: string) => Promise<boolean>;
}

/** How often a server may ask in the midst of one call. */
const ROUNDS_MAX = 3;

async function callTool(
  connection: Connection,
  { identity, clean, isTask }: CallParts,
  { tool, args, meta, headers, signal, onProgress }: UpstreamCall,
): Promise<UpstreamReply> {
  let asTask = false;
  const paramsFor = (more: JsonObject) => async (link: Link) => {
    asTask = await isTask(link, tool);
    return {
      ...{ name: tool, arguments: args, ...more },
      ...(meta !== undefined && { _meta: meta }),
      ...(asTask && { task: {} }),
    };
  };
  const request = { signal, ...(onProgress && { onProgress }), ...(headers && { headers }) };
  const names = () => ({ server: identity, tool, asTask });
  try {
    let reply = await connection.call(paramsFor({}), request);
    for (let round = 1; round <= ROUNDS_MAX; round += 1) {
      const dismissal = dismissalOf(reply);
      if (dismissal === null) return upstreamReply(reply, names(), clean);
      const next = await connection.call(paramsFor(dismissal), request);
      // The server has begun: that this message did not reach it proves nothing about the call.
      if (next.kind === 'failure' && next.failure !== 'lost')
        return {
          kind: 'in_doubt',
          message: `a form of the server could not be dismissed: ${clean(next.message)}`,
        };
      reply = next;
    }
    return upstreamReply(reply, names(), clean);
  } catch (error) {
    // The tool's wish for a task could not be read; nothing was sent of the call.
    return { kind: 'not_sent', message: clean(error instanceof Error ? error.message : String(error)) };
  }
}

/** What goes back to a server of 2026-07-28 that asks with forms alone; null where it asks nothing, or for other things. */
function dismissalOf(reply: Reply): JsonObject | null {
  if (reply.kind !== 'result' || reply.result.resultType !== 'input_required') return null;
  const { inputRequests, requestState } = reply.result;
  const requests = Object.entries(isJsonObject(inputRequests) ? inputRequests : {});
  if (requests.length === 0) return null;
  if (!requests.every(([, request]) => isJsonObject(request) && request.method === 'elicitation/create'))
    return null;
  return {
    inputResponses: Object.fromEntries(requests.map(([key]) => [key, { action: 'cancel' }])),
    ...(requestState !== undefined && { requestState }),
  };
}
