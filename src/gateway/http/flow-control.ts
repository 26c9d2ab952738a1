/**
 * An SSE response on its way from the SDK to its reader (M6.1, M6.2).
 *
 * The SDK's stream takes whatever is written and never waits; Node's writer takes when the reader does. Between them
 * stands one bounded queue.
 *
 * Invariants:
 * 1. What the SDK writes is taken at once; what waits is bounded by the queue, plus the one frame in Node's hands.
 * 2. The first frame is a comment, so that headers and first byte leave before there is anything to say.
 * 3. A reader that takes nothing for `stalledReaderMs` while something waits is cut, and so is one that a response no
 *    longer fits for, after what it was still owed. Everything it held is freed; a cut looks like any other disconnect.
 */
import type { ServerResponse } from 'node:http';
import { HoldfastError } from '../../contract/error.ts';
import type { Clock } from '../../contract/clock.ts';
import type { GatewayLimits } from '../limits.ts';
import type { GatewayLog } from '../log.ts';
import { FrameQueue } from './frame-queue.ts';
import { SseFrame } from './sse-frame.ts';

export interface FlowParts {
  limits: GatewayLimits;
  clock: Clock;
  log: GatewayLog;
}

const OPENING = new TextEncoder().encode(': open\n\n');

/** `response` itself unless it is SSE. */
export function withFlowControl(response: Response, outgoing: ServerResponse, parts: FlowParts): Response {
  if (response.body === null || !response.headers.get('content-type')?.startsWith('text/event-stream'))
    return response;
  const flow = new Flow(response.body.getReader(), outgoing, parts);
  return new Response(flow.body, { status: response.status, headers: response.headers });
}

class Flow {
  readonly body: ReadableStream<Uint8Array>;
  readonly #parts: FlowParts;
  readonly #source: ReadableStreamDefaultReader<Uint8Array>;
  readonly #outgoing: ServerResponse;
  readonly #queue: FrameQueue<SseFrame>;
  /** Null once `body` has ended. Whoever reads it waits until then, whether the connection stands or not. */
  #open: ReadableStreamDefaultController<Uint8Array> | null = null;
  /** `ended`: nothing more comes. `cutting`: the same, and then the connection is cut. */
  #state: 'open' | 'ended' | 'cutting' | 'gone' = 'open';
  /** Gives the reader, which waits, what there is. */
  #deliver: (() => void) | null = null;
  #callOffStall: (() => void) | null = null;

  constructor(source: ReadableStreamDefaultReader<Uint8Array>, outgoing: ServerResponse, parts: FlowParts) {
    this.#source = source;
    this.#outgoing = outgoing;
    this.#parts = parts;
    const { streamBytesMax: bytesMax, streamFramesMax: framesMax } = parts.limits;
    this.#queue = new FrameQueue({ bytesMax, framesMax });
    this.#queue.push(new SseFrame(OPENING));
    this.body = new ReadableStream(
      {
        start: (controller) => {
          this.#open = controller;
        },
        pull: (controller) => this.#pull(controller),
        cancel: (reason) => {
          this.#open = null;
          this.#leave(reason);
        },
      },
      { highWaterMark: 0 },
    );
    outgoing.once('close', () => this.#leave('the connection has closed'));
    void this.#drainSource();
  }

  /** Settles when the reader was given something. */
  #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#callOffStall?.();
    this.#callOffStall = null;
    return new Promise((resolve) => {
      this.#deliver = () => {
        const taken = this.#queue.take();
        if (taken === null && this.#state === 'open') return; // the reader waits
        this.#deliver = null;
        if (taken !== null) {
          const { frame, dropped } = taken;
          controller.enqueue(dropped === null ? frame.chunk : frame.marked(dropped));
        } else if (this.#state === 'cutting') this.#outgoing.destroy();
        else if (this.#state === 'ended') this.#endBody();
        this.#watch();
        resolve();
      };
      this.#deliver();
    });
  }

  async #drainSource(): Promise<void> {
    try {
      for (let part = await this.#source.read(); !part.done; part = await this.#source.read()) {
        if (this.#state !== 'open') return;
        if (this.#queue.push(new SseFrame(part.value)) === 'refused') return this.#refuse();
        this.#offer();
      }
      this.#end('ended');
    } catch {
      this.#end('cutting'); // the SDK's stream broke off: no end that could be taken for one
    }
  }

  #end(how: 'ended' | 'cutting'): void {
    if (this.#state === 'open') this.#state = how;
    this.#offer();
  }

  #offer(): void {
    this.#deliver?.();
    this.#watch();
  }

  /** Runs while the reader is owed something and does not take it. */
  #watch(): void {
    const isOwed = this.#state === 'open' ? this.#queue.size > 0 : this.#state !== 'gone';
    if (!isOwed || this.#deliver !== null || this.#callOffStall !== null) return;
    const { limits, clock } = this.#parts;
    this.#callOffStall = clock.after(limits.stalledReaderMs, () => this.#cutStalled());
  }

  #cutStalled(): void {
    const { limits, log } = this.#parts;
    const { size: frames, bytes } = this.#queue;
    log.warn({ frames, bytes, stalledReaderMs: limits.stalledReaderMs }, 'a stalled reader was disconnected');
    this.#outgoing.destroy();
    this.#leave('the reader stalled');
  }

  #refuse(): void {
    const { log, limits } = this.#parts;
    const { streamBytesMax: bytesMax, streamFramesMax: framesMax } = limits;
    const error = new HoldfastError(
      'response_overflow',
      `The responses that wait for one reader exceed ${bytesMax} bytes or ${framesMax} frames; the connection ends after them.`,
      { details: { bytesMax, framesMax } },
    );
    log.warn({ err: error }, 'a response was refused, none was dropped');
    this.#source.cancel(error).catch(() => undefined);
    this.#end('cutting');
  }

  #leave(reason: unknown): void {
    if (this.#state === 'gone') return;
    this.#state = 'gone';
    this.#callOffStall?.();
    this.#callOffStall = null;
    this.#deliver = null;
    this.#queue.clear();
    this.#source.cancel(reason).catch(() => undefined);
    this.#endBody();
  }

  #endBody(): void {
    this.#open?.close();
    this.#open = null;
  }
}
