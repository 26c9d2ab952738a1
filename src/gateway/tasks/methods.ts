/**
 * `tasks/get`, `tasks/update` and `tasks/cancel` of the Tasks extension (M2.2, M2.3, M2.4), on 2026-07-28 only: a client
 * of an older revision has no such methods.
 */
import type { McpServer, ServerContext } from '@modelcontextprotocol/server';
import * as z from 'zod';
import type { TaskClient } from '../../client/task-client.ts';
import type { Principal } from '../../task/plan.ts';
import { invalidParams, taskProtocolError } from '../error-mapping.ts';
import type { GatewayLog } from '../log.ts';
import { requireTasks } from './extension.ts';
import { detailedTask } from './wire-task.ts';

// Only the form of `setRequestHandler` with a schema opens the SDK's era gate for tasks/get and tasks/cancel.
const params = z.object({ taskId: z.string() });

export function registerTaskMethods(
  mcp: McpServer,
  options: { client: TaskClient; principal: Principal; log: GatewayLog },
): void {
  const { client, principal, log } = options;
  const register = (
    method: string,
    handle: (taskId: string, context: ServerContext) => Promise<object>,
  ): void => {
    mcp.server.setRequestHandler(method, { params }, async ({ taskId }, context) => {
      requireTasks(context);
      try {
        return { ...(await handle(taskId, context)) };
      } catch (error) {
        throw taskProtocolError(error, log, method);
      }
    });
  };

  register('tasks/get', async (taskId) => detailedTask(await client.get(taskId, principal)));

  // M2.3. No task asks for input yet, so every key is unknown and ignored; the acknowledgement is the same.
  register('tasks/update', async (taskId, { mcpReq }) => {
    // The SDK lifts `inputResponses` out of the params of every request.
    if (mcpReq.inputResponses === undefined) throw invalidParams('inputResponses is required');
    await client.get(taskId, principal);
    return {};
  });

  // M2.4: the acknowledgement of an intent, the same for a first, a repeated and a late cancel.
  register('tasks/cancel', async (taskId) => {
    await client.cancel(taskId, principal);
    return {};
  });
}
