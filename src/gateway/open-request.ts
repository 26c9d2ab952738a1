/**
 * One request under way: its life (request-life.ts) carried out with a clock, its caller's signal and our shutdown.
 *
 * Guarantees: `over` aborts as soon as nothing is waited for any longer; progress is sent in its time alone; what was to
 * be given up with the request is given up once, when its caller cancels it (M5.3), and never for another reason; and
 * the outcome of `inRequest` is a response, or a rejection that nobody is sent.
 */
import type { Caller } from './caller.ts';
import type { Clock } from '../contract/clock.ts';
import type { GatewayLimits } from './limits.ts';
import { createProgress } from './progress.ts';
import type { ProgressReporter } from './progress.ts';
import { dueAt, isOver, lifeAfter, opened } from './request-life.ts';
import type { Clocks, RequestEnd, RequestEvent, RequestLife } from './request-life.ts';

export interface RequestParts {
  limits: GatewayLimits;
  clock: Clock;
  /** Aborts when this gateway begins to shut down. */
  shutdown: AbortSignal;
  /** Told the one end of each request. */
  requestEnded?: ((end: RequestEnd) => void) | undefined;
}

export interface OpenRequest {
  readonly caller: Caller;
  /** Aborts when a clock ran out, our shutdown began, or the caller left. */
  readonly over: AbortSignal;
  /** M4.2. Says nothing where nobody listens. */
  report(message: string): void;
  /** What a cancel of this request gives up; at once where it came already. */
  onCancel(giveUp: () => void): void;
  /** Rejects work for a caller who has left, with the reason. */
  readonly throwIfLeft: () => void;
}

/** Runs one request to its only end. Rejects with the caller's reason once it has left: no response is sent (M5.2). */
export async function inRequest<T>(
  parts: RequestParts,
  caller: Caller,
  work: (request: OpenRequest) => Promise<T>,
): Promise<T> {
  const request = new RunningRequest(parts, caller);
  const [outcome] = await Promise.allSettled([work(request)]);
  await request.complete();
  if (outcome.status === 'rejected') throw outcome.reason;
  return outcome.value;
}

/** Progress sent of requests by their signal, which stays the same where a handler is entered anew with an answer. */
const progressSent = new WeakMap<AbortSignal, number>();

class RunningRequest implements OpenRequest {
  readonly caller: Caller;
  readonly #clock: Clock;
  readonly #clocks: Clocks;
  readonly #shutdown: AbortSignal;
  readonly #requestEnded: RequestParts['requestEnded'];
  readonly #over = new AbortController();
  readonly #progress: ProgressReporter;
  #life: RequestLife;
  #giveUp: (() => void)[] = [];
  #callOffTimer: (() => void) | null = null;

  constructor({ limits, clock, shutdown, requestEnded }: RequestParts, caller: Caller) {
    this.caller = caller;
    this.#clock = clock;
    this.#clocks = { idleMs: limits.idleMs, maximumMs: limits.blockingMs };
    this.#shutdown = shutdown;
    this.#requestEnded = requestEnded;
    this.#life = opened(clock.now());
    this.#progress = createProgress({
      token: caller.progressToken,
      intervalMs: limits.progressIntervalMs,
      clock,
      sentBefore: progressSent.get(caller.signal) ?? 0,
      send: async (params) => {
        if (this.#happens({ kind: 'progress' }).kind !== 'open') return;
        progressSent.set(caller.signal, params.progress);
        await caller.sendProgress(params);
      },
    });
    caller.signal.addEventListener('abort', this.#onLeave);
    shutdown.addEventListener('abort', this.#onShutdown);
    if (shutdown.aborted) this.#onShutdown();
    if (caller.signal.aborted) this.#onLeave();
    this.#setTimer();
  }

  get over(): AbortSignal {
    return this.#over.signal;
  }

  report(message: string): void {
    this.#progress.report(message);
  }

  onCancel(giveUp: () => void): void {
    if (this.#life.kind === 'left' && this.#life.isCancel) giveUp();
    else this.#giveUp.push(giveUp);
  }

  readonly throwIfLeft = (): void => {
    if (this.#life.kind === 'left') this.caller.signal.throwIfAborted();
  };

  /** Its progress has fallen silent when the response may go. */
  async complete(): Promise<void> {
    await this.#progress.stop();
    this.#happens({ kind: 'completion' });
    this.throwIfLeft();
  }

  readonly #onLeave = (): void => {
    const { signal } = this.caller;
    this.#happens({ kind: 'leaving', isCancel: this.caller.abortMeansCancel(signal.reason) });
  };

  readonly #onShutdown = (): void => {
    this.#happens({ kind: 'shutdown' });
  };

  #happens(event: RequestEvent): RequestLife {
    const before = this.#life;
    this.#life = lifeAfter(before, event, this.#clock.now(), this.#clocks);
    // Also where nothing changed: a timer may fire before its time, and there is no other.
    this.#setTimer();
    if (this.#life === before) return before;
    if (before.kind === 'open' && this.#life.kind !== 'open') {
      this.#over.abort(this.#life);
      void this.#progress.stop();
    }
    if (isOver(this.#life)) this.#end(this.#life);
    return this.#life;
  }

  #end(life: RequestEnd): void {
    this.caller.signal.removeEventListener('abort', this.#onLeave);
    this.#shutdown.removeEventListener('abort', this.#onShutdown);
    const givenUp = this.#giveUp.splice(0);
    this.#requestEnded?.(life);
    if (life.kind === 'left' && life.isCancel) for (const giveUp of givenUp) giveUp();
  }

  #setTimer(): void {
    this.#callOffTimer?.();
    const due = dueAt(this.#life, this.#clocks);
    this.#callOffTimer =
      due === null ? null : this.#clock.after(due - this.#clock.now(), () => this.#happens({ kind: 'time' }));
  }
}
