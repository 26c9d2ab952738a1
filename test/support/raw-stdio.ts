/** A driven gateway on the stdio of a process of its own, and every message it writes, in order. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { GatewayLimits } from '../../src/gateway/index.ts';
import { rawMessage } from './mcp-messages.ts';
import type { RawMessage, RpcResponse } from './mcp-messages.ts';

const PATIENCE_MS = 20_000;

export class RawStdio {
  readonly received: RpcResponse[] = [];
  readonly #child: ChildProcess;
  #wake: (() => void)[] = [];
  #ids = 0;

  constructor(limits: Partial<GatewayLimits> = {}, file = 'stdio-gateway.ts', argument: object = limits) {
    const script = join(import.meta.dirname, file);
    const flags = ['--experimental-strip-types', '--disable-warning=ExperimentalWarning'];
    this.#child = spawn(process.execPath, [...flags, script, JSON.stringify(argument)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    if (!this.#child.stdout) throw new Error('a child with pipes has stdout');
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      this.received.push(JSON.parse(line) as RpcResponse);
      for (const wake of this.#wake.splice(0)) wake();
    });
  }

  /** One message as it is. */
  write(message: object): void {
    this.#child.stdin?.write(`${JSON.stringify(message)}\n`);
  }

  /** A request of 2026-07-28; its id. */
  send(message: RawMessage): string | number {
    const id = message.id ?? `raw-${(this.#ids += 1)}`;
    this.write(rawMessage({ ...message, id }));
    return id;
  }

  /** A request and its response. */
  async ask(message: RawMessage): Promise<RpcResponse> {
    const id = this.send(message);
    await this.until(`the answer to ${message.method}`, () => this.answersTo(id).length > 0);
    return this.answersTo(id)[0] as RpcResponse;
  }

  answersTo(id: string | number): RpcResponse[] {
    return this.received.filter((message) => message.id === id && message.method === undefined);
  }

  async until(what: string, isSo: () => boolean): Promise<void> {
    const giveUpAt = Date.now() + PATIENCE_MS;
    while (!isSo()) {
      const left = giveUpAt - Date.now();
      if (left <= 0) throw new Error(`${what} did not come; received: ${JSON.stringify(this.received)}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#wake.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  async close(): Promise<void> {
    const hasExited = this.#child.exitCode !== null;
    this.#child.stdin?.end();
    if (!hasExited) await once(this.#child, 'exit');
  }
}
