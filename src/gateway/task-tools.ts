/** M3.2: `task_get`, `task_wait`, `task_cancel` and `task_answer`, for clients without the Tasks extension. */
import type { CallToolResult } from '@modelcontextprotocol/server';
import * as z from 'zod';
import type { DecisionAnswer, TaskAnswer } from '../client/task-client.ts';
import { HoldfastError } from '../contract/error.ts';
import { pointerOf } from '../contract/pointer.ts';
import { cut } from '../contract/text.ts';
import { EFFECT_META } from '../contract/wire-names.ts';
import type { JsonObject } from '../task/json.ts';
import type { Principal } from '../task/plan.ts';
import { openApprovals, REASON_CHARS_MAX } from './approval.ts';
import type { PersonsDecision } from './approval.ts';
import { argumentsOf } from './call-tool.ts';
import type { ListedTool } from './catalog.ts';
import { decideOverMcp, notReadable } from './decide.ts';
import type { OpenRequest } from './open-request.ts';
import { toolResult } from './tool-result.ts';
import { waitForTask } from './waiting.ts';
import type { WaitParts } from './waiting.ts';

const TASK_TOOL_NAMES = ['task_get', 'task_wait', 'task_cancel', 'task_answer'] as const;
export type TaskToolName = (typeof TASK_TOOL_NAMES)[number];

/** No action may have one of these names. */
export const RESERVED_NAMES: readonly string[] = [...TASK_TOOL_NAMES];

export const isTaskTool = (name: string): name is TaskToolName =>
  (TASK_TOOL_NAMES as readonly string[]).includes(name);

const taskId = z.string().min(1).describe('The taskId that an earlier call answered with.');

function schemas(longestWaitSeconds: number) {
  return {
    task_get: z.strictObject({
      taskId: taskId.optional(),
      tool: z
        .string()
        .min(1)
        .max(255)
        .optional()
        .describe('In place of taskId, with idempotencyKey: the tool that was called.'),
      idempotencyKey: z
        .string()
        .min(1)
        .max(255)
        .optional()
        .describe('In place of taskId, with tool: the key of a call whose answer never came.'),
    }),
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
    task_answer: z.strictObject({
      taskId,
      callId: z
        .string()
        .min(1)
        .max(255)
        .optional()
        .describe('The approval that the person saw; default: the first that is open now.'),
      decision: z.enum(['approve', 'reject']).describe('What the person decided.'),
      reason: z
        .string()
        .max(REASON_CHARS_MAX)
        .optional()
        .describe('Why, in the person’s words, for the audit.'),
    }),
  };
}

const DESCRIPTIONS: Record<TaskToolName, string> = {
  task_get:
    'Reads a task that an earlier call started: its result if it ended, else where it stands. Changes nothing. By taskId, or by tool and idempotencyKey for a call whose answer never came; when nothing is found then, the call may still be on its way.',
  task_wait:
    'Waits for a task that an earlier call started and answers its result, or where it stands when the time is over.',
  task_cancel:
    'Asks for a task to be cancelled. The answer only says that the request was taken: an effect under way may still complete. Read the task to see how it ended.',
  task_answer:
    'Passes on what a person decided about a task that waits for a decision, where its policy lets this connection carry it. Ask the person first; never decide for them. The first decision stands.',
};

export interface TaskTools {
  readonly listed: readonly ListedTool[];
  call(name: TaskToolName, args: unknown, request: OpenRequest): Promise<CallToolResult>;
}

