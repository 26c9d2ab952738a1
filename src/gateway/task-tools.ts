/** M3.2: `task_get`, `task_wait` and `task_cancel`, for clients without the Tasks extension. */
import type { CallToolResult } from '@modelcontextprotocol/server';
import * as z from 'zod';
import { HoldfastError } from '../contract/error.ts';
import { pointerOf } from '../contract/pointer.ts';
import type { JsonObject } from '../task/json.ts';
import { argumentsOf } from './call-tool.ts';
import type { Caller } from './caller.ts';
import type { ListedTool } from './catalog.ts';
import type { ProgressReporter } from './progress.ts';
import { toolResult } from './tool-result.ts';
import { waitForTask, withProgress } from './waiting.ts';
import type { WaitParts } from './waiting.ts';

export const TASK_TOOL_NAMES = ['task_get', 'task_wait', 'task_cancel'] as const;
export type TaskToolName = (typeof TASK_TOOL_NAMES)[number];

/** No action may have one of these names; `task_answer` comes with approvals. */
export const RESERVED_NAMES: readonly string[] = [...TASK_TOOL_NAMES, 'task_answer'];

export const isTaskTool = (name: string): name is TaskToolName =>
  (TASK_TOOL_NAMES as readonly string[]).includes(name);

const taskId = z.string().min(1).describe('The taskId that an earlier call answered with.');

function schemas(longestWaitSeconds: number) {
  return {
    task_get: z.strictObject({ taskId }),
    task_wait: z.strictObject({
      taskId,
      timeoutSeconds: z
        .number()
        .min(0)
        .default(longestWaitSeconds)
        .describe(`How long to wait for the end; at most ${longestWaitSeconds}, more is cut to it.`),
    }),
    task_cancel: z.strictObject({
      taskId,
      reason: z.string().max(500).optional().describe('Why, for the audit.'),
    }),
  };
}

const DESCRIPTIONS: Record<TaskToolName, string> = {
  task_get:
    'Reads a task that an earlier call started: its result if it ended, else where it stands. Changes nothing.',
  task_wait:
    'Waits for a task that an earlier call started and answers its result, or where it stands when the time is over.',
  task_cancel:
    'Asks for a task to be cancelled. The answer only says that the request was taken: an effect under way may still complete. Read the task to see how it ended.',
};

export interface TaskTools {
  readonly listed: readonly ListedTool[];
  call(name: TaskToolName, args: unknown, caller: Caller): Promise<CallToolResult>;
}

export function createTaskTools(parts: WaitParts): TaskTools {
  const schema = schemas(Math.max(1, Math.floor(parts.limits.blockingMs / 1000)));
  const { client } = parts;
  return {
    listed: TASK_TOOL_NAMES.map((name) =>
      listedTaskTool(name, z.toJSONSchema(schema[name], { io: 'input' }) as JsonObject),
    ),
    async call(name, given, caller) {
      const args = argumentsOf(given, caller);
      switch (name) {
        case 'task_get': {
          const input = parse(schema.task_get, args);
          return toolResult(await client.get(input.taskId, caller.principal));
        }
        case 'task_wait': {
          const input = parse(schema.task_wait, args);
          const known = await client.get(input.taskId, caller.principal);
          const timeoutMs = Math.min(Math.round(input.timeoutSeconds * 1000), parts.limits.blockingMs);
          const wait = (progress: ProgressReporter) =>
            waitForTask(parts, known, caller, { timeoutMs, progress });
          return toolResult(await withProgress(parts, caller, wait));
        }
        case 'task_cancel': {
          const input = parse(schema.task_cancel, args);
          return cancelResult(
            input.taskId,
            await client.cancel(input.taskId, caller.principal, input.reason),
          );
        }
      }
    },
  };
}

function listedTaskTool(name: TaskToolName, inputSchema: JsonObject): ListedTool {
  const isRead = name !== 'task_cancel';
  return {
    name,
    description: DESCRIPTIONS[name],
    inputSchema,
    annotations: {
      readOnlyHint: isRead,
      destructiveHint: !isRead,
      idempotentHint: true,
      openWorldHint: false,
    },
    _meta: {},
  };
}

function cancelResult(
  id: string,
  answer: { accepted: boolean; code: string; status: string },
): CallToolResult {
  const text = answer.accepted
    ? `Cancel requested for task ${id}. It may still complete if its effect is under way; read it with task_get.`
    : `The cancel changed nothing: task ${id} is ${answer.status} (${answer.code}).`;
  return {
    content: [{ type: 'text', text }],
    structuredContent: { taskId: id, requested: answer.accepted, code: answer.code, status: answer.status },
  };
}

function parse<T>(schema: z.ZodType<T>, args: JsonObject): T {
  const parsed = schema.safeParse(args);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.map(({ path, message }) => ({ path: pointerOf(path), message }));
  throw new HoldfastError(
    'invalid_arguments',
    `The arguments do not fit: ${issues.map((each) => `${each.path} ${each.message}`).join('; ')}.`,
    {
      details: { issues },
    },
  );
}
