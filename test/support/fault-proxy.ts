/**
 * A network between MCP clients and a gateway that breaks where the test says: an HTTP proxy, in the test's own process,
 * that sees every request whole before anything becomes of it.
 */
import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Fault =
  /** The connection drops with the request read and nothing passed on. */
  | 'before the request'
  /** The server did all of it; not a byte of its response arrives. */
  | 'after the request'
  /** Headers and the first bytes of the stream arrive, then the connection drops. */
  | 'in the midst of the stream'
  /** All but the last bytes of the response arrive. */
  | 'after half the response';

export const FAULTS: readonly Fault[] = [
  'before the request',
  'after the request',
  'in the midst of the stream',
  'after half the response',
];

export interface PassedRequest {
  httpMethod: string;
  headers: IncomingMessage['headers'];
  /** The JSON-RPC message. */
  message: { id?: unknown; method?: string; params?: Record<string, unknown> };
  /** Reached the server. */
  wasForwarded: boolean;
  /** Resolves when either side has closed the response before its end, or it has ended. */
  closed: Promise<'by the client' | 'ended'>;
}

export interface FaultProxy {
  url: string;
  readonly requests: PassedRequest[];
  of(method: string): PassedRequest[];
  /** The next requests of `method` meet these, in order; null lets one pass. */
  breakNext(method: string, ...faults: (Fault | null)[]): void;
  /** As a server that does not know the method: 2025-11-25 does not know `server/discover`. */
  forget(method: string): void;
  /** Where requests go from now on. */
  target(url: string): void;
  close(): Promise<void>;
}

export async function startFaultProxy(targetUrl: string): Promise<FaultProxy> {
  let target = targetUrl;
  const requests: PassedRequest[] = [];
  const broken = new Map<string, (Fault | null)[]>();
  const forgotten = new Set<string>();
  const server = createServer((request, response) => {
    serve(request, response).catch(() => response.destroy());
  });
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await textOf(request);
    const message = (body === '' ? {} : JSON.parse(body)) as PassedRequest['message'];
    const fault = broken.get(message.method ?? '')?.shift() ?? undefined;
    const closed = once(response, 'close').then(() =>
      response.writableFinished ? 'ended' : 'by the client',
    );
    const passed: PassedRequest = {
      ...{ httpMethod: request.method ?? '', headers: request.headers, message },
      ...{ wasForwarded: fault !== 'before the request', closed: closed },
    };
    requests.push(passed);
    if (fault === 'before the request') return cut(response);
    if (forgotten.has(message.method ?? '')) return answerUnknown(response, message.id);
    await forward({ request, response, body, fault, url: new URL(target) });
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    requests,
    of: (method) => requests.filter(({ message }) => message.method === method),
    breakNext: (method, ...faults) => void broken.set(method, [...(broken.get(method) ?? []), ...faults]),
    forget: (method) => void forgotten.add(method),
    target: (url) => void (target = url),
    async close() {
      const ended = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await ended;
    },
  };
}

interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  body: string;
  fault: Fault | undefined;
  url: URL;
}

async function forward({ request, response, body, fault, url }: Exchange): Promise<void> {
  const upstream = httpRequest(url, {
    method: request.method ?? 'POST',
    headers: { ...request.headers, host: url.host },
    agent: false,
  });
  // Whoever closes the one side has closed the other.
  response.once('close', () => upstream.destroy());
  upstream.once('error', () => cut(response));
  upstream.end(body);
  const [answer] = (await once(upstream, 'response')) as [IncomingMessage];
  answer.once('error', () => cut(response));
  switch (fault) {
    case 'after the request':
      await bytesOf(answer);
      return cut(response);
    case 'after half the response': {
      const bytes = await bytesOf(answer);
      response.writeHead(answer.statusCode ?? 0, headersOf(answer));
      response.write(bytes.subarray(0, bytes.length - 10), () => cut(response));
      return;
    }
    case 'in the midst of the stream':
      response.writeHead(answer.statusCode ?? 0, headersOf(answer));
      response.flushHeaders();
      response.write(': on its way\n\n');
      await bytesOf(answer);
      return cut(response);
    case 'before the request':
    case undefined:
      response.writeHead(answer.statusCode ?? 0, headersOf(answer));
      response.flushHeaders();
      answer.pipe(response);
      return;
  }
}

function answerUnknown(response: ServerResponse, id: unknown): void {
  response.writeHead(404, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32_601, message: 'Method not found' } }));
}

/** Its bytes are chunked anew. */
function headersOf({ headers }: IncomingMessage) {
  const {
    'content-length': _length,
    'transfer-encoding': _encoding,
    connection: _connection,
    ...others
  } = headers;
  return others;
}

const cut = (response: ServerResponse): void => {
  response.socket?.destroy();
};

async function bytesOf(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

const textOf = async (request: IncomingMessage): Promise<string> => (await bytesOf(request)).toString('utf8');
