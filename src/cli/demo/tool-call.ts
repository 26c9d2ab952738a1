/** One MCP tool call as the demo reads its answer. */
import type { Client } from '@modelcontextprotocol/client';
import { z } from 'zod';
import { TASK_META } from '../../contract/wire-names.ts';
import type { JsonObject } from '../../task/json.ts';

const taskSchema = z
  .object({
    taskId: z.string(),
    status: z.string(),
    effect: z.string().nullable(),
    cause: z.string().nullable(),
    replayed: z.boolean(),
    editedFrom: z.object({ by: z.string() }),
  })
  .partial();
const errorSchema = z.object({ error: z.object({ code: z.string(), details: z.unknown().optional() }) });

export interface ToolAnswer {
  /** What `_meta["holdfast/task"]` says; empty when nothing was started. */
  task: z.infer<typeof taskSchema>;
  error: { code: string; details?: unknown } | null;
  text: string;
}

export async function callTool(
  client: Client,
  name: string,
  args: JsonObject,
  { signal, meta }: { signal?: AbortSignal; meta?: Record<string, string> } = {},
): Promise<ToolAnswer> {
  const call = { name, arguments: args, ...(meta && { _meta: meta }) };
  const answer = await client.callTool(call, signal && { signal });
  const { content, structuredContent } = answer;
  const task = taskSchema.safeParse(answer._meta?.[TASK_META]);
  const error = errorSchema.safeParse(structuredContent);
  return {
    task: task.success ? task.data : {},
    error: error.success ? error.data.error : null,
    text: content.map((part) => (part.type === 'text' ? part.text : '')).join(' '),
  };
}
