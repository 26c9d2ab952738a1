/**
 * Waiting for a task on behalf of one request.
 *
 * Invariants:
 * 1. Once a task was started, its handle is never lost: whatever goes wrong while waiting, the last known state is the
 *    answer, marked stale. Only the caller's own leaving ends without an answer, and then nobody would read it.
 * 2. Leaving ends the wait and nothing else (M5.3); a clock of the request (M4.1) and our own shutdown (M5.4) end it with
 *    the last known state.
 */
import type { TaskAnswer, TaskClient } from '../client/task-client.ts';
import { openApproval } from './approval.ts';
import type { GatewayLog } from './log.ts';
import type { OpenRequest, RequestParts } from './open-request.ts';
import { hasEnded } from './task-answer.ts';

export interface WaitParts extends RequestParts {
  client: TaskClient;
  log: GatewayLog;
}

interface WaitOptions {
  /** Ends the wait before the request's own clocks do. */
  windowMs?: number;
  /** No progress is told, whatever the caller's token. */
  isSilent?: boolean;
}

/** Blocks until the task ended, needs a person, or the request is over (M3.1). Rejects only when the caller left. */
export async function waitForTask(
  parts: WaitParts,
  known: TaskAnswer,
  request: OpenRequest,
  { windowMs = parts.limits.blockingMs, isSilent = false }: WaitOptions = {},
): Promise<TaskAnswer> {
  if (hasEnded(known) || openApproval(known) !== null || windowMs === 0) return known;
  const onChange = (answer: TaskAnswer) => {
    if (!hasEnded(answer)) request.report(answer.statusMessage || answer.status);
  };
  // Without a token nobody is told, and the client need not look for changes.
  const isTold = request.caller.progressToken !== undefined && !isSilent;
  if (isTold) onChange(known);
  return lastKnown(parts, known, request, {
    timeoutMs: Math.min(windowMs, parts.limits.blockingMs),
    ...(isTold && { onChange }),
  });
}

async function lastKnown(
  { client, log }: WaitParts,
  known: TaskAnswer,
  { caller, over, throwIfLeft }: OpenRequest,
  options: { timeoutMs: number; onChange?: (answer: TaskAnswer) => void },
): Promise<TaskAnswer> {
  let latest = known;
  try {
    latest = await client.wait(known.taskId, caller.principal, { ...options, signal: over });
  } catch (error) {
    if (!over.aborted) {
      log.warn(
        { taskId: known.taskId, err: error },
        'waiting for a task failed; its last known state is answered',
      );
      latest = { ...latest, stale: true };
    }
  }
  throwIfLeft();
  // How this call met the task is known from its start alone.
  return { ...latest, attached: known.attached, replayed: known.replayed || latest.replayed };
}
