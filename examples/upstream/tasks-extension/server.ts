/**
 * A kiln with the Tasks extension that keeps its tasks on disk: a batch is fired by a task, which goes on where it was when the
 * server is started again. Ours, on the MCP SDK and the wire schemas of ext-tasks: no published server keeps its tasks yet.
 *
 *   fire_batch {batch, glaze?: 'ask'}   a task, done once `ready/<batch>` is there; one firing a key (`_meta`, KEY below)
 *   find_batch {key}                    what was fired under it and not scrapped
 *   scrap_batch {key}                   scraps it; nothing where nothing is
 *
 * KILN_FOLDER holds `ready/`, `tasks/` and `fired.jsonl`. Run it: `npx node examples/upstream/tasks-extension/server.ts [port]`
 * (default 7415).
 */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import {
  CancelTaskRequestV2Schema,
  ElicitResultV2Schema,
  GetTaskRequestV2Schema,
} from '@modelcontextprotocol/ext-tasks/core/v2';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  CLIENT_CAPABILITIES_META_KEY,
  McpServer,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  createMcpHandler,
} from '@modelcontextprotocol/server';
import type { CallToolResult, Result, ServerContext } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { Kiln } from './kiln.ts';
import type { FiringTask } from './kiln.ts';

/** Where a call carries its idempotency key. */
const KEY = 'example/idempotencyKey';
const TASKS = 'io.modelcontextprotocol/tasks';
const QUESTION = 'glaze';

type NodeRequest = Parameters<ReturnType<typeof toNodeHandler>>[0];

const kiln = new Kiln(process.env['KILN_FOLDER'] ?? '.holdfast/kiln');
const answer = (structuredContent: object): CallToolResult => ({
  content: [{ type: 'text', text: JSON.stringify(structuredContent) }],
  structuredContent: { ...structuredContent },
});

const handle = ({ taskId, status, createdAt, lastUpdatedAt }: FiringTask) => ({
  taskId,
  status,
  createdAt,
  lastUpdatedAt,
  ttlMs: null,
  pollIntervalMs: 500,
});

function detailed(task: FiringTask): Result {
  const { status } = task;
  return {
    ...handle(task),
    ...(status === 'input_required' && { inputRequests: { [QUESTION]: question(task) } }),
    ...(status === 'completed' && { result: { resultType: 'complete', ...answer(task.fired ?? {}) } }),
  };
}

const question = ({ batch }: FiringTask) => ({
  method: 'elicitation/create',
  params: {
    mode: 'form',
    message: `Which glaze for ${batch}?`,
    requestedSchema: { type: 'object', properties: { glaze: { type: 'string' } }, required: ['glaze'] },
  },
});

function known(taskId: string): FiringTask {
  const task = kiln.task(taskId);
  if (!task) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'Task not found');
  return task;
}

/** Never a task to a client that did not say it can deal with one. */
function requireTasks({ mcpReq }: ServerContext): void {
  const envelope = mcpReq.envelope as Record<string, { extensions?: Record<string, unknown> }> | undefined;
  if (envelope?.[CLIENT_CAPABILITIES_META_KEY]?.extensions?.[TASKS] !== undefined) return;
  throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: { [TASKS]: {} } } });
}

function serverOf(): McpServer {
  const mcp = new McpServer(
    { name: 'kiln', version: '1.0.0' },
    { capabilities: { tools: {}, extensions: { [TASKS]: {} } } },
  );
  const fire = z.object({ batch: z.string().regex(/^[\w-]+$/), glaze: z.literal('ask').optional() });
  const byKey = z.object({ key: z.string() });
  const fired = z.object({ batch: z.string(), glaze: z.string(), number: z.int() });
  const found = z.object({ found: z.boolean(), fired: fired.optional() });
  const reached = () => answer({});
  mcp.registerTool('fire_batch', { description: 'Fires a batch.', inputSchema: fire }, reached);
  mcp.registerTool(
    'find_batch',
    {
      description: 'What was fired under a key and not scrapped.',
      inputSchema: byKey,
      outputSchema: found,
      annotations: { readOnlyHint: true },
    },
    reached,
  );
  mcp.registerTool('scrap_batch', { description: 'Scraps a batch.', inputSchema: byKey }, reached);

  mcp.server.setRequestHandler('tools/call', (request, context) => {
    const { name, arguments: args = {} } = request.params;
    if (name === 'fire_batch') {
      requireTasks(context);
      const key = context.mcpReq._meta?.[KEY];
      const { batch, glaze } = fire.parse(args);
      const task = kiln.fire(batch, typeof key === 'string' ? key : randomUUID(), glaze === 'ask');
      return { resultType: 'task', content: [], ...handle(task) };
    }
    const { key } = byKey.parse(args);
    if (name === 'scrap_batch') kiln.scrap(key);
    const standing = kiln.standing(key);
    return answer(standing ? { found: true, fired: standing } : { found: false });
  });
  const get = GetTaskRequestV2Schema.shape.params;
  mcp.server.setRequestHandler('tasks/get', { params: get }, ({ taskId }, context) => {
    requireTasks(context);
    return detailed(known(taskId));
  });
  mcp.server.setRequestHandler('tasks/update', { params: get }, ({ taskId }, context) => {
    requireTasks(context);
    known(taskId);
    const reply = ElicitResultV2Schema.safeParse(context.mcpReq.inputResponses?.[QUESTION]);
    if (reply.success) kiln.glaze(taskId, String(reply.data.content?.['glaze'] ?? 'none'));
    return {};
  });
  const cancel = CancelTaskRequestV2Schema.shape.params;
  mcp.server.setRequestHandler('tasks/cancel', { params: cancel }, ({ taskId }, context) => {
    requireTasks(context);
    kiln.cancel(known(taskId).taskId);
    return {};
  });
  return mcp;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const serve = toNodeHandler(createMcpHandler(serverOf, { legacy: 'reject' }));
  const server = createServer((request, response) => void serve(request as NodeRequest, response));
  server.listen(Number(process.argv[2] ?? 7415), '127.0.0.1', () => {
    kiln.goOn();
    console.log(`kiln listens on http://127.0.0.1:${(server.address() as { port: number }).port}/mcp`);
  });
}
