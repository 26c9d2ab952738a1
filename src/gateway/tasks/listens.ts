/**
 * The open listens of this gateway (M2.5), whatever they came over.
 *
 * Invariants:
 * 1. Acknowledged ids are the caller's own tasks. All others are left out, and whether one exists can't be told.
 * 2. The acknowledgement comes first, then the state of each task as read after the listen came, then each change.
 * 3. A principal has `listensMax` open here at most, and one names `listenTaskIdsMax` tasks at most.
 * 4. A listen is over when its caller leaves, its token expires, its tasks have ended, or this gateway shuts down; no
 *    task is touched by it.
 */
import type { TaskAnswer, TaskClient } from '../../client/task-client.ts';
import { HoldfastError } from '../../contract/error.ts';
import { followSignals } from '../../contract/follow-signals.ts';
import type { Principal } from '../../task/plan.ts';
import type { Caller } from '../caller.ts';
import type { Clock } from '../../contract/clock.ts';
import { invalidParams } from '../error-mapping.ts';
import type { GatewayLimits } from '../limits.ts';
import type { GatewayLog } from '../log.ts';
import { Places } from '../places.ts';
import type { Leave } from '../places.ts';
import { TaskOutbox } from './task-outbox.ts';
import type { WireTask } from './task-outbox.ts';
import { TaskWatches } from './task-watches.ts';
import { detailedTask } from './wire-task.ts';

export interface ListenParts {
  client: TaskClient;
  limits: GatewayLimits;
  clock: Clock;
  log: GatewayLog;
  /** Aborts when this gateway begins to shut down. */
  shutdown: AbortSignal;
}

/** Where one listen's messages go. */
export interface ListenPeer {
  acknowledge(taskIds: string[]): Promise<void>;
  send(task: WireTask): Promise<void>;
}

export interface Listener extends Pick<Caller, 'principal' | 'canElicit' | 'signal'> {
  /** How long the token is good that it came with. Default: for good. */
  tokenMs?: number;
}

export class TaskListens {
  readonly #parts: ListenParts;
  readonly #watches: TaskWatches;
  readonly #places: Places;

  constructor(parts: ListenParts) {
    this.#parts = parts;
    this.#places = new Places(parts.limits.listensMax);
    this.#watches = new TaskWatches({ ...parts, pollMs: parts.limits.listenPollMs });
  }

  /** Tasks watched just now; 0 proves that nothing was left behind. */
  get watched(): number {
    return this.#watches.size;
  }

  /** Settles when the listen is over. Throws `too_many_listens`, and what a read of its tasks throws. */
  async serve(taskIds: readonly string[], listener: Listener, peer: ListenPeer): Promise<void> {
    const { limits, shutdown, clock } = this.#parts;
    const asked = [...new Set(taskIds)];
    if (asked.length > limits.listenTaskIdsMax)
      throw invalidParams(`A listen names ${limits.listenTaskIdsMax} tasks at most; open another one.`);
    const leave = this.#enter(listener.principal);
    const over = followSignals([listener.signal, shutdown]);
    const callOff = clock.after(listener.tokenMs ?? Number.POSITIVE_INFINITY, () => over.abort());
    const outbox = new TaskOutbox({
      toWire: (answer) => detailedTask(answer, listener),
      send: (task) => peer.send(task),
    });
    const stops: (() => void)[] = [];
    const watch = async (taskId: string): Promise<string | null> => {
      try {
        const told = (answer: TaskAnswer) => outbox.put(taskId, answer);
        stops.push(await this.#watches.open(taskId, listener.principal, told));
        return taskId;
      } catch (error) {
        if (error instanceof HoldfastError && error.code === 'task_not_found') return null;
        throw error;
      }
    };
    try {
      const own = (await allOf(asked.map(watch))).filter((taskId) => taskId !== null);
      if (over.signal.aborted) return;
      await peer.acknowledge(own);
      outbox.begin();
      await Promise.race([outbox.done(own), aborted(over.signal)]);
    } finally {
      callOff();
      over.release();
      for (const stop of stops) stop();
      leave();
      await outbox.stop();
    }
  }

  #enter(principal: Principal): Leave {
    const leave = this.#places.take(principal);
    if (leave !== null) return leave;
    const { listensMax } = this.#parts.limits;
    throw new HoldfastError(
      'too_many_listens',
      `${listensMax} listens are open here for this principal; end one, or name more tasks in one.`,
      { details: { listensMax } },
    );
  }
}

/** As `Promise.all`, but waits for all of them: none is left under way when one fails. */
async function allOf<T>(work: Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(work);
  return Promise.all(work);
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
