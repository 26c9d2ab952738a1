/**
 * `tasks/get`, `tasks/update` and `tasks/cancel` of the Tasks extension (M2.2, M2.3, M2.4), on 2026-07-28 only: a client
 * of an older revision has no such methods.
 */
import type { McpServer, ServerContext } from '@modelcontextprotocol/server';
import * as z from 'zod';
import type { ApprovalView, TaskAnswer, TaskClient } from '../../client/task-client.ts';
import { answerableApprovals, openApprovals, personsAnswer } from '../approval.ts';
import type { Caller } from '../caller.ts';
import { decideOverMcp, notReadable } from '../decide.ts';
import { invalidParams, taskProtocolError } from '../error-mapping.ts';
import type { GatewayLog } from '../log.ts';
import { requireTasks } from './extension.ts';
import { detailedTask, remoteRequests } from './wire-task.ts';
import type { Json, JsonObject } from '../../task/json.ts';

// Only the form of `setRequestHandler` with a schema opens the SDK's era gate for tasks/get and tasks/cancel.
const params = z.object({ taskId: z.string() });

interface MethodParts {
  client: TaskClient;
  log: GatewayLog;
  callerIn: (context: ServerContext) => Caller;
}

export function registerTaskMethods(mcp: McpServer, parts: MethodParts): void {
  const { client, log } = parts;
  const register = (method: string, handle: (taskId: string, caller: Caller) => Promise<object>): void => {
    mcp.server.setRequestHandler(method, { params }, async ({ taskId }, context) => {
      requireTasks(context);
      try {
        return { ...(await handle(taskId, parts.callerIn(context))) };
      } catch (error) {
        throw taskProtocolError(error, log, method);
      }
    });
  };

  register('tasks/get', async (taskId, caller) =>
    detailedTask(await client.get(taskId, caller.principal), caller),
  );

  register('tasks/update', async (taskId, caller) => {
    await update(parts, taskId, caller);
    return {};
  });

  // M2.4: the acknowledgement of an intent, the same for a first, a repeated and a late cancel.
  register('tasks/cancel', async (taskId, { principal }) => {
    await client.cancel(taskId, principal);
    return {};
  });
}

/**
 * M2.3. Each open approval is an outstanding key, and they may be answered one at a time; all other keys, whatever their
 * shape, are ignored.
 *
 * The acknowledgement says that the answer was taken, not what it did. One that the task refuses (not the right person,
 * decided by somebody else meanwhile) changes nothing: the task's next `tasks/get` says who decides, and the task's
 * journal who tried.
 */
async function update(
  parts: MethodParts,
  taskId: string,
  { principal, inputResponses }: Caller,
): Promise<void> {
  // The SDK lifts `inputResponses` out of the params of every request.
  if (inputResponses === undefined) throw invalidParams('inputResponses is required');
  const known = await parts.client.get(taskId, principal);
  if (known.stale && Object.keys(inputResponses as object).length > 0) throw notReadable();
  const answered = openApprovals(known).filter(({ callId }) =>
    Object.hasOwn(inputResponses as object, callId),
  );
  const asked = Object.keys(remoteRequests(known)).filter((key) =>
    Object.hasOwn(inputResponses as object, key),
  );
  if (asked.length > 0) {
    const given = asked.map((key): [string, Json] => [key, (inputResponses as JsonObject)[key] ?? null]);
    await parts.client.answer(taskId, principal, Object.fromEntries(given));
  }
  for (const approval of answered) await answerTo(parts, known, approval, { principal, inputResponses });
}

async function answerTo(
  parts: MethodParts,
  known: TaskAnswer,
  { callId, fingerprint }: ApprovalView,
  { principal, inputResponses }: Pick<Caller, 'principal' | 'inputResponses'>,
): Promise<void> {
  const { taskId } = known;
  const answer = personsAnswer(inputResponses, callId);
  switch (answer.kind) {
    case 'decision':
      await decideOverMcp(parts, principal, { taskId, callId, fingerprint }, answer);
      return;
    case 'none':
      return; // the question stays open
    case 'unusable':
      if (answerableApprovals(known, principal).every((each) => each.callId !== callId)) return; // never asked
      throw invalidParams(`The answer to ${callId} does not fit the schema it was asked with.`);
    default:
      answer satisfies never;
  }
}
