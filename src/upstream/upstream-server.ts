/**
 * One configured server in one process: its line, the list it is known by, and what is made of that.
 *
 * Owns: the line, the looking for the server in the background. Never sends a call by itself.
 *
 * 1. A server that does not answer is known by the last list that any process saw; without one it has no tools, and the
 *    process starts all the same (M1.1).
 * 2. It is looked for until it is seen, at ever longer intervals, and its list read again when it says so, when it was lost
 *    and met again, and now and then in any case; `close` ends that.
 * 3. A list is in the ledger before its tools are offered, so that whoever performs a task can know them too.
 */
import { HoldfastError } from '../contract/error.ts';
import type { UpstreamDefinition } from '../contract/upstream-definition.ts';
import type { BeforeStore } from './before-store.ts';
import { checkList, compileUpstream } from './upstream-actions.ts';
import type { CompiledUpstream } from './upstream-actions.ts';
import type { Upstream, UpstreamLine, UpstreamTool } from './upstream.ts';

export interface KnownList {
  tools: UpstreamTool[];
  gone: UpstreamTool[];
  seenAt: number;
}

/** Where lists outlive a process. */
export interface ListStore {
  recall(identity: string): Promise<KnownList | null>;
  keep(identity: string, tools: UpstreamTool[]): Promise<KnownList>;
}

export interface UpstreamServerParts {
  name: string;
  definition: UpstreamDefinition;
  /** Null: this process keeps no line, and knows the server by its last list alone. May throw: then it has none either. */
  open: ((listChanged: () => void) => Upstream) | null;
  lists: ListStore;
  before: BeforeStore;
  log: {
    warn(fields: Record<string, unknown>, message: string): void;
    info(fields: Record<string, unknown>, message: string): void;
  };
  /** Told whenever its tools are others than before. */
  changed: () => void;
  /** Default: a timer. */
  after?: (delayMs: number, work: () => void) => { cancel(): void };
}

const LOOK_FIRST_MS = 1_000;
const LOOK_MAX_MS = 60_000;
/** Not every server says when its list is another. */
const RELIST_MS = 300_000;

const NONE = 'this process has no line to the server';
const noTasks = () => Promise.reject(new Error(NONE));
const NO_LINE: UpstreamLine = {
  call: () => Promise.resolve({ kind: 'not_sent', message: NONE }),
  remote: { status: noTasks, cancel: noTasks, answer: noTasks },
};

export class UpstreamServer {
  readonly name: string;
  readonly identity: string;
  readonly #parts: UpstreamServerParts;
  readonly #line: Upstream | null = null;
  #known: KnownList | null = null;
  #compiled: CompiledUpstream | null = null;
  #problem: HoldfastError | null = null;
  #looking: { cancel(): void } | null = null;
  #isLooking = false;
  /** Told of since it was last looked. */
  #isStale = false;
  readonly #closed = new AbortController();

  constructor(parts: UpstreamServerParts) {
    this.#parts = parts;
    this.name = parts.name;
    this.identity = parts.definition.identity ?? parts.name;
    try {
      this.#line = parts.open?.(() => this.#lookSoon()) ?? null;
    } catch (error) {
      this.#problem = asProblem(this.name, error);
    }
  }

  /** Null before its list is known. */
  get compiled(): CompiledUpstream | null {
    return this.#compiled;
  }

  /** Why it is not reached, or not to be; null where nothing is wrong. */
  get problem(): HoldfastError | null {
    return this.#problem;
  }

  get line(): Upstream | null {
    return this.#line;
  }

  /** When its list was last seen, and whether by this process just now. */
  get seen(): { at: number } | null {
    return this.#known && { at: this.#known.seenAt };
  }

  /** Never rejects for the server's sake. Answers when the list is known, or the server did not answer within the bound. */
  async start(signal: AbortSignal): Promise<void> {
    await this.recall();
    if (this.#line !== null) await this.#look(signal, LOOK_FIRST_MS);
  }

  /** Takes over what another process saw since. */
  async recall(): Promise<void> {
    const known = await this.#parts.lists.recall(this.identity);
    if (known !== null && known.seenAt !== this.#known?.seenAt) this.#learn(known);
  }

  async close(): Promise<void> {
    this.#closed.abort();
    this.#looking?.cancel();
    await this.#line?.close();
  }

  async #read(signal: AbortSignal): Promise<boolean> {
    const { lists, log } = this.#parts;
    try {
      const tools = (await this.#line?.tools(AbortSignal.any([signal, this.#closed.signal]))) ?? [];
      checkList(this.name, tools);
      this.#learn(await lists.keep(this.identity, tools));
      if (this.#problem !== null) log.info({ upstream: this.name }, 'an upstream server is there');
      this.#problem = null;
      return true;
    } catch (error) {
      this.#problem = asProblem(this.name, error);
      log.warn(
        { upstream: this.name, reason: this.#problem.message, knownTools: this.#known?.tools.length ?? 0 },
        this.#known === null
          ? 'an upstream server is quarantined'
          : 'an upstream server does not answer; its last list stands',
      );
      return false;
    }
  }

  async #look(signal: AbortSignal, retryMs: number): Promise<void> {
    this.#isLooking = true;
    this.#isStale = false;
    const isThere = await this.#read(signal);
    this.#isLooking = false;
    // Also where it says at every look that its list changed: ever less often.
    if (!isThere || this.#isStale) this.#lookIn(retryMs, Math.min(retryMs * 2, LOOK_MAX_MS));
    else this.#lookIn(RELIST_MS, LOOK_FIRST_MS);
  }

  /** A server that says so again and again is asked once in the while. */
  #lookSoon(): void {
    this.#isStale = true;
    if (!this.#isLooking) this.#lookIn(LOOK_FIRST_MS, LOOK_FIRST_MS);
  }

  #lookIn(delayMs: number, retryMs: number): void {
    if (this.#closed.signal.aborted) return;
    this.#looking?.cancel();
    const after = this.#parts.after ?? timer;
    this.#looking = after(delayMs, () => void this.#look(AbortSignal.timeout(LOOK_MAX_MS), retryMs));
  }

  #learn(known: KnownList): void {
    const isSame =
      this.#known !== null &&
      JSON.stringify([this.#known.tools, this.#known.gone]) === JSON.stringify([known.tools, known.gone]);
    this.#known = known;
    if (isSame) return;
    const { name, definition, before, changed } = this.#parts;
    const upstream = this.#line ?? NO_LINE;
    this.#compiled = compileUpstream({ name, definition, upstream, before }, known.tools, known.gone);
    changed();
  }
}

function timer(delayMs: number, work: () => void): { cancel(): void } {
  const timeout = setTimeout(work, delayMs);
  timeout.unref();
  return { cancel: () => clearTimeout(timeout) };
}

function asProblem(name: string, error: unknown): HoldfastError {
  if (error instanceof HoldfastError && error.code !== 'attempt_failed') return error;
  const why = error instanceof Error ? error.message : String(error);
  return new HoldfastError('upstream_unavailable', `The upstream ${name} does not answer: ${why}`, {
    details: { upstream: name },
    cause: error,
  });
}
