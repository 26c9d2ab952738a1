/**
 * The lines of stdin on their way to the SDK's transport, each read exactly first (wire-message.ts).
 *
 * Invariants:
 * 1. A message that is accepted goes on in its place; one that is refused is answered here and goes no further.
 * 2. At most `messageBytesMax` of one line are kept; the rest of a longer one is skipped up to its end.
 */
import { Transform } from 'node:stream';
import type { TransformCallback } from 'node:stream';
import type { Json } from '../task/json.ts';
import { messageRefusal } from './error-mapping.ts';
import type { MessageRefusalReason, JsonRpcError } from './error-mapping.ts';
import { decodeUtf8, readMessage } from './wire-message.ts';

const NEWLINE = 0x0a;

export interface StdioLineOptions {
  messageBytesMax: number;
  messageDepthMax: number;
  answer(error: JsonRpcError): void;
  /** What goes on instead of an accepted message. Default: the message. */
  rewrite?(message: Json): Json;
}

export class StdioLines extends Transform {
  readonly #options: StdioLineOptions;
  #kept: Buffer[] = [];
  #bytes = 0;

  constructor(options: StdioLineOptions) {
    super();
    this.#options = options;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      this.#keep(chunk.subarray(from, end));
      this.#endLine();
      from = end + 1;
    }
    this.#keep(chunk.subarray(from));
    done();
  }

  #keep(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes <= this.#options.messageBytesMax) this.#kept.push(part);
    else this.#kept = [];
  }

  #endLine(): void {
    const isTooLong = this.#bytes > this.#options.messageBytesMax;
    const text = decodeUtf8(Buffer.concat(this.#kept));
    this.#kept = [];
    this.#bytes = 0;
    if (isTooLong) return this.#refuse('body_too_large', null);
    if (text === null) return this.#refuse('not_json', null);
    if (text.trim() === '') return;
    const verdict = readMessage(text, this.#options.messageDepthMax);
    switch (verdict.kind) {
      case 'message':
        this.push(`${JSON.stringify(this.#options.rewrite?.(verdict.value) ?? verdict.value)}\n`);
        return;
      case 'not_json':
      case 'too_deep':
        return this.#refuse(verdict.kind, null);
      case 'inexact':
        return this.#refuse('inexact', verdict.id, verdict.issue.path);
    }
  }

  #refuse(reason: MessageRefusalReason, id: string | number | null, path?: string): void {
    const { messageBytesMax, messageDepthMax } = this.#options;
    const limit = reason === 'too_deep' ? messageDepthMax : messageBytesMax;
    this.#options.answer(messageRefusal(reason, { id, limit, ...(path !== undefined && { path }) }));
  }
}
