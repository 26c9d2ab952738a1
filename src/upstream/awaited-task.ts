/**
 * A task that a server makes of a call which has no workflow to supervise it (M8.4): waited for as long as the caller waits.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { NEVER } from '../contract/clock.ts';
import { LIMITS } from '../contract/limits.ts';
import type { RemoteStatus, RemoteTaskHandle } from '../contract/remote-server.ts';
import { answerIn } from './answer.ts';
import type { UpstreamCall, UpstreamLine, UpstreamReply } from './upstream.ts';

/** What becomes of a task that nobody waits for any longer. */
type Abandoned = 'is cancelled' | 'goes on';

/**
 * Rejects where its server can't be asked, and when `signal` aborts. One that asks for input is cancelled: nobody could
 * give it any.
 */
export async function endOfTask(
  { remote }: Pick<UpstreamLine, 'remote'>,
  task: RemoteTaskHandle,
  signal: AbortSignal,
  abandoned: Abandoned = 'is cancelled',
): Promise<Exclude<RemoteStatus, { kind: 'working' }>> {
  let { pollIntervalMs } = task;
  let isOver = abandoned === 'goes on';
  try {
    for (;;) {
      await delay(pollMs(pollIntervalMs), undefined, { signal });
      // One failed look ends no undoing that goes on at its server.
      const status = await remote.status(task, signal).catch((error: unknown): RemoteStatus => {
        if (abandoned !== 'goes on' || signal.aborted) throw error;
        return { kind: 'working' };
      });
      if (status.kind !== 'working') {
        isOver = status.kind !== 'input_required';
        return status;
      }
      pollIntervalMs = status.pollIntervalMs ?? pollIntervalMs;
    }
  } finally {
    if (!isOver) void remote.cancel(task, NEVER).catch(() => undefined);
  }
}

/** A call that ends with an answer, or without one, whether its server makes a task of it or not. */
export async function callToEnd(
  line: UpstreamLine,
  call: UpstreamCall,
  abandoned?: Abandoned,
): Promise<Exclude<UpstreamReply, { kind: 'task' }>> {
  const reply = await line.call(call);
  if (reply.kind !== 'task') return reply;
  try {
    const end = await endOfTask(line, reply.task, call.signal, abandoned);
    return end.kind === 'completed'
      ? answerIn(end.result)
      : { kind: 'in_doubt', message: taskEndWords(end.kind) };
  } catch (error) {
    return { kind: 'in_doubt', message: `its task was given up: ${(error as Error).message}` };
  }
}

export const taskEndWords = (kind: string): string =>
  kind === 'input_required'
    ? 'its task asks for input, which can be given only to a tool that is called as a task itself'
    : `its task ended ${kind}`;

/** More than a timer holds would be no pause at all. */
export const pollMs = (asked: number): number =>
  Math.min(Math.max(asked, LIMITS.remotePollMsMin.value), LIMITS.remotePollMsMax.value);
