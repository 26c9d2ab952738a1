/**
 * Another's MCP server, small and written on the wire, so that a test sees every message it got and can have it misbehave.
 * Of either era. What it received, its effects and its tasks are in files of one folder: they outlive it, and the count of
 * its effects is the oracle.
 *
 * | tool | what it does |
 * | --- | --- |
 * | `echo` | answers its arguments, structured, and how it was called |
 * | `fails` | answers `isError` |
 * | `refuses`, `troubled` | JSON-RPC errors -32602 and -32603 |
 * | `apply` | its effect, then the answer |
 * | `apply_and_die` | its effect, then the process or connection is gone |
 * | `count` | how often `apply` and `apply_and_die` took effect under `key` |
 * | `hangs` | never answers |
 * | `late` | answers once it was cancelled |
 * | `steps` | progress 1 and 2, then the answer |
 * | `large` | an integer beyond 2^53 in its structured answer |
 * | `asks` | asks with a form in mid-call |
 * | `works` | a task: working, then a question, then what was answered |
 */
import { randomUUID } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '../../src/task/json.ts';

export type Era = 'modern' | 'legacy';

export interface UpstreamServerOptions {
  dir: string;
  era: Era;
  /** 2025-11-25: what it does at a question before `initialize`. Default: an error. */
  atProbe?: 'dies' | 'says nothing';
}

export interface WireMessage {
  id?: string | number;
  method?: string;
  params?: JsonObject;
}

/** How one transport carries what the server says about a request. */
export interface Exchange {
  /** Raw text of one JSON-RPC message. */
  write(text: string): void;
  /** The process or the connection is gone. */
  die(): void;
  /** Aborts where a client has closed the response. */
  closed?: AbortSignal;
  headers?: Readonly<Record<string, string | string[] | undefined>>;
}

export interface Received {
  at: number;
  message: WireMessage;
  headers?: Record<string, string>;
  /** The response of this request was closed by its client. */
  closed?: string | number;
}

const TASKS = 'io.modelcontextprotocol/tasks';
const open = (properties: JsonObject = {}): JsonObject => ({ type: 'object', properties });

const TOOLS: readonly JsonObject[] = [
  { name: 'echo', title: 'Echo', description: 'Answers.', inputSchema: open({ text: { type: 'string' } }) },
  ...['fails', 'refuses', 'troubled', 'hangs', 'late', 'steps', 'large', 'asks'].map((name) => ({
    name,
    inputSchema: open(),
  })),
  {
    name: 'routed',
    inputSchema: open({ region: { type: 'string', 'x-mcp-header': 'Region' } }),
  },
  { name: 'apply', inputSchema: open({ key: { type: 'string' } }), annotations: { destructiveHint: true } },
  { name: 'apply_and_die', inputSchema: open({ key: { type: 'string' } }) },
  { name: 'count', inputSchema: open({ key: { type: 'string' } }), annotations: { readOnlyHint: true } },
  { name: 'works', inputSchema: open(), execution: { taskSupport: 'required' } },
  { name: 'may_work', inputSchema: open(), execution: { taskSupport: 'optional' } },
  { name: '', inputSchema: open() },
];

interface Task {
  reads: number;
  status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';
  answer?: JsonObject;
}

export class UpstreamServer {
  readonly #options: UpstreamServerOptions;
  readonly #late = new Map<string | number, Exchange>();

  constructor(options: UpstreamServerOptions) {
    this.#options = options;
  }

