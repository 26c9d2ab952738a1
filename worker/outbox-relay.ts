/**
 * Delivers alerts from the ledger's outbox to a person's side of the world (S6.5, S9).
 *
 * A part of every worker, not a workflow: all that delivery needs to survive (message, claim, next try, dead letter) is
 * in the ledger, committed with what it announces. A workflow would keep the same a second time, at several billed
 * actions an alert, and could tell nobody that Temporal is away.
 *
 * Invariants:
 * 1. A message is marked sent only after the sink took it; whatever happens in between, it is delivered again.
 *    So a sink sees each alert at least once, and may see one twice (same `id`).
 * 2. Relays of several processes share the outbox: who holds the lease and its token may say what became of a message.
 * 3. A failed delivery is tried again, ever more rarely, until its tries are spent; then it is a dead letter, kept in
 *    the ledger for a person to have delivered again. One that fails never holds up the others.
 * 4. One message at a time; nothing is held in memory beyond one batch.
 * 5. Woken by what this process commits and by the time the next try is due; looks besides only for what a process
 *    committed that died before it delivered.
 */
import { LIMITS } from '../src/contract/limits.ts';
import type { Alert, Ledger, OutboxMessage } from '../src/ledger/ledger.ts';
import type { Log } from './logger.ts';
import type { AlertFate } from './metrics.ts';

/** Must be idempotent by `message.id` where a repeat would matter. Throws to have it delivered again. */
export interface AlertSink {
  deliver(message: { id: number; alert: Alert; createdAt: number }, signal: AbortSignal): Promise<void>;
}

/** Thrown by a sink that knows when it will take the message. The message is stored: no secret in it. */
export class NotDelivered extends Error {
  readonly retryAfterMs: number;
  constructor(why: string, retryAfterMs = 0) {
    super(why);
    this.retryAfterMs = retryAfterMs;
  }
}

export interface OutboxRelayOptions {
  ledger: Ledger;
  log: Log;
  /** Default: a line in the structured log. */
  sink?: AlertSink;
  /** How often to look without being woken. Default 15 s. */
  idleMs?: number;
  /** Delivery of one message is aborted after this. Default 10 s. */
  deliveryMs?: number;
  /** The wait after the first failed try; doubles up to an hour. Default 1 s. */
  retryMs?: number;
  /** Default: `LIMITS.alertAttemptsMax`. */
  attemptsMax?: number;
  random?: () => number;
  /** Told what became of each delivery. */
  told?: (fate: AlertFate) => void;
}

/** Small, as its lease bounds how long a relay that died keeps its messages from the others. */
const BATCH = 5;
const RETRY_MAXIMUM_MS = 3_600_000;
/** Between two looks at a ledger that does not answer. */
const LEDGER_BACKOFF_MS = { initial: 500, maximum: 60_000, minimum: 50 };
/** Above a whole batch's deliveries, so that a lease only runs out when its holder died. */
const LEASE_MARGIN_MS = 10_000;

/** Half of the doubled wait is certain, half is jitter; never sooner than the sink asked for. */
export function retryDelayMs(
  attempts: number,
  { retryMs, retryAfterMs, random }: { retryMs: number; retryAfterMs: number; random: () => number },
): number {
  const capMs = Math.min(retryMs * 2 ** Math.min(attempts - 1, 30), RETRY_MAXIMUM_MS);
  return Math.max(Math.floor(capMs / 2 + (random() * capMs) / 2), retryAfterMs);
}

export class OutboxRelay {
  readonly #options: Required<OutboxRelayOptions>;
  readonly #stop = new AbortController();
  #wake: () => void = () => undefined;
  #isWoken = false;
  #ledgerFailures = 0;
  #loop: Promise<void> | null = null;

  constructor(options: OutboxRelayOptions) {
    this.#options = {
      sink: logSink(options.log),
      idleMs: 15_000,
      deliveryMs: 10_000,
      retryMs: 1_000,
      attemptsMax: LIMITS.alertAttemptsMax.value,
      random: Math.random,
      told: () => undefined,
      ...options,
    };
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  /** Ends after the message being delivered; the rest of its batch is given back. */
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
        const waitMs = await this.#round();
        if (waitMs > 0 && !this.#stop.signal.aborted) await this.#pause(waitMs);
      }
    } finally {
      unsubscribe();
    }
  }

  /** Delivers one batch of what is due; answers how long nothing will be. */
  async #round(): Promise<number> {
    const { ledger, log, idleMs, deliveryMs } = this.#options;
    this.#isWoken = false;
    try {
      const dueMs = await ledger.outboxDueMs();
      this.#ledgerFailures = 0;
      if (dueMs === null || dueMs > 0) return Math.min(dueMs ?? idleMs, idleMs);
      for (const message of await ledger.claimOutbox(BATCH, BATCH * deliveryMs + LEASE_MARGIN_MS)) {
        if (this.#stop.signal.aborted) await ledger.giveBack(message.id, message.token, null, 0);
        else await this.#handle(message);
      }
      return 0;
    } catch (error) {
      log.error({ err: error }, 'the outbox can not be read; alerts wait in the ledger');
      this.#ledgerFailures += 1;
      return this.#ledgerBackoffMs();
    }
  }

  #ledgerBackoffMs(): number {
    const { initial, maximum, minimum } = LEDGER_BACKOFF_MS;
    const capMs = Math.min(maximum, initial * 2 ** Math.min(this.#ledgerFailures, 10));
    return Math.max(minimum, this.#options.random() * capMs);
  }

  async #handle(message: OutboxMessage): Promise<void> {
    const { ledger, log, attemptsMax, told } = this.#options;
    const { id, token, attempts, alert } = message;
    // Claimed so often and never answered for: it may be what ends the processes that deliver it.
    const failed =
      attempts > attemptsMax ? new NotDelivered('its deliveries never ended') : await this.#deliver(message);
    const about = { outboxId: id, taskId: alert.taskId, attempts };
    if (failed === null) {
      told('delivered');
      if (await ledger.markSent(id, token)) return;
      log.warn(about, 'an alert was delivered after its lease: it may be delivered twice');
    } else if (this.#stop.signal.aborted) {
      await ledger.giveBack(id, token, null, 0);
    } else if (attempts >= attemptsMax) {
      await ledger.bury(id, token, failed.message);
      told('dead');
      log.error({ ...about, why: failed.message }, 'an alert is given up: `holdfast alerts retry` sends it');
    } else {
      const delayMs = retryDelayMs(attempts, { ...this.#options, retryAfterMs: failed.retryAfterMs });
      await ledger.giveBack(id, token, failed.message, delayMs);
      told('failed');
      log.warn(
        { ...about, delayMs, why: failed.message },
        'an alert could not be delivered; it will be again',
      );
    }
  }

  /** Null: the sink took it. */
  async #deliver({ id, alert, createdAt }: OutboxMessage): Promise<NotDelivered | null> {
    const { sink, deliveryMs } = this.#options;
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(deliveryMs)]);
    try {
      await untilAborted(sink.deliver({ id, alert, createdAt }, signal), signal);
      return null;
    } catch (error) {
      if (error instanceof NotDelivered) return error;
      return new NotDelivered(error instanceof Error ? error.message : String(error));
    }
  }

  async #pause(waitMs: number): Promise<void> {
    if (this.#isWoken && this.#ledgerFailures === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, waitMs);
      this.#wake = () => {
        // A ledger that does not answer is not hurried by new alerts.
        if (this.#ledgerFailures > 0 && !this.#stop.signal.aborted) return;
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
