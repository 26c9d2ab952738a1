/**
 * A reverse proxy as the wary kind do it: nothing is passed on before the first byte of a body, a body is held back as a
 * whole unless the response says `X-Accel-Buffering: no`, and a response that is silent for `idleMs` is cut.
 */
import { createServer, request as httpRequest } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Proxy {
  url: string;
  /** Responses cut for their silence so far. */
  readonly cuts: number;
  close(): Promise<void>;
}

export async function bufferingProxy(target: string, { idleMs }: { idleMs: number }): Promise<Proxy> {
  let cuts = 0;
  const server = createServer((request, response) => {
    const { method, url, headers } = request;
    const upstream = httpRequest(new URL(url ?? '/', target), { method, headers });
    const idle = setTimeout(() => {
      cuts += 1;
      upstream.destroy();
      if (response.headersSent) response.destroy();
      else response.writeHead(504).end();
    }, idleMs);
    response.once('close', () => {
      clearTimeout(idle);
      upstream.destroy();
    });
    upstream.on('error', () => response.destroy());
    upstream.on('response', (answer) => passOn(answer, response, () => idle.refresh()));
    request.pipe(upstream);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get cuts() {
      return cuts;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function passOn(answer: IncomingMessage, response: ServerResponse, isAlive: () => void): void {
  const isBuffered = answer.headers['x-accel-buffering'] !== 'no';
  const held: Buffer[] = [];
  answer.on('data', (chunk: Buffer) => {
    isAlive();
    if (isBuffered) return void held.push(chunk);
    if (!response.headersSent) response.writeHead(answer.statusCode ?? 502, answer.headers);
    response.write(chunk);
  });
  answer.on('end', () => {
    if (!response.headersSent) response.writeHead(answer.statusCode ?? 502, answer.headers);
    response.end(Buffer.concat(held));
  });
  answer.on('error', () => response.destroy());
}