  note(received: Omit<Received, 'at'>): void {
    appendFileSync(this.#file('received.jsonl'), `${JSON.stringify({ at: Date.now(), ...received })}\n`);
  }

  receive(message: WireMessage, exchange: Exchange): void {
    this.note({ message, ...(exchange.headers && { headers: exchange.headers as Record<string, string> }) });
    const { id, method, params = {} } = message;
    if (method === 'notifications/cancelled') return this.#cancelled(params);
    if (id === undefined || method === undefined) return;
    const say = {
      result: (result: JsonObject) => exchange.write(rpc(id, { result })),
      error: (code: number, text: string) => exchange.write(rpc(id, { error: { code, message: text } })),
    };
    switch (method) {
      case 'server/discover':
        return this.#discover(say, exchange);
      case 'initialize':
        if (this.#options.era === 'modern') return say.error(-32_022, 'only 2026-07-28 is spoken here');
        return say.result({
          protocolVersion: '2025-11-25',
          capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } }, cancel: {} } },
          serverInfo: { name: 'another', version: '1.0.0' },
        });
      case 'tools/list': {
        const half = Math.ceil(TOOLS.length / 2);
        const isFirst = params.cursor === undefined;
        return say.result({
          ...this.#complete(),
          ...(this.#options.era === 'modern' && { ttlMs: 0, cacheScope: 'private' }),
          tools: isFirst ? TOOLS.slice(0, half) : TOOLS.slice(half),
          ...(isFirst && { nextCursor: 'second half' }),
        });
      }
      case 'tools/call':
        return this.#call(id, params, say, exchange);
      case 'tasks/get':
      case 'tasks/result':
      case 'tasks/update':
      case 'tasks/cancel':
        return this.#task(method, params, say);
      default:
        return say.error(-32_601, 'Method not found');
    }
  }

  #discover(say: Say, exchange: Exchange): void {
    const { era, atProbe } = this.#options;
    if (atProbe === 'dies') return exchange.die();
    if (atProbe === 'says nothing') return;
    if (era === 'legacy') return say.error(-32_601, 'Method not found');
    say.result({
      ...this.#complete(),
      supportedVersions: ['2026-07-28'],
      capabilities: { tools: {}, extensions: { [TASKS]: {} } },
      _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'another', version: '1.0.0' } },
      ...{ ttlMs: 0, cacheScope: 'private' },
    });
  }

  #call(id: string | number, params: JsonObject, say: Say, exchange: Exchange): void {
    const args = (params.arguments ?? {}) as JsonObject;
    const answer = (structuredContent: JsonObject, meta?: JsonObject) =>
      say.result({
        ...this.#complete(),
        content: [{ type: 'text', text: JSON.stringify(structuredContent) }],
        structuredContent,
        ...(meta && { _meta: meta }),
      });
    switch (params.name) {
      case 'routed':
      case 'echo':
        return answer({ args, meta: params._meta ?? {} }, args.answerMeta as JsonObject | undefined);
      case 'fails':
        return say.result({
          ...this.#complete(),
          content: [{ type: 'text', text: 'it failed' }],
          isError: true,
        });
      case 'refuses':
        return say.error(-32_602, 'wrong arguments');
      case 'troubled':
        return say.error(-32_603, 'trouble');
      case 'apply':
      case 'apply_and_die':
        appendFileSync(this.#file('effects'), `${JSON.stringify(args.key ?? null)}\n`);
        if (params.name === 'apply_and_die') return exchange.die();
        return answer({ applied: args.key ?? null });
      case 'count':
        return answer({ count: effectsIn(this.#options.dir, args.key ?? null) });
      case 'hangs':
        return;
      case 'late':
        this.#late.set(id, exchange);
        return;
      case 'steps':
        for (const progress of [1, 2]) exchange.write(progressOf(params, progress));
        return answer({ steps: 2 });
      case 'large':
        return exchange.write(
          `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{${this.#options.era === 'modern' ? '"resultType":"complete",' : ''}"content":[{"type":"text","text":"large"}],"structuredContent":{"amount":9007199254740993}}}`,
        );
      case 'asks':
        if (params.inputResponses !== undefined) return answer({ told: params.inputResponses });
        return say.result({
          resultType: 'input_required',
          requestState: 'where it was',
          inputRequests: { sure: { method: 'elicitation/create', params: FORM } },
        });
      case 'works':
      case 'may_work': {
        const isTask = this.#options.era === 'modern' || params.task !== undefined;
        if (!isTask) return params.name === 'works' ? say.error(-32_601, 'only as a task') : answer({});
        const taskId = randomUUID();
        this.#save(taskId, { reads: 0, status: 'working' });
        const wire = this.#wire(taskId, { reads: 0, status: 'working' });
        return say.result(this.#options.era === 'modern' ? { resultType: 'task', ...wire } : { task: wire });
      }
      default:
        return say.error(-32_602, 'unknown tool');
    }
  }

  /** It asks at the second reading, and ends when it was answered; on 2025-11-25 it ends at the second. */
  #task(method: string, params: JsonObject, say: Say): void {
    const taskId = String(params.taskId);
    const task = this.#load(taskId);
    if (task === undefined) return say.error(-32_602, 'task not found');
    const isModern = this.#options.era === 'modern';
    const done = (value: JsonObject) => ({ content: [], structuredContent: value });
    switch (method) {
      case 'tasks/cancel':
        this.#save(taskId, { ...task, status: 'cancelled' });
        return say.result({ ...this.#complete(), ...(isModern ? {} : this.#wire(taskId, task)) });
      case 'tasks/update':
        this.#save(taskId, { ...task, status: 'completed', answer: params.inputResponses as JsonObject });
        return say.result(this.#complete());
      case 'tasks/result':
        return say.result(done({ done: true }));
    }
    const reads = task.reads + 1;
    const isAsked = reads >= 2 && task.status === 'working';
    const status = isAsked ? (isModern ? 'input_required' : 'completed') : task.status;
    this.#save(taskId, { ...task, reads, status });
    say.result({
      ...this.#complete(),
      ...this.#wire(taskId, { ...task, status }),
      ...(status === 'input_required' && {
        inputRequests: { sure: { method: 'elicitation/create', params: FORM } },
      }),
      ...(isModern &&
        status === 'completed' && { result: { resultType: 'complete', ...done(task.answer ?? {}) } }),
    });
  }

  #cancelled({ requestId }: JsonObject): void {
    const exchange = this.#late.get(requestId as string);
    exchange?.write(rpc(requestId as string, { result: { ...this.#complete(), content: [] } }));
  }

  #wire(taskId: string, { status }: Task): JsonObject {
    const at = new Date().toISOString();
    const spans =
      this.#options.era === 'modern'
        ? { ttlMs: 60_000, pollIntervalMs: 25 }
        : { ttl: 60_000, pollInterval: 25 };
    return { taskId, status, createdAt: at, lastUpdatedAt: at, statusMessage: `it is ${status}`, ...spans };
  }

  #complete(): JsonObject {
    return this.#options.era === 'modern' ? { resultType: 'complete' } : {};
  }

  #load(taskId: string): Task | undefined {
    const file = this.#file('tasks.json');
    if (!existsSync(file)) return undefined;
    return (JSON.parse(readFileSync(file, 'utf8')) as Record<string, Task>)[taskId];
  }

  #save(taskId: string, task: Task): void {
    const file = this.#file('tasks.json');
    const tasks = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Record<string, Task>) : {};
    writeFileSync(file, JSON.stringify({ ...tasks, [taskId]: task }));
  }

  #file(name: string): string {
    return join(this.#options.dir, name);
  }
}

interface Say {
  result(result: JsonObject): void;
  error(code: number, text: string): void;
}

const FORM: JsonObject = {
  mode: 'form',
  message: 'Sure?',
  requestedSchema: { type: 'object', properties: { sure: { type: 'boolean' } } },
};

const rpc = (id: string | number, said: JsonObject): string =>
  JSON.stringify({ jsonrpc: '2.0', id, ...said });

function progressOf({ _meta }: JsonObject, progress: number): string {
  const progressToken = (_meta as JsonObject | undefined)?.progressToken ?? null;
  const params = { progressToken, progress, total: 2, message: `step ${progress}` };
  return JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params });
}

export const linesOf = (file: string): string[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
    : [];

export const receivedIn = (dir: string): Received[] =>
  linesOf(join(dir, 'received.jsonl')).map((line) => JSON.parse(line) as Received);

/** Of one key, or of all calls. */
export const effectsIn = (dir: string, key?: unknown): number =>
  linesOf(join(dir, 'effects')).filter((line) => key === undefined || line === JSON.stringify(key)).length;
