/**
 * One MCP server instance, for one HTTP request or one stdio connection, of either era. Cheap to make: everything that
 * is the same for all instances was made once.
 *
 * `tools/list` and `tools/call` are registered under McpServer's own: its list would convert schemas again instead of
 * publishing them byte for byte (M1.1), its call turns every thrown error, -32021 included, into a tool result.
 */
import { inputRequired, McpServer } from '@modelcontextprotocol/server';
import type { CallToolResult, RequestStateCodec, ServerContext } from '@modelcontextprotocol/server';
import * as z from 'zod';
import { FIXED_GATEWAY_LIMITS } from '../contract/gateway-limits.ts';
import { TASK_META } from '../contract/wire-names.ts';
import { approvalQuestion } from './approval.ts';
import { inCallSpan } from './call-span.ts';
import type { CallOrigin } from './call-span.ts';
import { callAction } from './call-tool.ts';
import type { CallOutcome, CallParts } from './call-tool.ts';
import { callerOf } from './caller.ts';
import type { Caller, Connection } from './caller.ts';
import type { ToolCatalog } from './catalog.ts';
import { toolErrorResult, unknownTool } from './error-mapping.ts';
import { endOf, UNKNOWN_TOOL } from './metrics.ts';
import type { CallEnd, GatewayMetrics } from './metrics.ts';
import { inRequest } from './open-request.ts';
import type { OpenRequest } from './open-request.ts';
import type { Leave } from './places.ts';
import { inputRequestOf } from './questions.ts';
import { requestStateCodec } from './request-state.ts';
import type { RequestState } from './request-state.ts';
import { taskMeta } from './task-answer.ts';
import { isTaskTool } from './task-tools.ts';
import type { TaskTools } from './task-tools.ts';
import { createTaskResult, registerTaskListen, registerTaskMethods, TASKS_EXTENSION } from './tasks/index.ts';
import type { TaskListens } from './tasks/index.ts';

export interface ServerParts extends CallParts {
  catalog: ToolCatalog;
  taskTools: TaskTools;
  listens: TaskListens;
  info: { name: string; version: string };
  requestStateKey: Uint8Array;
  metrics: GatewayMetrics;
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
  const states = requestStateCodec(parts.requestStateKey, connection.principal);
  const mcp = new McpServer(parts.info, {
    capabilities: {
      tools: { listChanged: false },
      ...(isModern && { extensions: { [TASKS_EXTENSION]: {} } }),
    },
    ...(isModern && { supportedProtocolVersions: ['2026-07-28'] }),
    instructions: INSTRUCTIONS,
    requestState: { verify: (state, context) => states.verify(state, context) },
    inputRequired: { roundTimeoutMs: FIXED_GATEWAY_LIMITS.questionMs.value },
  });
  const callerIn = (context: ServerContext): Caller => callerOf(context, connection, mcp);
  // For the SDK's comparison of arguments with their headers alone; nothing is ever dispatched to these.
  for (const { name, inputSchema } of isModern ? parts.catalog.mirrored : [])
    mcp.registerTool(name, { inputSchema }, () => Promise.reject(new Error('called past the gateway')));
  mcp.server.setRequestHandler('tools/list', { params: listParams }, (_params, context) => ({
    tools: callerIn(context).declaresTasks
      ? parts.catalog.listed
      : [...parts.catalog.listed, ...parts.taskTools.listed],
  }));
  mcp.server.setRequestHandler('tools/call', { params: callParams }, (params, context) =>
    parts.track(() =>
      observed(parts, originOf(parts, params.name, context), () =>
        callTool(parts, params, {
          caller: callerIn(context),
          mint: (state) => states.mint(state, context),
          ...connection,
        }),
      ),
    ),
  );
  if (isModern) {
    registerTaskMethods(mcp, { client: parts.client, log: parts.log, callerIn });
    registerTaskListen(mcp, { ...parts, callerIn });
  }
  return mcp;
}

function originOf({ catalog }: ServerParts, name: string, { mcpReq, http }: ServerContext): CallOrigin {
  const isKnown = isTaskTool(name) || catalog.find(name).kind !== 'unknown';
  return {
    tool: isKnown ? name : UNKNOWN_TOOL,
    isHttp: http !== undefined,
    meta: mcpReq._meta ?? {},
    headers: http?.req?.headers,
    signal: mcpReq.signal,
  };
}

/** Counted and traced. */
async function observed(
  { metrics, clock }: ServerParts,
  origin: CallOrigin,
  call: () => Promise<CallToolResult>,
): Promise<CallToolResult> {
  const begun = clock.now();
  let end: CallEnd = 'refused';
  metrics.began();
  try {
    const result = await inCallSpan(origin, call);
    end = endOf(result);
    return result;
  } finally {
    metrics.called(origin.tool, origin.signal.aborted ? 'abandoned' : end, clock.now() - begun);
  }
}

type Mint = (state: RequestState) => ReturnType<RequestStateCodec<RequestState>['mint']>;

interface CallSite extends Pick<Connection, 'admit'> {
  caller: Caller;
  mint: Mint;
}

const callTool = (
  parts: ServerParts,
  { name, arguments: args }: { name: string; arguments?: unknown },
  { caller, mint, admit }: CallSite,
): Promise<CallToolResult> =>
  inRequest(parts, caller, async (request) => {
    let leave: Leave | undefined;
    try {
      leave = await admit?.();
      return await dispatch(parts, name, args, request, mint);
    } catch (error) {
      request.throwIfLeft();
      return toolErrorResult(error, parts.log, name);
    } finally {
      leave?.();
    }
  });

async function dispatch(
  parts: ServerParts,
  name: string,
  args: unknown,
  request: OpenRequest,
  mint: Mint,
): Promise<CallToolResult> {
  if (isTaskTool(name)) return await parts.taskTools.call(name, args, request);
  const tool = parts.catalog.find(name);
  switch (tool.kind) {
    case 'unknown':
      throw unknownTool(name);
    case 'quarantined':
      throw tool.error;
    case 'action':
      return await answerOf(await callAction(parts, tool.spec, args, request), request.caller, mint);
  }
}

/** The SDK's type for a call's result knows neither `resultType: 'task'` nor `'input_required'`; its wire does. */
async function answerOf(outcome: CallOutcome, caller: Caller, mint: Mint): Promise<CallToolResult> {
  switch (outcome.kind) {
    case 'result':
      return outcome.result;
    case 'task':
      return createTaskResult(outcome.answer, caller) as unknown as CallToolResult;
    case 'input': {
      const { answer, approval, state } = outcome;
      const asked = inputRequired({
        requestState: await mint(state),
        inputRequests: { [approval.callId]: approvalQuestion(answer, approval) },
      });
      return { ...asked, _meta: { [TASK_META]: taskMeta(answer) } } as unknown as CallToolResult;
    }
    case 'question': {
      const { question, state } = outcome;
      return inputRequired({
        requestState: await mint(state),
        inputRequests: { [question.id]: inputRequestOf(question) },
      }) as unknown as CallToolResult;
    }
    default:
      return outcome satisfies never;
  }
}
