/**
 * Who still waits for a keyless task of a tool with `onAbandon: 'cancel'` (M5.3). Every gateway says it to the ledger, so
 * that one waiter's leaving never cancels the task of another, wherever that one waits.
 *
 * Invariants:
 * 1. Who waits says so before the wait begins and every third of `abandonMs` until it ends.
 * 2. A task whose handle was answered to anyone is attended for good: `tasks/cancel` alone cancels it.
 * 3. Who cancels the request says so a last time; the task is asked to cancel `abandonMs` later, unless somebody attended it
 *    since. A gateway that shuts down meanwhile asks nothing (M5.4).
 */
import type { TaskAnswer } from '../client/task-client.ts';
import type { OpenRequest } from './open-request.ts';
import { hasEnded } from './task-answer.ts';
import type { WaitParts } from './waiting.ts';

export interface Attendance {
  /** The wait is over, with this answer. Before it is sent. */
  end(answer: TaskAnswer): Promise<void>;
}

export async function attend(parts: WaitParts, taskId: string, request: OpenRequest): Promise<Attendance> {
  const { client, clock, limits, log } = parts;
  const { principal } = request.caller;
  const everyMs = Math.ceil(limits.abandonMs / 3);
  let callOff = (): void => undefined;
  const say = async (how: 'waiting' | 'handed'): Promise<boolean> => {
    try {
      await client.attend(taskId, principal, how);
      return true;
    } catch (error) {
      log.warn({ taskId, err: error }, 'the ledger could not be told who waits for a task');
      return false;
    }
  };
  const goOn = (): void => {
    callOff = clock.after(everyMs, () => {
      goOn();
      void say('waiting');
    });
  };
  const sayHanded = async (): Promise<void> => {
    if (!(await say('handed')) && !parts.shutdown.aborted) clock.after(everyMs, () => void sayHanded());
  };

  await say('waiting');
  if (!request.over.aborted) goOn();
  request.over.addEventListener('abort', () => callOff(), { once: true });
  request.onCancel(() => void abandon(parts, taskId, request));
  return {
    async end(answer) {
      callOff();
      if (!hasEnded(answer)) await sayHanded();
    },
  };
}

async function abandon(parts: WaitParts, taskId: string, { caller }: OpenRequest): Promise<void> {
  const { client, clock, limits, log, shutdown } = parts;
  const { principal } = caller;
  const failed = (error: unknown) =>
    log.warn({ taskId, err: error }, 'an abandoned task could not be cancelled');
  const since = await client.attend(taskId, principal, 'waiting').catch(failed);
  if (since === undefined || shutdown.aborted) return;
  const callOff = clock.after(limits.abandonMs, () => {
    shutdown.removeEventListener('abort', callOff);
    client.cancelUnattended(taskId, principal, since).catch(failed);
  });
  shutdown.addEventListener('abort', callOff, { once: true });
}
