/**
 * `holdfast/mcp-client`: calls tools over MCP on a network that drops things, and tells the truth about each call once.
 *
 * Guarantees: every call ends in one outcome within its maximum; an unsafe call is sent at most once; a conditional call is
 * repeated only under its own key and arguments; what a task has come to is read from the task. A tool's class comes from
 * the gateway's contract or from `tools`, never from hints (S5.1).
 *
 * Does not: cancel a task because a wait was given up (only `task(id).cancel()` does), keep anything over the end of
 * this process, or resume a stream.
 */
import { randomUUID } from 'node:crypto';
import { NEVER, systemClock } from '../contract/clock.ts';
import type { Clock } from '../contract/clock.ts';
import { VERSION } from '../contract/version.ts';
import { KEY_ARGUMENT } from '../contract/wire-names.ts';
import type { JsonObject } from '../task/json.ts';
import { createBackoff, seededRandom } from './backoff.ts';
import { createConnector } from './connector.ts';
import { openLink } from './link.ts';
import type { LinkOptions, ServerAddress } from './link.ts';
import { MCP_CLIENT_LIMITS } from './limits.ts';
import type { CallError, CallOutcome, TaskReading } from './outcome.ts';
import { errorOfRpc } from './outcome.ts';
import { repeat, unlessAborted, waitOut } from './parts.ts';
import type { ClientParts, Span } from './parts.ts';
import { answerTask, cancelTask, readTask, refusal, TaskRequestRefused, waitForTask } from './tasks.ts';
import { callTool } from './tool-call.ts';
import type { Progress, ToolCall } from './tool-call.ts';
import { toolTerms } from './tool-terms.ts';
import type { PublishedTool, ToolConfiguration, ToolTerms } from './tool-terms.ts';
import { watchTasks } from './watch.ts';

/** Milliseconds. */
export interface Timeouts {
  /**
   * How long a request may stay without real progress; then it counts as lost. Default 60,000: above the time for which
   * a Holdfast gateway blocks a client without the Tasks extension.
   */
  idleMs?: number;
  /** How long the whole may take, repeats and waiting for the task included. Default 300,000. */
  maximumMs?: number;
}

export interface McpClientOptions {
  server: ServerAddress;
  /** What is known of tools that no Holdfast contract vouches for. Where both speak, the stricter class holds. */
  tools?: Readonly<Record<string, ToolConfiguration>>;
  /** Tells servers that this program answers forms, with `task(id).answer`. Default false. */
  answersInput?: boolean;
  info?: LinkOptions['info'];
  timeouts?: Timeouts;
  /** Of the jitter; the same seed waits alike. Default: a random one. */
  seed?: number;
  clock?: Clock;
}

export interface CallOptions {
  /** Names the intent (M1.3). Default for what is not `safe`: one generated for this call, which covers its repeats only. */
  key?: string;
  /** Gives up the wait; the task goes on. */
  signal?: AbortSignal;
  onProgress?: (progress: Progress) => void;
  timeouts?: Timeouts;
  /** Goes on with a call that was answered `input_needed` without a task. */
  resume?: ToolCall['resume'];
}

export interface TaskOptions {
  signal?: AbortSignal;
  timeouts?: Timeouts;
}

export interface TaskHandle {
  readonly taskId: string;
  /** Reads the task. Throws `TaskRequestRefused` where the server won't tell, `McpUnavailable` where none answers in time. */
  get(options?: TaskOptions): Promise<TaskReading>;
  /** Until it ends, needs a person, or the maximum passes (`unknown`, reason `maximum`: it still works). */
  wait(options?: TaskOptions): Promise<CallOutcome>;
  /** Asks for a cancel. The acknowledgement is of the intent: how the task ends is read from it. */
  cancel(options?: TaskOptions): Promise<void>;
  /** Answers what `input_needed` asked, by its keys: `{ [key]: { action: 'accept', content: {…} } }`. */
  answer(responses: Readonly<Record<string, JsonObject>>, options?: TaskOptions): Promise<void>;
}

/** No server answered in time. What was asked for is not known to be done. */
export class McpUnavailable extends Error {
  constructor(what: string) {
    super(`no server answered in time: ${what}`);
    this.name = 'McpUnavailable';
  }
}

export class McpClient {
  readonly #parts: ClientParts;
  readonly #options: McpClientOptions;
  #published: Map<string, PublishedTool> | null = null;
  #publishedAt = 0;
  /** When each name was last looked for in vain. */
  readonly #unlistedAt = new Map<string, number>();
  #listing: { span: Span; listed: Promise<Listed> } | null = null;

