/** The Tasks extension's name and who declared it. */
import { hasTaskClientCapabilityV2, TASKS_EXTENSION_ID_V2 } from '@modelcontextprotocol/ext-tasks/core/v2';
import type { ServerContext } from '@modelcontextprotocol/server';
import { missingExtension } from '../error-mapping.ts';

export const TASKS_EXTENSION = TASKS_EXTENSION_ID_V2;

/** The capabilities are those of this request: 2026-07-28 has no session that could remember any. */
export const declaresTasks = (context: ServerContext): boolean =>
  hasTaskClientCapabilityV2({ _meta: context.mcpReq.envelope });

/** Throws -32021 unless the request declared the extension (M2.1). */
export function requireTasks(context: ServerContext): void {
  if (!declaresTasks(context)) throw missingExtension(TASKS_EXTENSION);
}
