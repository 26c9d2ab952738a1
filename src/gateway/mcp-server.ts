/**
 * One MCP server instance, for one HTTP request or one stdio connection, of either era. Cheap to make: everything that
 * is the same for all instances was made once.
 *
 * `tools/list` and `tools/call` are registered under McpServer's own: its list would convert schemas again instead of
 * publishing them byte for byte (M1.1), its call turns every thrown error, -32021 included, into a tool result.
 */
import { McpServer } from '@modelcontextprotocol/server';
import type { CallToolResult, ServerContext } from '@modelcontextprotocol/server';
import * as z from 'zod';
import { callAction } from './call-tool.ts';
import type { CallParts } from './call-tool.ts';
import { callerOf } from './caller.ts';
import type { Connection } from './caller.ts';
import type { ToolCatalog } from './catalog.ts';
import { toolErrorResult, unknownTool } from './error-mapping.ts';
import { isTaskTool } from './task-tools.ts';
import type { TaskTools } from './task-tools.ts';
import { TASKS_EXTENSION } from './tasks/extension.ts';
import { registerTaskMethods } from './tasks/methods.ts';
import { createTaskResult } from './tasks/wire-task.ts';

export interface ServerParts extends CallParts {
  catalog: ToolCatalog;
  taskTools: TaskTools;
  info: { name: string; version: string };
  /** Runs one call so that a shutdown can wait for it. */
  track<T>(call: () => Promise<T>): Promise<T>;
}

const INSTRUCTIONS =
  'Tools that change something run as durable tasks and take an idempotencyKey: send one key per intent, and repeat a call only with the same key. ' +
  'When an answer says that a task is still working or its outcome is unknown, ask for that task; do not call the tool again.';

// The SDK has validated the params; taken as they came, a key such as `__proto__` is still data (S1.4).
const listParams = z.looseObject({});
const callParams = z.looseObject({ name: z.string() });

export function createMcpServer(parts: ServerParts, connection: Connection): McpServer {
  const isModern = connection.era === 'modern';
  const mcp = new McpServer(parts.info, {
    capabilities: {
      tools: { listChanged: false },
      ...(isModern && { extensions: { [TASKS_EXTENSION]: {} } }),
    },
    ...(isModern && { supportedProtocolVersions: ['2026-07-28'] }),
    instructions: INSTRUCTIONS,
  });
  mcp.server.setRequestHandler('tools/list', { params: listParams }, (_params, context) => ({
    tools: callerOf(context, connection).declaresTasks
      ? parts.catalog.listed
      : [...parts.catalog.listed, ...parts.taskTools.listed],
  }));
  mcp.server.setRequestHandler('tools/call', { params: callParams }, (params, context) =>
    parts.track(() => callTool(parts, connection, params, context)),
  );
  if (isModern)
    registerTaskMethods(mcp, { client: parts.client, principal: connection.principal, log: parts.log });
  return mcp;
}

async function callTool(
  parts: ServerParts,
  connection: Connection,
  { name, arguments: args }: { name: string; arguments?: unknown },
  context: ServerContext,
): Promise<CallToolResult> {
  const caller = callerOf(context, connection);
  try {
    if (isTaskTool(name)) return await parts.taskTools.call(name, args, caller);
    const tool = parts.catalog.find(name);
    switch (tool.kind) {
      case 'unknown':
        throw unknownTool(name);
      case 'quarantined':
        throw tool.error;
      case 'action': {
        const outcome = await callAction(parts, tool.spec, args, caller);
        // The SDK's type for a call's result knows no `resultType: 'task'`; its wire does.
        return outcome.kind === 'result'
          ? outcome.result
          : (createTaskResult(outcome.answer) as unknown as CallToolResult);
      }
    }
  } catch (error) {
    caller.signal.throwIfAborted();
    return toolErrorResult(error, parts.log, name);
  }
}