  private constructor(parts: ClientParts, options: McpClientOptions) {
    this.#parts = parts;
    this.#options = options;
  }

  /**
   * Resolves when a server has answered the handshake; tries with backoff until `timeouts.maximumMs` has passed, then
   * throws `McpUnavailable`. A refusal (401, 403) throws `TaskRequestRefused` at once.
   */
  static async connect(
    options: McpClientOptions,
    { signal }: { signal?: AbortSignal } = {},
  ): Promise<McpClient> {
    const { server, clock = systemClock, seed = Math.trunc(Math.random() * 2 ** 32) } = options;
    const { info = { name: 'holdfast-mcp-client', version: VERSION }, answersInput = false } = options;
    const openMs = MCP_CLIENT_LIMITS.handshakeMs.value;
    const connector = createConnector((closing) =>
      openLink({ server, info, answersInput, openMs, signal: closing }),
    );
    const parts: ClientParts = { connector, clock, random: seededRandom(seed) };
    const client = new McpClient(parts, options);
    const span = client.#span({ ...(signal && { signal }) }, MCP_CLIENT_LIMITS.readIdleMs.value);
    const backoff = createBackoff(parts.random);
    for (;;) {
      const found = await connector.link();
      if (found.kind === 'link') return client;
      const isRefused = found.failure === 'refused';
      if (isRefused || (await waitOut(parts, span, backoff.next(found.retryAfterMs))) !== null) {
        await connector.close();
        if (isRefused) throw new TaskRequestRefused(refusal(found));
        throw new McpUnavailable(found.message);
      }
    }
  }

