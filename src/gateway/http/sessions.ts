/**
 * Sessions of 2025's clients over Streamable HTTP: one connection's memory between requests, without which neither a
 * question to a person nor a cancel could reach the other side.
 *
 * Owns: the sessions of this gateway, in memory. Tasks know nothing of them.
 *
 * Invariants:
 * 1. A session is its opener's: for anybody else, and for the same subject with other roles, its id is unknown.
 * 2. One that ended, expired or was another gateway's is unknown too; its client then initializes anew.
 * 3. A principal has at most `legacySessionsMax`. One more ends the one that has been idle longest; where calls are
 *    under way in all of them, the newcomer is served without a session.
 * 4. One in which nothing was open for `legacySessionIdleMs` is ended. A call is open until it has ended, whether its
 *    client is still there or not; without a client for `legacySessionIdleMs` at most.
 * 5. Ending a session ends waits, never a task (M5.3).
 */
import { randomBytes } from 'node:crypto';
import { PROTOCOL_VERSION_META_KEY } from '@modelcontextprotocol/server';
import type { AuthInfo, McpServer } from '@modelcontextprotocol/server';
import { isJsonObject } from '../../task/json.ts';
import type { Json } from '../../task/json.ts';
import type { Principal } from '../../task/plan.ts';
import { pause } from '../../contract/clock.ts';
import type { Clock } from '../../contract/clock.ts';
import type { GatewayLimits } from '../limits.ts';
import { SessionTransport } from './session-transport.ts';

export interface SessionParts {
  /** A server for one connection of a 2025 client. */
  serverFor(principal: Principal): McpServer | Promise<McpServer>;
  limits: Pick<GatewayLimits, 'legacySessionsMax' | 'legacySessionIdleMs' | 'keepAliveMs'>;
  clock: Clock;
}

/** What serves one HTTP request, as the SDK's own handlers do. */
export interface SessionFace {
  fetch(request: Request, options?: { authInfo?: AuthInfo; parsedBody?: Json }): Promise<Response>;
}

export interface Session {
  /**
   * Serves one HTTP request. Settles when both `work` and what came with the request have ended. Until then the session
   * stays open; calls also keep it from making room for another.
   */
  during<T>(kind: 'call' | 'stream', work: (face: SessionFace) => Promise<T>): Promise<T>;
}

export interface Sessions {
  /** Null: unknown, for this principal. */
  find(id: string, principal: Principal): Session | null;
  /** For an `initialize`. Null: serve it without. */
  open(principal: Principal): Promise<Session | null>;
  readonly size: number;
  close(): Promise<void>;
}

const ID_BYTES = 24;

export function createSessions({ serverFor, limits, clock }: SessionParts): Sessions {
  /** By id, least recently used first. */
  const held = new Map<string, HeldSession>();
  return {
    find(id, principal) {
      const session = held.get(id);
      return session?.owner === ownerOf(principal) ? session : null;
    },
    async open(principal) {
      const server = await serverFor(principal);
      const owner = ownerOf(principal);
      const own = [...held.values()].filter((session) => session.owner === owner);
      const isFull = own.length >= limits.legacySessionsMax;
      const longestIdle = own.find(({ isIdle }) => isIdle);
      if (isFull && longestIdle === undefined) return null;
      // No turn between count and entry: two newcomers would both find room for one.
      const ended = isFull ? longestIdle?.end() : undefined;
      const session = new HeldSession(owner, held, { limits, clock });
      await ended;
      await session.connect(server);
      return session;
    },
    get size() {
      return held.size;
    },
    async close() {
      await Promise.all([...held.values()].map((session) => session.end()));
    },
  };
}

class HeldSession implements Session {
  readonly id = randomBytes(ID_BYTES).toString('base64url');
  readonly owner: string;
  #calls = 0;
  #streams = 0;
  #usedAt: number;
  #callOff: () => void = () => undefined;
  readonly #all: Map<string, HeldSession>;
  readonly #clock: Clock;
  readonly #idleMs: number;
  readonly #transport: SessionTransport;

  constructor(
    owner: string,
    all: Map<string, HeldSession>,
    { limits, clock }: Pick<SessionParts, 'limits' | 'clock'>,
  ) {
    this.owner = owner;
    this.#all = all;
    this.#clock = clock;
    this.#idleMs = limits.legacySessionIdleMs;
    this.#usedAt = clock.now();
    this.#transport = new SessionTransport({
      sessionIdGenerator: () => this.id,
      keepAliveMs: limits.keepAliveMs,
    });
    all.set(this.id, this);
    this.#expireAfter(this.#idleMs);
  }

  /** Nothing is under way that would be cut; its `initialize` included. */
  get isIdle(): boolean {
    return this.#calls === 0 && this.#transport.sessionId !== undefined;
  }

  async connect(server: McpServer): Promise<void> {
    await server.connect(this.#transport);
    const closed = this.#transport.onclose;
    this.#transport.onclose = () => {
      this.#forget();
      closed?.();
    };
  }

  async during<T>(kind: 'call' | 'stream', work: (face: SessionFace) => Promise<T>): Promise<T> {
    this.#count(kind, 1);
    let underWay = Promise.resolve();
    const face: SessionFace = {
      fetch: async (request, options) => {
        const { response, settled } = await this.#transport.exchange(request, options);
        underWay = settled;
        return response;
      },
    };
    try {
      return await work(face);
    } finally {
      // Nobody answers a question whose client has gone: it may not hold the session for `questionMs`.
      const over = new AbortController();
      void underWay.then(() => over.abort());
      await pause(this.#clock, this.#idleMs, over.signal);
      this.#count(kind, -1);
      if (this.#transport.sessionId === undefined) await this.end(); // its `initialize` was refused
    }
  }

  async end(): Promise<void> {
    this.#forget();
    await this.#transport.close();
  }

  #forget(): void {
    this.#callOff();
    this.#all.delete(this.id);
  }

  #count(kind: 'call' | 'stream', by: number): void {
    if (kind === 'call') this.#calls += by;
    else this.#streams += by;
    this.#usedAt = this.#clock.now();
    if (this.#all.delete(this.id)) this.#all.set(this.id, this);
  }

  #expireAfter(ms: number): void {
    this.#callOff = this.#clock.after(ms, () => {
      const isBusy = this.#calls + this.#streams > 0;
      const restMs = isBusy ? this.#idleMs : this.#usedAt + this.#idleMs - this.#clock.now();
      if (restMs > 0) this.#expireAfter(restMs);
      else void this.end();
    });
  }
}

const ownerOf = ({ tenant, subject, roles }: Principal): string =>
  JSON.stringify([tenant, subject, [...roles].sort()]);

/** 2025's first message. A modern one declares its version in every request. */
export const isLegacyInitialize = (body: Json): boolean =>
  isJsonObject(body) && body.method === 'initialize' && !isModern(body);

/** A message that a session may be for. */
export function isModern(body: Json): boolean {
  if (!isJsonObject(body)) return false;
  const { params } = body;
  const meta = isJsonObject(params) ? params._meta : undefined;
  return isJsonObject(meta) && Object.hasOwn(meta, PROTOCOL_VERSION_META_KEY);
}
