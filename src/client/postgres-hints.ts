/**
 * Hints between processes over PostgreSQL `LISTEN/NOTIFY` (architecture.md, idea 6), for a ledger on PostgreSQL.
 *
 * Owns one connection of its own, opened by the first hint that is published or the first task that is waited for.
 *
 * Invariants:
 * 1. `publish` and `subscribe` never wait and never throw. What goes wrong here costs latency alone: it is logged once,
 *    until it is well again, and the connection is tried again ever more rarely.
 * 2. In this process a hint is heard at once and once, whatever the connection does.
 * 3. Of each task the latest hint waits. One NOTIFY is under way at a time, at most one each `SEND_INTERVAL_MS`, in a
 *    transaction of its own that waits for no disk: never in one of the ledger's.
 * 4. Nothing waits for a connection that is not there: it would be old when it came.
 * 5. A hint carries a task's id, a number and a status, nothing of what the task is about.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { driverCode } from '../ledger/store-error.ts';
import { createHints } from './hints.ts';
import type { Hint, HintListener, Hints } from './hints.ts';

export interface HintBus extends Hints {
  /** Ends the connection; hints that wait are dropped. Safe to call again. */
  close(): Promise<void>;
}

export interface PostgresHintsOptions {
  /** `postgres://…` of the ledger. A session of its own: a pooler that shares sessions loses what it listens to. */
  url: string;
  log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
}

const CHANNEL = 'holdfast_hints';
const SEND_INTERVAL_MS = 20;
/** The server takes less than 8,000 bytes. */
const PAYLOAD_BYTES_MAX = 7_900;
/** Beyond it hints are lost, as they may be. */
const TASKS_WAITING_MAX = 10_000;
const BOUND_MS = 5_000;
const RETRY_MS = { first: 250, most: 30_000 };

export const openPostgresHints = (options: PostgresHintsOptions): HintBus => new PostgresHints(options);

class PostgresHints implements HintBus {
  readonly #options: PostgresHintsOptions;
  readonly #here = createHints();
  /** Tells our own hints from others'. */
  readonly #origin = randomBytes(9).toString('base64url');
  readonly #waiting = new Map<string, Hint>();
  readonly #closing = new AbortController();
  #client: pg.Client | null = null;
  #connecting: Promise<void> | null = null;
  #sending: Promise<void> | null = null;
  #isListening = false;
  #failures = 0;

  constructor(options: PostgresHintsOptions) {
    this.#options = options;
  }

  publish(taskId: string, seq: number, status?: string): void {
    this.#here.publish(taskId, seq, status);
    this.#connect();
    const isAway = this.#client === null && this.#failures > 0;
    const isFull = this.#waiting.size >= TASKS_WAITING_MAX && !this.#waiting.has(taskId);
    if (isAway || isFull) return;
    this.#waiting.set(taskId, status === undefined ? { seq } : { seq, status });
    this.#send();
  }

