/**
 * `subscriptions/listen` with `taskIds` as a request handler of the SDK (M2.5): the acknowledgement, one
 * `notifications/tasks` for each state, and an empty result when the server has nothing more to say. Each message
 * carries the request's id as its subscription's.
 *
 * Core kinds in the same filter are acknowledged as the SDK does it: what the server's capabilities do not declare is
 * left out. This server declares none of them.
 */
import { SUBSCRIPTION_ID_META_KEY } from '@modelcontextprotocol/server';
import type { McpServer, ServerContext } from '@modelcontextprotocol/server';
import * as z from 'zod';
import { HoldfastError } from '../../contract/error.ts';
import type { Caller } from '../caller.ts';
import { taskProtocolError } from '../error-mapping.ts';
import type { GatewayLog } from '../log.ts';
import type { GatewayMetrics } from '../metrics.ts';
import { requireTasks } from './extension.ts';
import { TASK_LISTEN } from './listen-name.ts';
import type { TaskListens } from './listens.ts';

const params = z.looseObject({ notifications: z.looseObject({ taskIds: z.array(z.string()) }) });

export interface ListenMethodParts {
  listens: TaskListens;
  log: GatewayLog;
  metrics: Pick<GatewayMetrics, 'refused'>;
  callerIn: (context: ServerContext) => Caller;
  /** Runs one request so that a shutdown can wait for its answer. */
  track<T>(request: () => Promise<T>): Promise<T>;
}

export function registerTaskListen(mcp: McpServer, parts: ListenMethodParts): void {
  mcp.server.setRequestHandler(TASK_LISTEN, { params }, ({ notifications }, context) =>
    parts.track(() => listen(parts, notifications.taskIds, context)),
  );
}

async function listen(
  { listens, log, metrics, callerIn }: ListenMethodParts,
  asked: string[],
  context: ServerContext,
): Promise<{ _meta: Record<string, unknown> }> {
  requireTasks(context);
  const { id, notify } = context.mcpReq;
  const subscription = { [SUBSCRIPTION_ID_META_KEY]: id };
  try {
    await listens.serve(
      asked,
      { ...callerIn(context), tokenMs: tokenMsOf(context) },
      {
        acknowledge: (taskIds) =>
          notify({
            method: 'notifications/subscriptions/acknowledged',
            params: { notifications: { taskIds }, _meta: subscription },
          }),
        send: (task) =>
          notify({
            method: 'notifications/tasks',
            params: { ...task, _meta: { ...(task['_meta'] as object), ...subscription } },
          }),
      },
    );
  } catch (error) {
    if (error instanceof HoldfastError && error.code === 'too_many_listens') metrics.refused('listensMax');
    throw taskProtocolError(error, log, 'subscriptions/listen');
  }
  return { _meta: subscription };
}

/** On stdio there is none that could expire. */
const tokenMsOf = ({ http }: ServerContext): number =>
  Math.max(0, (http?.authInfo?.expiresAt ?? Number.MAX_SAFE_INTEGER) * 1_000 - Date.now());
