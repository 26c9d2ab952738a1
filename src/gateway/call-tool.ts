/**
 * `tools/call` for actions, in the order of M1.2: the caller is authenticated before this; then validate, plan and
 * start or attach (all three in `TaskClient.start`, which answers only when the start is durable), then answer.
 *
 * How it answers:
 *
 * | action | client | answer |
 * | --- | --- | --- |
 * | ended already (replay, inline) | any | the result |
 * | `safe` | any | the result, after blocking |
 * | other | declared Tasks | the result within `inlineWaitMs`, else the task (M2.1) |
 * | other | did not | the result, blocking with progress up to `blockingMs`, else the handle in words (M3.1) |
 */
import type { CallToolResult } from '@modelcontextprotocol/server';
import type { StartRequest, TaskAnswer } from '../client/task-client.ts';
import { HoldfastError } from '../contract/error.ts';
import type { JsonObject } from '../task/json.ts';
import type { Caller } from './caller.ts';
import { takeKey } from './idempotency-key.ts';
import { hasEnded } from './task-answer.ts';
import { toolResult } from './tool-result.ts';
import type { ToolSpec } from './tool-spec.ts';
import { waitForTask, withProgress } from './waiting.ts';
import type { WaitParts } from './waiting.ts';
import { refuseInexact } from './wire-message.ts';

export interface CallParts extends WaitParts {
  /** Fault seam: awaited when the start is durable and the answer known, before it is sent. */
  beforeAnswer: (answer: TaskAnswer) => Promise<void>;
}

export type CallOutcome = { kind: 'result'; result: CallToolResult } | { kind: 'task'; answer: TaskAnswer };

export async function callAction(
  parts: CallParts,
  spec: ToolSpec,
  args: unknown,
  caller: Caller,
): Promise<CallOutcome> {
  const isSafe = spec.effect === 'safe';
  const takesTask = caller.declaresTasks && !isSafe;
  const { args: own, key } = takeKey(argumentsOf(args, caller), caller.meta, !isSafe);
  const request: StartRequest = {
    action: spec.name,
    args: own,
    principal: caller.principal,
    // Keyless safe calls never share a task, so that one can be aborted when its caller leaves (M5.3).
    ...(key === undefined ? { attach: !isSafe && (spec.attach ?? true) } : { key }),
  };
  const answer = await withProgress(parts, caller, async (progress) => {
    const patienceMs = patienceOf(parts);
    const wait = (known: TaskAnswer, timeoutMs: number) =>
      waitForTask(parts, known, caller, { timeoutMs, progress });
    const started = await startOrMeet(parts, request, (met) => wait(met, patienceMs()));
    return wait(started, takesTask ? parts.limits.inlineWaitMs : patienceMs()).catch((error: unknown) => {
      if (isSafe && key === undefined) abandonSafeCall(parts, started, caller);
      throw error;
    });
  });
  await parts.beforeAnswer(answer);
  return takesTask && !hasEnded(answer)
    ? { kind: 'task', answer }
    : { kind: 'result', result: toolResult(answer) };
}

/** What is left of `blockingMs`: the caller's own timeout began with the call, not with the wait. */
function patienceOf({ clock, limits }: CallParts): () => number {
  const calledAt = clock.now();
  return () => Math.max(0, limits.blockingMs - (clock.now() - calledAt));
}

/** A task that is cancelled each time it is started anew is somebody's will. */
const ROUNDS_MAX = 3;

/** M1.4: a call that meets a task asked to cancel waits for its end, and starts anew where nothing was sent (S1.6). */
async function startOrMeet(
  { client, shutdown }: CallParts,
  request: StartRequest,
  wait: (met: TaskAnswer) => Promise<TaskAnswer>,
): Promise<TaskAnswer> {
  for (let round = 1; ; round += 1) {
    const met = await client.start(request);
    if (hasEnded(met) || !met.cancelRequested) return met;
    const answer = await wait(met);
    const isUndone = answer.status === 'cancelled' && answer.effect === 'none';
    if (!isUndone || round === ROUNDS_MAX || shutdown.aborted) return answer;
  }
}

/** The arguments of a message that `readMessage` let pass. Throws `invalid_arguments` for what it marked (M1.6). */
export function argumentsOf(args: unknown, caller: Caller): JsonObject {
  refuseInexact(caller.meta);
  if (args === undefined) return {};
  if (typeof args === 'object' && args !== null && !Array.isArray(args)) return args as JsonObject;
  throw new HoldfastError('invalid_arguments', 'The arguments must be an object.', {
    details: { issues: [{ path: '', message: 'is no object', expected: 'an object' }] },
  });
}

/** M5.3: a safe call is aborted with its request, unless it was our own shutdown that cut the connection (M5.4). */
function abandonSafeCall({ client, shutdown, log }: CallParts, started: TaskAnswer, caller: Caller): void {
  if (shutdown.aborted || !caller.abortMeansCancel) return;
  client.cancel(started.taskId, caller.principal, 'the request was cancelled').catch((error: unknown) => {
    log.warn({ taskId: started.taskId, err: error }, 'an abandoned safe call could not be cancelled');
  });
}
