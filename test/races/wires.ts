/** One call on each transport, as its bytes go by: what was sent, what came, and the client's way to give it up. */
import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';
import type { Gateway } from '../../src/gateway/index.ts';
import { deferred } from '../support/deferred.ts';
import {
  beginSession,
  OLD_PROTOCOL,
  oldHeaders,
  oldInitialize,
  oldInitialized,
} from '../support/legacy-session.ts';
import { PROTOCOL, rawHeaders, rawMessage } from '../support/mcp-messages.ts';
import type { RawMessage, RpcResponse } from '../support/mcp-messages.ts';

export interface Wire {
  /** What came for this call so far. */
  readonly received: RpcResponse[];
  /** Settles when another message came. */
  next(): Promise<void>;
  /** The client's side closes what the call came by. */
  closeStream(): void;
  /** `notifications/cancelled`, sent as this transport sends notifications. */
  notifyCancelled(): Promise<void>;
  close(): void;
}

export interface Leg {
  name: string;
  isHttp: boolean;
  /** What cancels a request here (M5.1). */
  cancelledBy: 'notification' | 'closed stream' | 'nothing';
  call(gateway: Gateway, message: RawMessage): Promise<Wire>;
}

const ID = 1;

class Inbox {
  readonly received: RpcResponse[] = [];
  #next = deferred();

  take(message: RpcResponse): void {
    this.received.push(message);
    this.#next.resolve();
    this.#next = deferred();
  }

  next(): Promise<void> {
    return this.#next.promise;
  }
}

const cancelledOf = (meta: object | undefined) => ({
  jsonrpc: '2.0',
  method: 'notifications/cancelled',
  params: { requestId: ID, ...(meta && { _meta: meta }) },
});

interface StdioWords {
  bodyOf(message: RawMessage): object;
  /** What is said before the call. */
  opening: readonly object[];
}

const stdio = (protocol: string, { bodyOf, opening }: StdioWords): Leg => ({
  name: `stdio, ${protocol}`,
  isHttp: false,
  cancelledBy: 'notification',
  async call(gateway, message) {
    const stdin = new PassThrough();
    const stdout = new PassThrough();
    gateway.serveMcpStdio({ stdin, stdout });
    const inbox = new Inbox();
    const opened = new Inbox();
    createInterface({ input: stdout }).on('line', (line) => {
      const received = JSON.parse(line) as RpcResponse;
      (received.id === oldInitialize.id ? opened : inbox).take(received);
    });
    const write = (value: object) => void stdin.write(`${JSON.stringify(value)}\n`);
    for (const each of opening) {
      const answered = opened.next();
      write(each);
      if ('id' in each) await answered;
    }
    const request = bodyOf(message) as { params: { _meta?: object } };
    write(request);
    return {
      received: inbox.received,
      next: () => inbox.next(),
      closeStream: () => void stdin.end(),
      notifyCancelled: () => Promise.resolve(write(cancelledOf(request.params._meta))),
      close: () => void stdin.end(),
    };
  },
});

interface HttpWords {
  headersOf: typeof rawHeaders;
  bodyOf(message: RawMessage): object;
  /** Further headers of everything that follows. */
  begin?(url: string): Promise<Record<string, string>>;
}

const http = (leg: Omit<Leg, 'isHttp' | 'call'>, { headersOf, bodyOf, begin }: HttpWords): Leg => ({
  ...leg,
  isHttp: true,
  async call(gateway, message) {
    const url = `${(await gateway.serveHttp({ port: 0 })).url}/mcp`;
    const closing = new AbortController();
    const inbox = new Inbox();
    const session = (await begin?.(url)) ?? {};
    const send = (method: string, body: object, signal?: AbortSignal) =>
      fetch(url, {
        method: 'POST',
        headers: { ...headersOf({ ...message, method }), ...session },
        body: JSON.stringify(body),
        ...(signal && { signal }),
      });
    const body = bodyOf(message) as { params: { _meta?: object } };
    const reading = send(message.method, body, closing.signal).then((response) => readInto(response, inbox));
    reading.catch(() => undefined); // ends when the stream is closed
    return {
      received: inbox.received,
      next: () => inbox.next(),
      closeStream: () => closing.abort(),
      async notifyCancelled() {
        await (await send('notifications/cancelled', cancelledOf(body.params._meta))).text();
      },
      close: () => closing.abort(),
    };
  },
});

async function readInto(response: Response, inbox: Inbox): Promise<void> {
  let text = '';
  for await (const part of response.body ?? []) {
    text += new TextDecoder().decode(part);
    const frames = text.split('\n\n');
    text = frames.pop() ?? '';
    for (const frame of frames) {
      const data = frame.split('\n').find((line) => line.startsWith('data: '));
      if (data !== undefined) inbox.take(JSON.parse(data.slice('data: '.length)) as RpcResponse);
    }
  }
}

const MODERN: HttpWords = {
  headersOf: rawHeaders,
  bodyOf: (message) => rawMessage({ ...message, id: ID }),
};

const LEGACY: HttpWords = {
  headersOf: () => ({ ...oldHeaders }),
  bodyOf: ({ method, params, meta }) => ({
    jsonrpc: '2.0',
    id: ID,
    method,
    params: { ...params, ...(meta && { _meta: meta }) },
  }),
};

export const LEGS: readonly Leg[] = [
  stdio(PROTOCOL, { ...MODERN, opening: [] }),
  stdio(OLD_PROTOCOL, { ...LEGACY, opening: [oldInitialize, oldInitialized] }),
  http({ name: `Streamable HTTP, ${PROTOCOL}`, cancelledBy: 'closed stream' }, MODERN),
  http(
    { name: `Streamable HTTP, ${OLD_PROTOCOL}, in a session`, cancelledBy: 'notification' },
    {
      ...LEGACY,
      begin: beginSession,
    },
  ),
  http({ name: `Streamable HTTP, ${OLD_PROTOCOL}, without one`, cancelledBy: 'nothing' }, LEGACY),
];
