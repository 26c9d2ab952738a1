/**
 * Waiting for a task on behalf of one request.
 *
 * Invariants:
 * 1. Once a task was started, its handle is never lost: whatever goes wrong while waiting, the last known state is the
 *    answer, marked stale. Only the caller's own leaving ends without an answer, and then nobody would read it.
 * 2. Leaving ends the wait and nothing else (M5.3); our own shutdown ends it with the last known state (M5.4).
 */
import type { TaskAnswer, TaskClient } from '../client/task-client.ts';
import { openApproval } from './approval.ts';
import type { Clock } from './clock.ts';
import type { Caller } from './caller.ts';
import type { GatewayLimits } from './limits.ts';
import type { GatewayLog } from './log.ts';
import { createProgress } from './progress.ts';
import type { ProgressReporter } from './progress.ts';
import { hasEnded } from './task-answer.ts';

export interface WaitParts {
  client: TaskClient;
  limits: GatewayLimits;
  clock: Clock;
  log: GatewayLog;
  /** Aborts when this gateway begins to shut down. */
  shutdown: AbortSignal;
}

/** Runs the waits of one request with its one progress reporter, which has fallen silent when the answer is known (M4.2). */
export async function withProgress<T>(
  { limits, clock }: WaitParts,
  caller: Caller,
  work: (progress: ProgressReporter) => Promise<T>,
): Promise<T> {
  const progress = createProgress({
    token: caller.progressToken,
    send: (params) => caller.sendProgress(params),
    intervalMs: limits.progressIntervalMs,
    clock,
  });
  try {
    return await work(progress);
  } finally {
    await progress.stop();
  }
}

/** Blocks until the task ended, needs a person, or `timeoutMs` passed (M3.1). Rejects only when the caller left. */
export async function waitForTask(
  parts: WaitParts,
  known: TaskAnswer,
  caller: Caller,
  { timeoutMs, progress }: { timeoutMs: number; progress: ProgressReporter },
): Promise<TaskAnswer> {
  if (hasEnded(known) || openApproval(known) !== null || timeoutMs === 0) return known;
  const onChange = (answer: TaskAnswer) => {
    if (!hasEnded(answer)) progress.report(answer.statusMessage || answer.status);
  };
  onChange(known);
  // Without a token nobody is told, and the client need not look for changes.
  const isTold = caller.progressToken !== undefined;
  return lastKnown(parts, known, caller, { timeoutMs, ...(isTold && { onChange }) });
}

async function lastKnown(
  { client, shutdown, log }: WaitParts,
  known: TaskAnswer,
  { principal, signal }: Caller,
  options: { timeoutMs: number; onChange?: (answer: TaskAnswer) => void },
): Promise<TaskAnswer> {
  let latest = known;
  const ends = AbortSignal.any([signal, shutdown]);
  try {
    latest = await client.wait(known.taskId, principal, { ...options, signal: ends });
  } catch (error) {
    if (!ends.aborted) {
      log.warn(
        { taskId: known.taskId, err: error },
        'waiting for a task failed; its last known state is answered',
      );
      latest = { ...latest, stale: true };
    }
  }
  signal.throwIfAborted();
  // How this call met the task is known from its start alone.
  return { ...latest, attached: known.attached, replayed: known.replayed || latest.replayed };
}
