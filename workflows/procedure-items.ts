/**
 * What the procedure's code asked for and what it is told, in an order that is the same whenever the code runs (S3.6).
 *
 * Invariants:
 * 1. An outcome is told once for each run of the code, in the order of its record, and only to what the code asked for.
 * 2. Between two outcomes the code comes to rest: what it does upon one, it does before it hears of the next.
 * 3. Code that asks for something else than is on record is stopped by an error, which leaves the task to a worker with
 *    the code it was begun with.
 */
import { StepFailed } from '../src/procedure/step-failed.ts';
import type { Json } from '../src/task/json.ts';
import { usedAgain, usesOf } from '../src/task/procedure-state.ts';
import type { Item, ProcedureState } from '../src/task/procedure-state.ts';

/** Promises of the code's own between what it is told and what it asks for next. */
const TICKS_TO_REST = 24;

interface Waiting {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

export class ProcedureItems {
  readonly #state: () => ProcedureState;
  /** Whether nothing may be told just now: the code is stopped, paused, or about to be run anew. */
  readonly #isHeld: () => boolean;
  readonly #onDefect: (error: unknown) => void;
  #waiting = new Map<string, Waiting>();
  #uses: Record<string, number>;
  #told = 0;
  isTelling = false;

  constructor(state: () => ProcedureState, isHeld: () => boolean, onDefect: (error: unknown) => void) {
    this.#state = state;
    this.#isHeld = isHeld;
    this.#onDefect = onDefect;
    this.#uses = { ...state().usesBefore };
  }

  /** The code runs from the top with nothing told yet. */
  forget(): void {
    this.#waiting = new Map();
    this.#uses = { ...this.#state().usesBefore };
    this.#told = 0;
  }

  /** The name of the next use of `stepId` (S1.2), and what is on record under it. */
  ask(stepId: string): { step: string; known: Item | undefined } {
    this.#uses = usedAgain(this.#uses, stepId);
    const n = usesOf(this.#uses, stepId);
    const step = n === 1 ? stepId : `${stepId}#${n}`;
    return { step, known: this.#state().items.find((item) => item.step === step) };
  }

  /** The code waits for this. */
  wait(step: string): Promise<unknown> {
    const promise = new Promise<unknown>((resolve, reject) => this.#waiting.set(step, { resolve, reject }));
    // Code that never looks at it has decided to go on without it.
    promise.catch(() => undefined);
    this.tell();
    return promise;
  }

  /** Tells what can be told. */
  tell(): void {
    if (this.isTelling || this.#next() === null) return;
    this.isTelling = true;
    this.#tellAll().catch(this.#onDefect);
  }

  async #tellAll(): Promise<void> {
    for (let next = this.#next(); next !== null; next = this.#next()) {
      this.#told += 1;
      const { item, waiting } = next;
      this.#waiting.delete(item.step);
      if (item.outcome?.ok === true) waiting.resolve(valueOf(item.outcome.result));
      else if (item.outcome)
        waiting.reject(new StepFailed(item.step, item.outcome.cause, item.outcome.error));
      for (let tick = 0; tick < TICKS_TO_REST; tick += 1) await Promise.resolve();
    }
    this.isTelling = false;
  }

  #next(): { item: Item; waiting: Waiting } | null {
    if (this.#isHeld()) return null;
    const item = this.#state().items.find(({ order }) => order === this.#told + 1);
    const waiting = item && this.#waiting.get(item.step);
    return waiting === undefined || item === undefined ? null : { item, waiting };
  }
}

/** Parsed anew: what the code does to it changes no record. */
function valueOf(result: Extract<Item['outcome'], { ok: true }>['result']): unknown {
  return result.kind === 'inline' ? (JSON.parse(JSON.stringify(result.value)) as Json) : { ...result };
}