  /** Never rejects for what server or network do: each call has one outcome. */
  async call(tool: string, args: JsonObject, options: CallOptions = {}): Promise<CallOutcome> {
    const span = this.#span(options, MCP_CLIENT_LIMITS.idleMs.value);
    const published = await this.#tool(tool, span);
    if ('failed' in published)
      return { kind: 'failed', taskId: null, effect: 'none', error: published.failed };
    const terms = toolTerms(published.tool, this.#configured(tool));
    const { resume, onProgress } = options;
    const key = keyOf(terms, args, options.key);
    const call: ToolCall = { tool, args: structuredClone(args), terms, ...key };
    return callTool(
      this.#parts,
      { ...call, ...(resume && { resume }), ...(onProgress && { onProgress }) },
      span,
    );
  }

  task(taskId: string): TaskHandle {
    const parts = this.#parts;
    const spanOf = (options: TaskOptions = {}) => this.#span(options, MCP_CLIENT_LIMITS.readIdleMs.value);
    return {
      taskId,
      async get(options) {
        const read = await readTask(parts, taskId, spanOf(options));
        if (read.kind === 'reading') return read.reading;
        if (read.kind === 'refused') throw new TaskRequestRefused(read.error);
        throw new McpUnavailable(`task ${taskId} could not be read`);
      },
      wait: (options) => waitForTask(parts, taskId, spanOf(options)),
      async cancel(options) {
        if (await cancelTask(parts, taskId, spanOf(options))) return;
        throw new McpUnavailable(`the cancel of task ${taskId} was not acknowledged`);
      },
      async answer(responses, options) {
        if (await answerTask(parts, taskId, responses, spanOf(options))) return;
        throw new McpUnavailable(`the answer to task ${taskId} was not acknowledged`);
      },
    };
  }

  /**
   * Each new state of each task, over reconnects, until all have ended or `signal` aborts. Pushed where the server has
   * `subscriptions/listen` for tasks, else polled at the server's interval.
   */
  listen(
    taskIds: readonly string[],
    { signal = NEVER, timeouts }: TaskOptions = {},
  ): AsyncGenerator<TaskReading, void, undefined> {
    const readIdleMs = timeouts?.idleMs ?? MCP_CLIENT_LIMITS.readIdleMs.value;
    return watchTasks(this.#parts, taskIds, { signal, readIdleMs });
  }

  /** The tools as the server publishes them, read anew. */
  async tools(options: TaskOptions = {}): Promise<PublishedTool[]> {
    const listed = await this.#listTools(this.#span(options, MCP_CLIENT_LIMITS.readIdleMs.value));
    if ('failed' in listed) throw new McpUnavailable(listed.failed.message);
    return [...listed.tools.values()];
  }

  /** Cuts what is open. Tasks go on. */
  async close(): Promise<void> {
    await this.#parts.connector.close();
  }

  #configured(tool: string): ToolConfiguration | undefined {
    const { tools = {} } = this.#options;
    return Object.hasOwn(tools, tool) ? tools[tool] : undefined;
  }

  /** Of the list read first; a name that is not on it is looked for once more. */
  async #tool(
    name: string,
    span: Span,
  ): Promise<{ tool: PublishedTool | undefined } | { failed: CallError }> {
    const { publishedMs, unlistedMs } = MCP_CLIENT_LIMITS;
    const now = this.#parts.clock.now();
    const known = now - this.#publishedAt < publishedMs.value && this.#published?.get(name);
    if (known) return { tool: known };
    if (now - (this.#unlistedAt.get(name) ?? -Infinity) < unlistedMs.value) return { tool: undefined };
    const listed = await this.#listOnce(span);
    if ('failed' in listed) return listed;
    const tool = listed.tools.get(name);
    if (tool === undefined) this.#missed(name);
    return { tool };
  }

  #missed(name: string): void {
    if (this.#unlistedAt.size >= MCP_CLIENT_LIMITS.unlistedMax.value) this.#unlistedAt.clear();
    this.#unlistedAt.set(name, this.#parts.clock.now());
  }

  /** Joins a reading of the list that ends no later than `span`; one that found nothing out says nothing to others. */
  async #listOnce(span: Span): Promise<Listed> {
    for (let other = this.#listing; other && other.span.maximumAt <= span.maximumAt; other = this.#listing) {
      const listed = await unlessAborted(other.listed, span.signal ?? NEVER);
      if (listed === null) return { failed: listFailure({ kind: 'over', end: 'abandoned' }) };
      if (!('failed' in listed) || listed.failed.code !== 'no_answer') return listed;
    }
    const listing = { span, listed: this.#listTools(span) };
    this.#listing = listing;
    try {
      return await listing.listed;
    } finally {
      if (this.#listing === listing) this.#listing = null;
    }
  }

  async #listTools(span: Span): Promise<Listed> {
    const tools = new Map<string, PublishedTool>();
    let cursor: string | undefined;
    do {
      const params: JsonObject = cursor === undefined ? {} : { cursor };
      const reply = await repeat(this.#parts, span, (link, options) =>
        link.request('tools/list', params, options),
      );
      if (reply.kind !== 'result') return { failed: listFailure(reply) };
      for (const tool of (reply.result.tools ?? []) as unknown as PublishedTool[]) tools.set(tool.name, tool);
      cursor = typeof reply.result.nextCursor === 'string' ? reply.result.nextCursor : undefined;
    } while (cursor !== undefined);
    this.#published = tools;
    this.#publishedAt = this.#parts.clock.now();
    return { tools };
  }

  #span({ signal, timeouts }: TaskOptions, idleMs: number): Span {
    const defaults = this.#options.timeouts;
    const maximumMs = timeouts?.maximumMs ?? defaults?.maximumMs ?? MCP_CLIENT_LIMITS.maximumMs.value;
    return {
      idleMs: timeouts?.idleMs ?? defaults?.idleMs ?? idleMs,
      maximumAt: this.#parts.clock.now() + maximumMs,
      ...(signal && { signal }),
    };
  }
}

type Listed = { tools: Map<string, PublishedTool> } | { failed: CallError };

/** The caller's, beside the arguments or among them; else one for this call. */
function keyOf(
  { key }: ToolTerms,
  args: JsonObject,
  given: string | undefined,
): Pick<ToolCall, 'key' | 'isOwnKey'> {
  if (key === null) return { key: null };
  const names =
    key.in === 'argument' ? [key.name] : [KEY_ARGUMENT, ...(key.own === undefined ? [] : [key.own])];
  const among = names.map((name) => args[name]).find((value) => typeof value === 'string' && value !== '');
  const callers = given ?? (among as string | undefined);
  return callers === undefined ? { key: randomUUID(), isOwnKey: true } : { key: callers };
}

/** Nothing was called yet. */
function listFailure(reply: Exclude<Awaited<ReturnType<typeof repeat>>, { kind: 'result' }>): CallError {
  switch (reply.kind) {
    case 'over':
      return {
        code: 'no_answer',
        message: `The tools could not be listed in time (${reply.end}). Nothing was called.`,
        details: {},
        retryable: true,
      };
    case 'error':
      return errorOfRpc(reply.error);
    case 'failure':
      return refusal(reply);
  }
}
