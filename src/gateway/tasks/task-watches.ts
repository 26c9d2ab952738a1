/**
 * The tasks that are watched in this gateway, for whoever listens (M2.5).
 *
 * Invariants:
 * 1. A task has one watch here, however many listeners; it is gone with the last of them.
 * 2. A hint says "read", never what is true: all that listeners are told was read after whatever woke the watch.
 * 3. Reads of one task never overlap, and those that hints lead to are `hintReadMs` apart. New listeners don't wait for that.
 * 4. A lost hint costs `pollMs` at most; so does a read that fails, which is logged once until one succeeds.
 * 5. A state that was read fresh is not replaced by a stale one: then no worker answered, and nothing new is known.
 * 6. A task that has ended is read for new listeners alone.
 * 7. `listenReadsMax` tasks are read at one time, however many are watched.
 */
import type { TaskAnswer, TaskClient } from '../../client/task-client.ts';
import type { Clock } from '../../contract/clock.ts';
import { FIXED_GATEWAY_LIMITS } from '../../contract/gateway-limits.ts';
import type { Principal } from '../../task/plan.ts';
import type { GatewayLog } from '../log.ts';
import { hasEnded } from '../task-answer.ts';
import { ReadSlots } from './read-slots.ts';

/** Must not throw and must not block; is told the same state again whenever somebody looked. */
export type TaskListener = (answer: TaskAnswer) => void;

export interface WatchParts {
  client: Pick<TaskClient, 'get' | 'onHint'>;
  clock: Clock;
  log: GatewayLog;
  pollMs: number;
}

export class TaskWatches {
  readonly #parts: WatchParts;
  readonly #slots = new ReadSlots(FIXED_GATEWAY_LIMITS.listenReadsMax.value);
  readonly #watches = new Map<string, Watch>();

  constructor(parts: WatchParts) {
    this.#parts = parts;
  }

  /** Tasks watched just now. */
  get size(): number {
    return this.#watches.size;
  }

  /**
   * Settles once `listener` was told what a read that began after this call found; answers the function that ends it.
   * Rejects as that read does, `task_not_found` for unknown and foreign ids alike, and then nothing is left behind.
   */
  async open(taskId: string, principal: Principal, listener: TaskListener): Promise<() => void> {
    const key = JSON.stringify([principal.tenant, taskId]);
    const watch = this.#watches.get(key) ?? new Watch(this.#parts, this.#slots, taskId, principal);
    this.#watches.set(key, watch);
    const stop = (): void => {
      if (watch.remove(listener) === 0 && this.#watches.get(key) === watch) this.#watches.delete(key);
    };
    try {
      await watch.add(listener);
    } catch (error) {
      stop();
      throw error;
    }
    return stop;
  }
}

interface Joining {
  listener: TaskListener;
  resolve: () => void;
  reject: (error: unknown) => void;
}

class Watch {
  readonly #parts: WatchParts;
  readonly #slots: ReadSlots;
  readonly #taskId: string;
  /** Of the first listener; those of one tenant read alike. */
  readonly #principal: Principal;
  readonly #unsubscribe: () => void;
  readonly #listeners = new Set<TaskListener>();
  #joining: Joining[] = [];
  #last: TaskAnswer | null = null;
  #readAt = -Infinity;
  #isHinted = false;
  #isReading = false;
  #isFailing = false;
  #callOff: () => void = () => undefined;

  constructor(parts: WatchParts, slots: ReadSlots, taskId: string, principal: Principal) {
    this.#parts = parts;
    this.#slots = slots;
    this.#taskId = taskId;
    this.#principal = principal;
    this.#unsubscribe = parts.client.onHint(taskId, () => {
      this.#isHinted = true;
      this.#schedule();
    });
  }

  add(listener: TaskListener): Promise<void> {
    this.#listeners.add(listener);
    return new Promise((resolve, reject) => {
      this.#joining.push({ listener, resolve, reject });
      this.#schedule();
    });
  }

  /** Answers how many are left; with none the watch is over. */
  remove(listener: TaskListener): number {
    this.#listeners.delete(listener);
    if (this.#listeners.size === 0) {
      this.#unsubscribe();
      this.#callOff();
    }
    return this.#listeners.size;
  }

  #schedule(): void {
    this.#callOff();
    if (this.#isReading || this.#listeners.size === 0) return;
    if (this.#joining.length > 0) return this.#begin();
    if (this.#last !== null && hasEnded(this.#last)) return;
    const { clock, pollMs } = this.#parts;
    const restMs =
      this.#readAt + (this.#isHinted ? FIXED_GATEWAY_LIMITS.hintReadMs.value : pollMs) - clock.now();
    if (restMs <= 0) return this.#begin();
    this.#callOff = clock.after(restMs, () => this.#begin());
  }

  #begin(): void {
    this.#isReading = true;
    void this.#slots.with(() => this.#read());
  }

  async #read(): Promise<void> {
    if (this.#listeners.size === 0) {
      this.#isReading = false;
      return;
    }
    this.#isHinted = false;
    this.#readAt = this.#parts.clock.now();
    const joined = this.#joining.splice(0);
    try {
      this.#tell(await this.#parts.client.get(this.#taskId, this.#principal));
      for (const { resolve } of joined) resolve();
    } catch (error) {
      this.#failed(error, joined);
    } finally {
      this.#isReading = false;
      this.#schedule();
    }
  }

  #tell(answer: TaskAnswer): void {
    this.#isFailing = false;
    const isNews = this.#last === null || this.#last.stale || !answer.stale;
    if (isNews) this.#last = answer;
    for (const listener of [...this.#listeners]) listener(this.#last ?? answer);
  }

  #failed(error: unknown, joined: Joining[]): void {
    for (const { listener, reject } of joined) {
      this.#listeners.delete(listener);
      reject(error);
    }
    if (this.#isFailing || this.#listeners.size === 0) return;
    this.#isFailing = true;
    this.#parts.log.warn(
      { taskId: this.#taskId, err: error },
      'a watched task can not be read; it is tried again',
    );
  }
}
