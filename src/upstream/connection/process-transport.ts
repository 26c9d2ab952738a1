/**
 * MCP over the pipes of a server process, one process for each transport. The SDK's own neither binds the process to ours
 * nor ends what it started in turn. Lines that are no JSON-RPC are left out: servers print to stdout by mistake.
 *
 * Invariants: `onclose` is called once, after everything the process said; what is sent afterwards was not sent.
 */
import { ReadBuffer, SdkError, SdkErrorCode, serializeMessage } from '@modelcontextprotocol/client';
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import { LIMITS } from '../../contract/limits.ts';
import { startServerProcess } from './server-process.ts';
import type { ServerCommand, ServerProcess } from './server-process.ts';

export interface ProcessTransportOptions {
  server: ServerCommand;
  closeMs: number;
  /** A line of its stderr. */
  onStderr: (chunk: string) => void;
  /** `how`: in words. Also where we ended it. */
  onEnded: (how: string) => void;
}

export class ProcessTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport['onmessage'];
  /** Both by which the SDK knows stdio. */
  readonly stderr = null;
  get pid(): number | null {
    return this.#process?.pid ?? null;
  }
  readonly #options: ProcessTransportOptions;
  readonly #buffer = new ReadBuffer({ maxBufferSize: LIMITS.upstreamMessageBytesMax.value });
  #process: ServerProcess | null = null;
  #isOver = false;
  #isClosed = false;

  constructor(options: ProcessTransportOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { server, onStderr, onEnded } = this.#options;
    const child = await startServerProcess(server);
    this.#process = child;
    if (this.#isClosed) {
      await child.stop(0);
      throw new SdkError(SdkErrorCode.NotConnected, 'closed before the process of the server had started');
    }
    child.stdout.on('data', (chunk: Buffer) => this.#read(chunk));
    child.stderr.setEncoding('utf8').on('data', onStderr);
    // A pipe that takes nothing more is a server that hears nothing more.
    child.stdin.on('error', () => void child.stop(this.#options.closeMs));
    void child.ended.then((how) => {
      this.#isOver = true;
      onEnded(how);
      this.onclose?.();
    });
  }

  /** Resolves when the pipe takes more. */
  send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#process?.stdin;
    if (stdin === undefined || this.#isOver || !stdin.writable)
      return Promise.reject(new SdkError(SdkErrorCode.NotConnected, 'the process of the server has ended'));
    if (stdin.write(serializeMessage(message))) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        stdin.off('drain', done).off('close', done);
        resolve();
      };
      stdin.on('drain', done).on('close', done);
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#process?.stop(this.#options.closeMs);
  }

  #read(chunk: Buffer): void {
    try {
      this.#buffer.append(chunk);
    } catch (error) {
      this.onerror?.(error as Error); // a message beyond the bound: what follows can't be told apart
      void this.close();
      return;
    }
    for (;;) {
      try {
        const message = this.#buffer.readMessage();
        if (message === null) return;
        this.onmessage?.(message);
      } catch (error) {
        this.onerror?.(error as Error);
      }
    }
  }
}
