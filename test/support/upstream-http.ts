/** An `UpstreamServer` over HTTP, in the test's own process. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { UpstreamServer } from './upstream-server.ts';
import type { UpstreamServerOptions, WireMessage } from './upstream-server.ts';

export interface UpstreamHttp {
  readonly url: string;
  /** Forgets its sessions and cuts every connection, as a process that was killed does. */
  restart(): Promise<void>;
  /** The next so many requests are cut before they are read. */
  cutBeforeReading(requests: number): void;
  close(): Promise<void>;
}

export async function startUpstreamHttp(options: UpstreamServerOptions): Promise<UpstreamHttp> {
  let sessions = new Set<string>();
  let cuts = 0;
  let isCutting = false;
  let upstream = new UpstreamServer(options);
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (cuts > 0) {
      cuts -= 1;
      return void request.socket.destroy();
    }
    if (request.method !== 'POST') return void response.writeHead(405).end();
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const message = JSON.parse(Buffer.concat(chunks).toString('utf8')) as WireMessage;
    const { headers } = request;
    const session = headers['mcp-session-id'];
    if (message.method === 'initialize') {
      const id = randomUUID();
      sessions.add(id);
      response.setHeader('mcp-session-id', id);
    } else if (typeof session === 'string' && !sessions.has(session))
      return void response.writeHead(404).end('who are you?');
    const { id } = message;
    if (id === undefined) {
      upstream.receive(message, { write: () => undefined, die: () => undefined, headers });
      return void response.writeHead(202).end();
    }
    response.once('close', () => {
      if (!response.writableFinished && !isCutting) upstream.note({ message: {}, closed: id });
    });
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.flushHeaders();
    upstream.receive(message, {
      headers,
      write(text) {
        response.write(`event: message\ndata: ${text}\n\n`);
        if (!text.includes('"method":"notifications/')) response.end();
      },
      die() {
        response.removeAllListeners('close');
        response.socket?.destroy();
      },
    });
  };
  const server = createServer(
    (request, response) => void serve(request, response).catch(() => response.destroy()),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const cutAll = async (): Promise<void> => {
    isCutting = true;
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
    await new Promise((resolve) => setImmediate(resolve)); // until each response has heard of it
  };
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    async restart() {
      sessions = new Set();
      upstream = new UpstreamServer(options);
      await cutAll();
      server.listen(port, '127.0.0.1');
      await once(server, 'listening');
      isCutting = false;
    },
    cutBeforeReading: (requests) => void (cuts = requests),
    close: cutAll,
  };
}
