/** A flood-gateway.ts in a process of its own, with readers that keep up and readers that do not. */
import { until } from '../../src/cli/demo/until.ts';
import type { GatewayLimits } from '../../src/gateway/index.ts';
import { TestChild } from './child-process.ts';
import type { Flooded, Memory } from './flood-gateway.ts';
import { answerOf, post } from './mcp-messages.ts';
import type { RpcResponse } from './mcp-messages.ts';
import { SlowReader } from './slow-reader.ts';

export const tool = (name: string, args: object = {}) => ({
  method: 'tools/call',
  params: { name, arguments: args },
});

/** What became of others while readers were stalled. */
export interface StalledRun {
  before: Memory;
  flooded: Flooded;
  /** Calls of another client that were answered meanwhile. */
  served: number;
}

export class FloodStage {
  readonly url: string;
  readonly #child: TestChild;
  readonly #readers: SlowReader[] = [];

  private constructor(child: TestChild, url: string) {
    this.#child = child;
    this.url = url;
  }

  static async open(limits: Partial<GatewayLimits>): Promise<FloodStage> {
    const options = { blockingMs: 600_000, progressIntervalMs: 0, ...limits };
    const child = await new TestChild('./flood-gateway.ts', options, {}).ready();
    return new FloodStage(child, child.data['url'] ?? '');
  }

  /** A call that stays open; nothing of its response is read until `read` is called. */
  call(progressToken: string | number): SlowReader {
    const reader = new SlowReader(`${this.url}/mcp`, {
      ...tool('transfer', { to: 'bob', amount: 5 }),
      meta: { progressToken },
    });
    this.#readers.push(reader);
    return reader;
  }

  memory = (): Promise<Memory> => this.#ask('/memory');
  flood = (count: number, bytes: number): Promise<Flooded> =>
    this.#ask(`/flood?count=${count}&bytes=${bytes}`);

  async answer(name: string, args: object = {}): Promise<RpcResponse> {
    return answerOf(await post(`${this.url}/mcp`, tool(name, args)));
  }

  whenWaiting(count: number): Promise<void> {
    return until(`${count} calls wait`, async () => (await this.memory()).openWaits === count);
  }

  /** `readers` that read nothing while `count` notifications of `bytes` each are told to all. */
  async stall(readers: readonly SlowReader[], count: number, bytes: number): Promise<StalledRun> {
    await this.whenWaiting(readers.length);
    const before = await this.memory();
    let isOver = false;
    const flooding = this.flood(count, bytes).finally(() => (isOver = true));
    let served = 0;
    while (!isOver) {
      const { result } = await this.answer('open_tasks');
      if (result?.['structuredContent'] !== undefined) served += 1;
    }
    return { before, flooded: await flooding, served };
  }

  async close(): Promise<void> {
    for (const reader of this.#readers) reader.close();
    await this.#child.kill();
  }

  async #ask<Answer>(path: string): Promise<Answer> {
    return (await (await fetch(`${this.url}${path}`)).json()) as Answer;
  }
}

export const progressIn = (reader: SlowReader): RpcResponse[] =>
  reader.messages.filter(({ method }) => method === 'notifications/progress');