export function createTaskTools(parts: WaitParts): TaskTools {
  const schema = schemas(Math.max(1, Math.floor(parts.limits.blockingMs / 1000)));
  const { client } = parts;
  return {
    listed: TASK_TOOL_NAMES.map((name) =>
      listedTaskTool(name, z.toJSONSchema(schema[name], { io: 'input' }) as JsonObject),
    ),
    async call(name, given, request) {
      const { caller } = request;
      const args = argumentsOf(given, caller);
      switch (name) {
        case 'task_get': {
          const known = await readTask(client, parse(schema.task_get, args), caller.principal);
          return toolResult(known, caller.principal);
        }
        case 'task_wait': {
          const input = parse(schema.task_wait, args);
          const known = await client.get(input.taskId, caller.principal);
          const windowMs = Math.round(input.timeoutSeconds * 1000);
          return toolResult(await waitForTask(parts, known, request, { windowMs }), caller.principal);
        }
        case 'task_cancel': {
          const input = parse(schema.task_cancel, args);
          return cancelResult(
            input.taskId,
            await client.cancel(input.taskId, caller.principal, input.reason),
          );
        }
        case 'task_answer':
          return answerApproval(parts, caller.principal, parse(schema.task_answer, args));
      }
    },
  };
}

interface ReadInput {
  taskId?: string | undefined;
  tool?: string | undefined;
  idempotencyKey?: string | undefined;
}

function readTask(
  client: WaitParts['client'],
  { taskId: id, tool, idempotencyKey: key }: ReadInput,
  principal: Principal,
): Promise<TaskAnswer> {
  if (id !== undefined && tool === undefined && key === undefined) return client.get(id, principal);
  if (id === undefined && tool !== undefined && key !== undefined)
    return client.find({ action: tool, key, principal });
  throw misfit([{ path: '', message: 'give either taskId, or tool and idempotencyKey together' }]);
}

function listedTaskTool(name: TaskToolName, inputSchema: JsonObject): ListedTool {
  const isRead = name === 'task_get' || name === 'task_wait';
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
    // As an action's: whoever reads may repeat it, whoever decides may not.
    _meta: { [EFFECT_META]: isRead ? 'safe' : 'unsafe' },
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

interface AnswerInput {
  taskId: string;
  callId?: string | undefined;
  decision: PersonsDecision['decision'];
  reason?: string | undefined;
}

/** Policy is the task's: it refuses what this connection or this principal may not decide (M7.3). */
async function answerApproval(
  parts: WaitParts,
  principal: Principal,
  { taskId: id, callId, decision, reason }: AnswerInput,
): Promise<CallToolResult> {
  const known = await parts.client.get(id, principal);
  if (known.stale) throw notReadable();
  const open = openApprovals(known).find((each) => callId === undefined || each.callId === callId);
  if (open === undefined) {
    const message = `${callId ?? 'No approval'} is ${callId === undefined ? '' : 'not '}open; a decision made before stands.`;
    return decisionResult(id, decision, { accepted: false, code: 'not_open', status: known.status, message });
  }
  const decided = { taskId: id, callId: open.callId, fingerprint: open.fingerprint };
  const answer = await decideOverMcp(parts, principal, decided, { decision, ...(reason && { reason }) });
  return decisionResult(id, decision, answer);
}

function decisionResult(
  id: string,
  decision: string,
  { accepted, code, status, message }: DecisionAnswer,
): CallToolResult {
  const more = message === undefined ? '' : ` ${message}`;
  const text = accepted
    ? `The decision (${decision}) about task ${id} was taken (${code}).${more} Ask for the task with task_wait.`
    : `The decision changed nothing (${code}).${more} Task ${id} is ${status}; read it with task_get.`;
  return {
    content: [{ type: 'text', text }],
    structuredContent: { taskId: id, accepted, code, status, ...(message !== undefined && { message }) },
  };
}

function parse<T>(schema: z.ZodType<T>, args: JsonObject): T {
  const parsed = schema.safeParse(args);
  if (parsed.success) return parsed.data;
  // An unknown key is quoted by the message, however long it is.
  throw misfit(
    parsed.error.issues.map(({ path, message }) => ({ path: pointerOf(path), message: cut(message, 300) })),
  );
}

function misfit(issues: { path: string; message: string }[]): HoldfastError {
  const told = issues.map(({ path, message }) => `${path} ${message}`.trim()).join('; ');
  return new HoldfastError('invalid_arguments', `The arguments do not fit: ${told}.`, {
    details: { issues },
  });
}
