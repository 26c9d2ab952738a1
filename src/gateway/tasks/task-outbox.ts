/**
 * What one listen has yet to be told of its tasks (M2.5).
 *
 * Invariants:
 * 1. Of each task only the latest state waits: what is kept is bounded by the tasks, not by how often they change.
 * 2. One send is under way at a time, so that a slow reader holds the sender up; the tasks take turns.
 * 3. Nothing is sent before `begin`, nothing after `stop` has settled, no state twice in a row, nothing of a task after
 *    its end.
 */
import type { TaskAnswer } from '../../client/task-client.ts';
import { hasEnded } from '../task-answer.ts';

/** A task as it goes onto the wire. */
export type WireTask = Record<string, unknown>;

export interface OutboxParts {
  toWire: (answer: TaskAnswer) => WireTask;
  send: (task: WireTask) => Promise<void>;
}

export class TaskOutbox {
  readonly #parts: OutboxParts;
  readonly #waiting = new Map<string, TaskAnswer>();
  readonly #lastSent = new Map<string, string>();
  readonly #ending = new Set<string>();
  readonly #ended = new Set<string>();
  #isOpen = false;
  #underWay: Promise<void> | null = null;
  #notice: () => void = () => undefined;

  constructor(parts: OutboxParts) {
    this.#parts = parts;
  }

  put(taskId: string, answer: TaskAnswer): void {
    if (this.#ending.has(taskId)) return;
    this.#waiting.set(taskId, answer);
    this.#flush();
  }

  /** Sends what waits, and from now on what comes. */
  begin(): void {
    this.#isOpen = true;
    this.#flush();
  }

  async stop(): Promise<void> {
    this.#isOpen = false;
    await this.#underWay;
  }

  /** Fulfilled when the end of each of `taskIds` was sent, or a send failed: nobody is there any more. */
  done(taskIds: readonly string[]): Promise<void> {
    return new Promise((resolve) => {
      this.#notice = () => {
        if (!this.#isOpen || taskIds.every((taskId) => this.#ended.has(taskId))) resolve();
      };
      this.#notice();
    });
  }

  #flush(): void {
    if (!this.#isOpen || this.#underWay !== null || this.#waiting.size === 0) return;
    this.#underWay = this.#sendWaiting()
      .catch(() => {
        this.#isOpen = false;
      })
      .then(() => {
        this.#underWay = null;
        this.#notice();
        this.#flush();
      });
  }

  async #sendWaiting(): Promise<void> {
    for (const [taskId, answer] of this.#waiting) {
      if (!this.#isOpen) return;
      this.#waiting.delete(taskId);
      const task = this.#parts.toWire(answer);
      if (hasEnded(answer)) await this.#sendEnd(taskId, task);
      else await this.#sendNews(taskId, task);
    }
  }

  async #sendEnd(taskId: string, task: WireTask): Promise<void> {
    this.#ending.add(taskId);
    await this.#parts.send(task);
    this.#ended.add(taskId);
  }

  async #sendNews(taskId: string, task: WireTask): Promise<void> {
    const text = JSON.stringify(task);
    if (this.#lastSent.get(taskId) === text) return;
    this.#lastSent.set(taskId, text);
    await this.#parts.send(task);
  }
}