  subscribe(taskId: string, listener: HintListener): () => void {
    if (!this.#isListening) {
      this.#isListening = true;
      if (this.#client !== null) this.#listen(this.#client);
    }
    this.#connect();
    return this.#here.subscribe(taskId, listener);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([this.#connecting, this.#sending]);
    const client = this.#client;
    this.#client = null;
    await client?.end().catch(() => undefined);
  }

  #connect(): void {
    if (this.#client !== null || this.#connecting !== null || this.#closing.signal.aborted) return;
    this.#connecting = this.#open().finally(() => {
      this.#connecting = null;
      this.#send();
    });
  }

  /** Until there is a connection, or the bus is closed. */
  async #open(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted && this.#client === null) {
      await this.#pause(this.#failures === 0 ? 0 : retryMs(this.#failures));
      if (signal.aborted) return;
      await this.#tryOnce();
    }
  }

  async #tryOnce(): Promise<void> {
    const client = new pg.Client({
      connectionString: this.#options.url,
      application_name: 'holdfast hints',
      connectionTimeoutMillis: BOUND_MS,
      query_timeout: BOUND_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
    });
    const lost = (error?: unknown): void => this.#lost(client, error);
    client.on('error', lost).on('end', lost);
    client.on('notification', ({ payload }) => this.#hear(payload));
    try {
      await client.connect();
      await client.query('set synchronous_commit = off');
      this.#client = client;
      if (this.#isListening) this.#listen(client);
      if (this.#failures > 0) this.#options.log.info({}, 'hints between processes are heard again');
      this.#failures = 0;
    } catch (error) {
      client.end().catch(() => undefined);
      this.#complain(error);
    }
  }

  #listen(client: pg.Client): void {
    client.query(`listen ${CHANNEL}`).catch((error: unknown) => this.#lost(client, error));
  }

  #lost(client: pg.Client, error: unknown): void {
    if (client !== this.#client) return; // lost before, or closed
    this.#client = null;
    client.end().catch(() => undefined);
    this.#complain(error);
    this.#connect();
  }

  #complain(error: unknown): void {
    this.#waiting.clear();
    this.#failures += 1;
    if (this.#failures > 1) return;
    this.#options.log.warn(
      { driverCode: driverCode(error) },
      'hints between processes are not heard just now; changes are found by polling, later',
    );
  }

  #send(): void {
    if (this.#client === null || this.#sending !== null || this.#waiting.size === 0) return;
    const client = this.#client;
    this.#sending = this.#sendWaiting(client)
      .catch((error: unknown) => this.#lost(client, error))
      .finally(() => {
        this.#sending = null;
        this.#send();
      });
  }

  async #sendWaiting(client: pg.Client): Promise<void> {
    if (this.#closing.signal.aborted) return this.#waiting.clear();
    const payloads = payloadsOf(this.#origin, this.#waiting);
    this.#waiting.clear();
    await client.query('select pg_notify($1, payload) from unnest($2::text[]) as payload', [
      CHANNEL,
      payloads,
    ]);
    await this.#pause(SEND_INTERVAL_MS);
  }

  #hear(payload: string | undefined): void {
    const message = messageIn(payload);
    if (message === null || message.from === this.#origin) return;
    for (const [taskId, seq, status] of message.hints) this.#here.publish(taskId, seq, status);
  }

  async #pause(ms: number): Promise<void> {
    if (ms > 0)
      await delay(ms, undefined, { signal: this.#closing.signal, ref: false }).catch(() => undefined);
  }
}

type Told = [taskId: string, seq: number, status?: string];

interface Message {
  from: string;
  hints: Told[];
}

/** As few as the server's bound allows. */
function payloadsOf(from: string, waiting: ReadonlyMap<string, Hint>): string[] {
  const envelopeBytes = JSON.stringify({ from, hints: [] }).length;
  const payloads: string[] = [];
  let hints: string[] = [];
  let bytes = envelopeBytes;
  const close = (): void => {
    if (hints.length > 0) payloads.push(`{"from":${JSON.stringify(from)},"hints":[${hints.join(',')}]}`);
    hints = [];
    bytes = envelopeBytes;
  };
  for (const [taskId, { seq, status }] of waiting) {
    const hint: Told = status === undefined ? [taskId, seq] : [taskId, seq, status];
    const told = JSON.stringify(hint);
    const more = Buffer.byteLength(told) + 1;
    if (envelopeBytes + more > PAYLOAD_BYTES_MAX) continue;
    if (bytes + more > PAYLOAD_BYTES_MAX) close();
    hints.push(told);
    bytes += more;
  }
  close();
  return payloads;
}

/** Anybody who may connect to the database may notify: what is not ours is nothing. */
function messageIn(payload: string | undefined): Message | null {
  try {
    const message = JSON.parse(payload ?? '') as Message;
    const isOurs = Array.isArray(message.hints) && message.hints.every(isTold);
    return isOurs ? message : null;
  } catch {
    return null;
  }
}

const isTold = (told: unknown): told is Told =>
  Array.isArray(told) &&
  typeof told[0] === 'string' &&
  typeof told[1] === 'number' &&
  (told[2] === undefined || typeof told[2] === 'string');

/** Doubling, half of it jitter: processes that lost one server do not come back as one. */
function retryMs(failures: number): number {
  const capMs = Math.min(RETRY_MS.first * 2 ** (failures - 1), RETRY_MS.most);
  return capMs / 2 + (Math.random() * capMs) / 2;
}
