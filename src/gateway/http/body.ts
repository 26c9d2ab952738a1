/** The request body as a message, or why not; read once, within bounds, before any of it is believed. */
import type { IncomingMessage } from 'node:http';
import { decodeUtf8, readMessage } from '../wire-message.ts';
import type { MessageVerdict } from '../wire-message.ts';

export type BodyVerdict =
  | MessageVerdict
  | { kind: 'body_too_large' }
  /** The client went away while sending. */
  | { kind: 'gone' };

export async function readBody(
  request: IncomingMessage,
  { messageBytesMax, messageDepthMax }: { messageBytesMax: number; messageDepthMax: number },
): Promise<BodyVerdict> {
  // What is left of a body too large is read and dropped by Node, so that the client gets to read the answer.
  if (Number(request.headers['content-length'] ?? 0) > messageBytesMax) return { kind: 'body_too_large' };
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > messageBytesMax) return { kind: 'body_too_large' };
      chunks.push(chunk);
    }
  } catch {
    return { kind: 'gone' };
  }
  const text = decodeUtf8(Buffer.concat(chunks));
  return text === null ? { kind: 'not_json' } : readMessage(text, messageDepthMax);
}
