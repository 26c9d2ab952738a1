/**
 * A task's side of the watch over its remote task: the child workflow `remoteTask` is started, told of a cancel and of
 * answers, and looked after.
 *
 * Invariants:
 * 1. There is at most one child an attempt: its id says which, and one that is there already is gone on with.
 * 2. A child that is gone while the task still waits for it is journaled as lost, and the operation is looked at again.
 * 3. The child outlives this run: it continues as new on its own, and ends when nobody is there to be told.
 */
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import {
  ChildWorkflowCancellationType,
  ParentClosePolicy,
  condition,
  getExternalWorkflowHandle,
  startChild,
  workflowInfo,
} from '@temporalio/workflow';
import type { SignalDefinition } from '@temporalio/workflow';
import type { Json } from '../src/task/json.ts';
import type { RemotePhase } from '../src/task/remote-state.ts';
import type { Journal } from './journal.ts';
import {
  WORKFLOW_REMOTE_TASK,
  answerRemoteSignal,
  attendRemoteSignal,
  cancelRemoteSignal,
} from './messages.ts';
import type { remoteTask } from './remote-task.ts';

/** A child that an earlier run began is looked after so often. */
const ATTEND_MS = 600_000;

export class RemoteWatch {
  readonly #journal: Journal;
  /** The attempt whose child this run has begun or found. */
  #attempt: number | null = null;
  #handedOn = new Map<string, Json>();
  #attendedAt = 0;

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  /** Until something was told, the run is due to continue as new, or the clock reads `until`. */
  async follow(attempt: number, until: number | null, isDue: () => boolean): Promise<void> {
    if (!(await this.#begin(attempt))) return;
    const phase = this.#phase(attempt);
    if (phase === null || !(await this.#handOn(phase))) return;
    const { seq } = this.#journal.state;
    const isOver = (): boolean => this.#journal.state.seq !== seq || isDue();
    const attendAt = this.#attendedAt + ATTEND_MS;
    const leftMs = Math.min(until ?? Infinity, attendAt) - Date.now();
    if ((await condition(isOver, Math.max(1, leftMs))) || Date.now() < attendAt) return;
    this.#attendedAt = Date.now();
    await this.#signal(attempt, attendRemoteSignal);
  }

  async cancel(attempt: number): Promise<void> {
    if (!(await this.#begin(attempt)) || !(await this.#signal(attempt, cancelRemoteSignal))) return;
    if (this.#phase(attempt) !== null)
      this.#journal.append({ type: 'remote_cancel_passed', data: { attempt } });
  }

  #phase(attempt: number): RemotePhase | null {
    const { phase } = this.#journal.state;
    return phase.kind === 'remote' && phase.attempt === attempt ? phase : null;
  }

  #childId(attempt: number): string {
    return `${workflowInfo().workflowId}:remote:${this.#journal.state.operationId ?? ''}:${attempt}`;
  }

  async #begin(attempt: number): Promise<boolean> {
    if (this.#attempt === attempt) return true;
    this.#attempt = attempt;
    this.#attendedAt = Date.now();
    this.#handedOn.clear();
    const { operationId, plan } = this.#journal.state;
    const argument = {
      ...{ v: 1 as const, operationId: operationId ?? '', parent: workflowInfo().workflowId, attempt },
      keepResult: (plan?.sensitive.output.length ?? 0) === 0,
    };
    try {
      const child = await startChild<typeof remoteTask>(WORKFLOW_REMOTE_TASK, {
        workflowId: this.#childId(attempt),
        args: [argument],
        parentClosePolicy: ParentClosePolicy.ABANDON,
        cancellationType: ChildWorkflowCancellationType.ABANDON,
      });
      const ended = (): void => this.#lost(attempt);
      void child.result().then(ended, ended);
      return true;
    } catch (error) {
      if (error instanceof WorkflowExecutionAlreadyStartedError)
        return this.#signal(attempt, attendRemoteSignal);
      throw error;
    }
  }

  /** Answers that are not known to be taken, once a run; one that was refused may be followed by another. */
  async #handOn({ attempt, answers }: RemotePhase): Promise<boolean> {
    for (const key of this.#handedOn.keys()) if (!Object.hasOwn(answers, key)) this.#handedOn.delete(key);
    const left = Object.entries(answers).filter(([key, answer]) => this.#handedOn.get(key) !== answer);
    if (left.length === 0) return true;
    for (const [key, answer] of left) this.#handedOn.set(key, answer);
    return this.#signal(attempt, answerRemoteSignal, [Object.fromEntries(left)]);
  }

  /** False: the child is gone. */
  async #signal<Args extends unknown[]>(
    attempt: number,
    signal: SignalDefinition<Args>,
    args?: Args,
  ): Promise<boolean> {
    try {
      await getExternalWorkflowHandle(this.#childId(attempt)).signal(signal, ...((args ?? []) as Args));
      return true;
    } catch {
      this.#lost(attempt);
      return false;
    }
  }

  /** What it told came before its end, so a task that still waits for it was told of none. */
  #lost(attempt: number): void {
    if (this.#phase(attempt) !== null) this.#journal.append({ type: 'remote_lost', data: { attempt } });
  }
}
