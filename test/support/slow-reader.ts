/** An HTTP client that reads when the test says so: a socket, a request in bytes, nothing between. */
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { rawHeaders, rawMessage } from './mcp-messages.ts';
import type { RawMessage, RpcResponse } from './mcp-messages.ts';

/** A message of 2026-07-28, or a request as it is. */
type Sent = RawMessage | { headers: Record<string, string>; body: string };

const bytesOf = (sent: Sent) =>
  'body' in sent ? sent : { headers: rawHeaders(sent), body: JSON.stringify(rawMessage(sent)) };

export class SlowReader {
  readonly #socket: Socket;
  #text = '';
  #isCut = false;

  /** Sends the request and reads nothing. */
  constructor(url: string, sent: Sent) {
    const { hostname, port, pathname, host } = new URL(url);
    const { headers, body } = bytesOf(sent);
    const all = { ...headers, host, 'content-length': String(Buffer.byteLength(body)) };
    const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    this.#socket = connect(Number(port), hostname);
    this.#socket.pause();
    this.#socket.on('error', () => undefined); // a cut connection may be reset
    this.#socket.once('close', () => (this.#isCut = true));
    this.#socket.setEncoding('utf8').on('data', (text: string) => (this.#text += text));
    this.#socket.pause();
    this.#socket.write(`POST ${pathname} HTTP/1.1\r\n${head.join('')}\r\n${body}`);
  }

  /** Both sides have closed. Seen only by one that reads. */
  get isCut(): boolean {
    return this.#isCut;
  }

  /** What was read so far, as it came. */
  get text(): string {
    return this.#text;
  }

  read(): void {
    this.#socket.resume();
  }

  /** The messages of an SSE response so far; chunk sizes of the transfer are skipped with all else that is no data. */
  get messages(): RpcResponse[] {
    return this.#text
      .split(/\r?\n/)
      .filter((line) => line.startsWith('data: {') && line.endsWith('}'))
      .map((line) => JSON.parse(line.slice('data: '.length)) as RpcResponse);
  }

  close(): void {
    this.#socket.destroy();
  }
}
