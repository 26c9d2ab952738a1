/**
 * Holdfast in front of real MCP servers, from a configuration file alone: a Temporal server, a worker and a gateway, each a process,
 * and an MCP client over HTTP. What the servers keep outside is the oracle of every test on it.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { Tool } from '@modelcontextprotocol/client';
import { expect } from 'vitest';
import { openLedger } from '../../src/ledger/open-ledger.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { startEmbeddedTemporal } from '../../src/embedded/index.ts';
import type { JsonObject } from '../../src/task/json.ts';
import { holdfast, holdfastJson, startHoldfast } from './holdfast-command.ts';
import type { Place, RunningCommand } from './holdfast-command.ts';
import { TASKS_CAPABILITIES } from './mcp-clients.ts';
import { connectTaskClient } from './task-session.ts';
import type { TaskClientUnderTest } from './task-session.ts';

const KEY_META = 'holdfast/idempotencyKey';
const TASK_META = 'holdfast/task';
const PATIENCE_MS = 60_000;
const WAITS_FOR_SOMEBODY = ['awaiting_approval', 'needs_attention'];

export interface TaskFacts {
  taskId: string;
  status: string;
  effect: string | null;
  cause: string | null;
  replayed: boolean;
}

export interface CallAnswer {
  task: Partial<TaskFacts>;
  text: string;
  structured: JsonObject | undefined;
  isError: boolean;
}

export class UpstreamStage {
  readonly folder: string;
  readonly place: Place;
  readonly client: Client;
  readonly ledger: Ledger;
  #worker: RunningCommand;
  readonly #gateway: RunningCommand;
  readonly #stopTemporal: () => Promise<void>;

  private constructor(parts: {
    folder: string;
    place: Place;
    client: Client;
    ledger: Ledger;
    worker: RunningCommand;
    gateway: RunningCommand;
    stopTemporal: () => Promise<void>;
  }) {
    this.folder = parts.folder;
    this.place = parts.place;
    this.client = parts.client;
    this.ledger = parts.ledger;
    this.#worker = parts.worker;
    this.#gateway = parts.gateway;
    this.#stopTemporal = parts.stopTemporal;
  }

  /** `prepare` makes in the folder what the servers want, starts those that listen, and says their environment. */
  static async open(
    config: string,
    prepare: (folder: string) => Record<string, string> | Promise<Record<string, string>>,
  ): Promise<UpstreamStage> {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-upstream-'));
    mkdirSync(join(folder, 'state'));
    const temporal = await startEmbeddedTemporal({ stateDir: join(folder, 'temporal'), ui: false });
    const place = {
      cwd: join(folder, 'state'),
      env: {
        HOLDFAST_CONFIG: config,
        HOLDFAST_PORT: '0',
        HOLDFAST_LOG_LEVEL: 'warn',
        HOLDFAST_DATABASE_URL: `sqlite:${join(folder, 'ledger.db')}`,
        TEMPORAL_ADDRESS: temporal.address,
        TEMPORAL_NAMESPACE: temporal.namespace,
        ...(await prepare(folder)),
      },
    };
    expect((await holdfast(place, 'migrate')).code).toBe(0);
    const [worker, gateway] = await Promise.all([
      startHoldfast(place, 'worker'),
      startHoldfast(place, 'gateway'),
    ]);
    const client = new Client({ name: 'stage', version: '1' }, { versionNegotiation: { mode: 'auto' } });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`)));
    return new UpstreamStage({
      folder,
      place,
      client,
      ledger: await openLedger({ url: place.env.HOLDFAST_DATABASE_URL }),
      worker,
      gateway,
      stopTemporal: () => temporal.stop(),
    });
  }

  /** A client that declared Tasks and takes forms: it is asked what a remote task asks for. Whoever opens it closes it. */
  personClient(): Promise<TaskClientUnderTest> {
    const place = { transport: 'http', url: `${this.#gateway.url}/mcp` } as const;
    return connectTaskClient(place, { ...TASKS_CAPABILITIES, elicitation: { form: {} } });
  }

  async tool(name: string): Promise<Tool | undefined> {
    return (await this.client.listTools()).tools.find((tool) => tool.name === name);
  }

  /** Blocks until the call has ended, or is known to wait for somebody; longer than the gateway itself, where that takes longer. */
  async call(
    name: string,
    args: JsonObject,
    { key, signal }: { key?: string; signal?: AbortSignal } = {},
  ): Promise<CallAnswer> {
    const params = { name, arguments: args, ...(key !== undefined && { _meta: { [KEY_META]: key } }) };
    const answer = await this.client.callTool(params, { timeout: PATIENCE_MS, ...(signal && { signal }) });
    const task: Partial<TaskFacts> = answer._meta?.[TASK_META] ?? {};
    const structured = answer.structuredContent as JsonObject | undefined;
    if (structured?.['done'] === false && !WAITS_FOR_SOMEBODY.includes(task.status ?? ''))
      return this.call('task_wait', { taskId: task.taskId ?? '' }, { ...(signal && { signal }) });
    return {
      ...{ task, structured, isError: answer.isError === true },
      text: answer.content.map((part) => (part.type === 'text' ? part.text : '')).join('\n'),
    };
  }

  /** The `holdfast` command as somebody, by HOLDFAST_SUBJECT and HOLDFAST_ROLES. */
  async commandAs<T>(person: Record<string, string>, ...args: string[]): Promise<T> {
    const place = { ...this.place, env: { ...this.place.env, ...person } };
    return (await holdfastJson<T>(place, ...args)).value;
  }

  /** The newest task of an action. */
  async taskOf(action: string): Promise<string> {
    const [row] = await this.ledger.list({ tenant: 'local', action, limit: 1 });
    return row?.taskId ?? '';
  }

  async killWorker(): Promise<void> {
    await this.#worker.end('SIGKILL');
  }

  async startWorker(): Promise<void> {
    this.#worker = await startHoldfast(this.place, 'worker');
  }

  output(): string {
    return this.#worker.output() + this.#gateway.output();
  }

  async close(): Promise<void> {
    await this.client.close();
    await this.ledger.close();
    await Promise.all([this.#worker.end('SIGKILL'), this.#gateway.end('SIGKILL')]);
    await this.#stopTemporal();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
