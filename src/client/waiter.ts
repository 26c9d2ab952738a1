/**
 * Waits for a task without polling where a push serves: the engine's own long poll for the result, hints of workers in
 * this process, and a slow look at the ledger for whatever neither of them told.
 *
 * Bounds: one long poll, one timer and one subscription for each wait; all gone when it ends.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { isCode } from './client-deps.ts';
import type { ClientDeps } from './client-deps.ts';
import type { ResultAnswer } from './engine.ts';
import type { Hint } from './hints.ts';
import type { Reader } from './reader.ts';
import { factsOfOutcome } from './task-facts.ts';
import type { TaskFacts } from './task-facts.ts';
import { isTerminal } from '../task/outcome.ts';

export interface WaitOptions {
  timeoutMs: number;
  signal?: AbortSignal;
  onChange?: (facts: TaskFacts) => void;
}

/** A task that ends sooner is never queried: its result comes by itself. */
const FIRST_LOOK_MS = 150;
const SAFETY_POLL_MS = 2_000;
/** The ledger knows of trouble before the workflow does; its state follows within moments. */
const SOON_MS = 100;
/** One long poll at most, so that none outlives its wait for long. */
const LONG_POLL_MS = 20_000;
const RESULT_RETRY_MS = 1_000;
/**
 * With a worker in this process most ends are heard from it. What another worker ended is first looked for in the ledger,
 * at growing intervals, and only then waited for in the engine: a row costs far less than a long poll.
 */
const LEDGER_LOOK_MS = 500;
const POLL_LATER_MS = 2_000;
/** Hints come in bursts, one for each event; readers are told at most this often. */
const CHANGE_INTERVAL_MS = 50;
const MAY_WAIT_FOR_PERSON: ReadonlySet<string> = new Set(['needs_attention', 'awaiting_approval']);

type Wake =
  | { kind: 'result'; answer: ResultAnswer }
  | { kind: 'hint'; hint: Hint }
  | { kind: 'timer' }
  | { kind: 'over' };

export class Waiter {
  readonly #deps: ClientDeps;
  readonly #reader: Reader;

  constructor(deps: ClientDeps, reader: Reader) {
    this.#deps = deps;
    this.#reader = reader;
  }

  /** Until the task ended, needs a person, the time is over or the signal aborts; the facts of that moment. */
  async wait(taskId: string, tenant: string, options: WaitOptions): Promise<TaskFacts> {
    const row = await this.#reader.ownRow(taskId, tenant); // also: may this tenant wait for it at all?
    const isKnownToRun = row !== null && row.end === null && row.state !== 'attention';
    const first =
      isKnownToRun && options.timeoutMs > FIRST_LOOK_MS
        ? null
        : (await this.#reader.read(taskId, tenant)).facts;
    if (first !== null && (isSettled(first) || options.timeoutMs <= 0)) return first;
    const watch = new Watch(this.#deps, taskId, options);
    try {
      return await this.#follow(taskId, tenant, options, watch, first);
    } finally {
      watch.end();
    }
  }

  async #follow(
    taskId: string,
    tenant: string,
    options: WaitOptions,
    watch: Watch,
    first: TaskFacts | null,
  ): Promise<TaskFacts> {
    let last = first;
    if (last !== null) options.onChange?.(last);
    for (let lookMs = this.#firstLookMs(options, last); ;) {
      const isSlow = lookMs >= SAFETY_POLL_MS;
      const wake = await watch.next(lookMs);
      if (wake.kind === 'over') return (await this.#reader.read(taskId, tenant)).facts;
      if (wake.kind === 'result' && wake.answer.kind === 'ended')
        return this.#ended(taskId, tenant, wake.answer);
      lookMs = options.onChange ? SAFETY_POLL_MS : Math.min(2 * lookMs, SAFETY_POLL_MS);
      if (!(await this.#isWorthReading(taskId, wake, options, isSlow))) continue;
      const { facts, row } = await this.#reader.read(taskId, tenant);
      if (isSettled(facts)) return facts;
      if (row?.state === 'attention') lookMs = SOON_MS;
      if (last === null || facts.updatedAt !== last.updatedAt || facts.status !== last.status)
        options.onChange?.(facts);
      last = facts;
      if (wake.kind === 'hint') await watch.pause(CHANGE_INTERVAL_MS);
    }
  }

  #firstLookMs({ onChange }: WaitOptions, last: TaskFacts | null): number {
    if (onChange) return last === null ? FIRST_LOOK_MS : SAFETY_POLL_MS;
    return this.#deps.hearsEnds ? LEDGER_LOOK_MS : SAFETY_POLL_MS;
  }

  /** Reading asks a worker; without someone to tell, only a change that could end the wait is worth that. */
  async #isWorthReading(taskId: string, wake: Wake, options: WaitOptions, isSlow: boolean): Promise<boolean> {
    if (options.onChange !== undefined || wake.kind === 'result') return true;
    if (wake.kind !== 'hint') return this.#isNewInLedger(taskId, isSlow);
    const { status } = wake.hint;
    return status === undefined || MAY_WAIT_FOR_PERSON.has(status) || isTerminal(status);
  }

  /**
   * A row that is still only reserved says nothing of an approval: where the contract may ask for one, a slow look asks
   * the worker. Asking about every task that has not begun would load the very worker that keeps it waiting.
   */
  async #isNewInLedger(taskId: string, isSlow: boolean): Promise<boolean> {
    try {
      const row = await this.#deps.ledger.findByTask(taskId);
      if (row === null || row.end !== null || row.state === 'attention') return true;
      const contract = this.#deps.actions.get(row.action)?.contract;
      const mayAskPerson = contract === undefined || contract.approval !== undefined;
      return isSlow && row.state === 'reserved' && mayAskPerson;
    } catch (error) {
      if (isCode(error, 'ledger_unavailable')) return true;
      throw error;
    }
  }

  /** What the workflow returned, with the row's times where there is a row. */
  async #ended(
    taskId: string,
    tenant: string,
    { outcome }: Extract<ResultAnswer, { kind: 'ended' }>,
  ): Promise<TaskFacts> {
    const row = await this.#reader.ownRow(taskId, tenant);
    const now = this.#deps.now();
    return factsOfOutcome(outcome, tenant, {
      createdAt: row?.createdAt ?? now,
      updatedAt: row?.updatedAt ?? now,
    });
  }
}

