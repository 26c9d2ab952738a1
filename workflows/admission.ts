/**
 * How much a run hands to the engine at once. All activities that one workflow task schedules go out in one message, which
 * the engine refuses for ever when it is above 4 MB (field case 14).
 *
 * Invariants:
 * 1. One workflow task schedules `bytesAtOnceMax` of requests, or a single request.
 * 2. What is not admitted waits for a later one, behind those that came before it.
 * 3. Runs that scheduled more at once, and were not refused, go on as they began.
 */
import { CancellationScope, patched, sleep, workflowInfo } from '@temporalio/workflow';
import { PROCEDURE_LIMITS } from '../src/task/procedure-limits.ts';

/** The command, its options and headers around a request. */
const COMMAND_BYTES = 1_024;

export class Admission {
  #workflowTask = 0;
  #bytes = 0;
  #next: Promise<void> | null = null;

  /** Undefined: it may be scheduled now, and counts. Otherwise ask again then. */
  ask(requestBytes: number): Promise<void> | undefined {
    const { historyLength } = workflowInfo();
    if (historyLength !== this.#workflowTask) this.#bytes = 0;
    this.#workflowTask = historyLength;
    const bytes = this.#bytes + requestBytes + COMMAND_BYTES;
    const isTooMuch = this.#bytes > 0 && bytes > PROCEDURE_LIMITS.bytesAtOnceMax;
    if ((this.#next !== null || isTooMuch) && patched('admission')) return this.#nextTask();
    this.#bytes = bytes;
    return undefined;
  }

  #nextTask(): Promise<void> {
    this.#next ??= CancellationScope.nonCancellable(() => sleep(1)).then(() => {
      this.#next = null;
    });
    return this.#next;
  }
}
