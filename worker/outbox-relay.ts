/**
 * Delivers alerts from the ledger's outbox to a person's side of the world (S6.5, S9).
 *
 * Invariants:
 * 1. A message is marked sent only after the sink took it; whatever happens in between, it is delivered again.
 *    So a sink sees each alert at least once, and may see one twice (same `id`).
 * 2. Relays of several processes share the outbox: who holds the lease and its token may mark it.
 * 3. A sink that fails delays delivery, never ends it: full jitter up to a minute, for ever.
 * 4. One message at a time; nothing is held in memory beyond one batch.
 */
import type { Alert, Ledger, OutboxMessage } from '../src/ledger/ledger.ts';
import type { Log } from './logger.ts';

/** Must be idempotent by `message.id` where a repeat would matter. Throws to have it delivered again. */
export interface AlertSink {
  deliver(message: { id: number; alert: Alert; createdAt: number }, signal: AbortSignal): Promise<void>;
}

export interface OutboxRelayOptions {
  ledger: Ledger;
  log: Log;
  /** Default: a line in the structured log. */
  sink?: AlertSink;
  /** How often to look without being woken: alerts of other processes, leases that ran out. Default 5 s. */
  idleMs?: number;
  /** Delivery of one message is aborted after this. Default 10 s. */
  deliveryMs?: number;
  random?: () => number;
}

/** Small, as its lease bounds how long a relay that died keeps its messages from the others. */
const BATCH = 5;
const BACKOFF_INITIAL_MS = 500;
const BACKOFF_MAXIMUM_MS = 60_000;
/** Above a whole batch's deliveries, so that a lease only runs out when its holder died. */
const LEASE_MARGIN_MS = 10_000;

export class OutboxRelay {
  readonly #options: Required<OutboxRelayOptions>;
  readonly #stop = new AbortController();
  #wake: () => void = () => undefined;
  #isWoken = false;
  #failures = 0;
  #loop: Promise<void> | null = null;

  constructor(options: OutboxRelayOptions) {
    this.#options = {
      sink: logSink(options.log),
      idleMs: 5_000,
      deliveryMs: 10_000,
      random: Math.random,
      ...options,
    };
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  /** Ends after the message being delivered; the rest of its batch is given back by the lease. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#wake();
    await this.#loop;
  }

  async #run(): Promise<void> {
    const unsubscribe = this.#options.ledger.onOutbox(() => {
      this.#isWoken = true;
      this.#wake();
    });
    try {
      while (!this.#stop.signal.aborted) {
        const delivered = await this.#deliverBatch();
        if (delivered === BATCH || this.#stop.signal.aborted) continue;
        await this.#pause();
      }
    } finally {
      unsubscribe();
    }
  }

  /** Answers how many were delivered. */
  async #deliverBatch(): Promise<number> {
    const { ledger, log, deliveryMs } = this.#options;
    this.#isWoken = false;
    let delivered = 0;
    let refused = 0;
    try {
      for (const message of await ledger.claimOutbox(BATCH, BATCH * deliveryMs + LEASE_MARGIN_MS)) {
        if (this.#stop.signal.aborted) {
          await ledger.giveBack(message.id, message.token, 'the worker is stopping');
        } else if (await this.#deliver(message)) delivered += 1;
        else refused += 1;
      }
      this.#failures = refused === 0 ? 0 : this.#failures + 1;
    } catch (error) {
      this.#failures += 1;
      log.error({ err: error }, 'the outbox can not be read; alerts wait in the ledger');
    }
    return delivered;
  }

  async #deliver(message: OutboxMessage): Promise<boolean> {
    const { ledger, log, sink, deliveryMs } = this.#options;
    const { id, alert, createdAt, token } = message;
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(deliveryMs)]);
    try {
      await untilAborted(sink.deliver({ id, alert, createdAt }, signal), signal);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      log.warn(
        { outboxId: id, taskId: alert.taskId, attempts: message.attempts, why },
        'an alert could not be delivered; it will be again',
      );
      await ledger.giveBack(id, token, why.slice(0, 500));
      return false;
    }
    const isMarked = await ledger.markSent(id, token);
    if (!isMarked)
      log.warn(
        { outboxId: id, taskId: alert.taskId },
        'an alert was delivered after its lease: it may be delivered twice',
      );
    return true;
  }

  /** Until there may be something to do. A failing sink is not hurried by new alerts. */
  async #pause(): Promise<void> {
    const { idleMs, random } = this.#options;
    const isFailing = this.#failures > 0;
    if (this.#isWoken && !isFailing) return;
    const cap = Math.min(BACKOFF_MAXIMUM_MS, BACKOFF_INITIAL_MS * 2 ** Math.min(this.#failures, 10));
    const waitMs = isFailing ? Math.max(50, random() * cap) : idleMs;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, waitMs);
      this.#wake = () => {
        if (isFailing && !this.#stop.signal.aborted) return;
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = () => undefined;
  }
}

/** A sink that ignores its signal does not hold the relay. */
function untilAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(new Error('the delivery took too long'));
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

export function logSink(log: Log): AlertSink {
  return {
    async deliver({ id, alert, createdAt }) {
      log.error({ outboxId: id, createdAt, alert }, `alert: ${alert.message}`);
    },
  };
}