/** Waiting longer moves nothing: the task has ended, or a person is asked (and no cancel will end that in a moment). */
export function isSettled({ status, approval, cancelRequested }: TaskFacts): boolean {
  return isTerminal(status) || status === 'needs_attention' || (approval !== null && !cancelRequested);
}

/** Everything that may wake one wait. */
class Watch {
  readonly #deps: ClientDeps;
  readonly #taskId: string;
  readonly #deadline: number;
  readonly #ended = new AbortController();
  readonly #unsubscribe: () => void;
  readonly #signal: AbortSignal | undefined;
  #pending: Wake | null = null;
  #wake: () => void = () => undefined;

  constructor(deps: ClientDeps, taskId: string, { timeoutMs, signal }: WaitOptions) {
    this.#deps = deps;
    this.#taskId = taskId;
    this.#deadline = deps.now() + timeoutMs;
    this.#signal = signal;
    this.#unsubscribe = deps.hints.subscribe(taskId, (hint) => this.#offer({ kind: 'hint', hint }));
    signal?.addEventListener('abort', this.#onAbort, { once: true });
    void this.#pollResult();
  }

  /** The next reason to look, at the latest after `lookMs`. */
  async next(lookMs: number): Promise<Wake> {
    if (this.#signal?.aborted) return { kind: 'over' };
    const left = this.#deadline - this.#deps.now();
    if (this.#pending === null && left > 0) await this.#sleep(Math.min(lookMs, left));
    const wake = this.#pending;
    this.#pending = null;
    if (wake !== null) return wake;
    return this.#deadline - this.#deps.now() <= 0 ? { kind: 'over' } : { kind: 'timer' };
  }

  /** Lets hints gather. A result or the end of the wait cuts it short. */
  async pause(ms: number): Promise<void> {
    const until = this.#deps.now() + ms;
    while (this.#deps.now() < until && (this.#pending === null || this.#pending.kind === 'hint')) {
      await this.#sleep(Math.max(1, until - this.#deps.now()));
    }
  }

  end(): void {
    this.#ended.abort();
    this.#unsubscribe();
    this.#signal?.removeEventListener('abort', this.#onAbort);
  }

  readonly #onAbort = (): void => this.#offer({ kind: 'over' });

  /** Keeps the weightiest reason: the end of the wait, then a result, then the latest hint. */
  #offer(wake: Wake): void {
    const weight = { timer: 0, hint: 1, result: 2, over: 3 };
    if (this.#pending === null || weight[wake.kind] >= weight[this.#pending.kind]) this.#pending = wake;
    this.#wake();
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async #pollResult(): Promise<void> {
    const { signal } = this.#ended;
    if (this.#deps.hearsEnds) await delay(POLL_LATER_MS, undefined, { signal }).catch(() => undefined);
    while (!signal.aborted && this.#deps.now() < this.#deadline) {
      const until = Math.min(this.#deadline, this.#deps.now() + LONG_POLL_MS);
      const answer = await this.#deps.engine.result(this.#taskId, until, signal).catch(() => null);
      if (signal.aborted) return;
      // The engine is away, or the task reserved and not started yet.
      if (answer === null || answer.kind === 'absent')
        await delay(RESULT_RETRY_MS, undefined, { ref: false });
      else if (answer.kind !== 'open') return this.#offer({ kind: 'result', answer });
    }
  }
}
