/**
 * The little the example services have in common: JSON over node:http, a book of what really happened, and a
 * behaviour that can be switched from outside, so that the demo and the tests can watch a service misbehave.
 *
 * Every service answers, beside its own paths:
 *   POST /control/behave   {behaviour, times?, at?}   the next `times` effects (default: all) behave that way;
 *                                                     `at`: only those of paths that begin so, as `charges`
 *   POST /control/release  {}                    lets held replies go, now and later
 *   GET  /control/books                          what the service says really happened
 */
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * `lie` answers 200 and does nothing; `wrong` does something else than asked; `hold` does it and keeps the reply back;
 * `drop` does it and cuts the connection; `busy` answers 503 with `Retry-After: 1` and does nothing.
 */
export type Behaviour = 'normal' | 'lie' | 'wrong' | 'hold' | 'drop' | 'busy';

export interface Call {
  method: string;
  /** Decoded path segments: `/charges/ch_1` is `['charges', 'ch_1']`. */
  path: string[];
  query: URLSearchParams;
  body: Record<string, unknown>;
  idempotencyKey: string | null;
}
export interface Reply {
  status: number;
  body: object;
}
/** What changes the world: done or not, and answered, as the behaviour says. */
export interface Deed {
  apply(wrong: boolean): Reply;
  lie: object;
}

export interface ServiceDefinition<Books extends object> {
  route(call: Call): Reply | Deed;
  books(): Books;
}

export interface Service<Books extends object> {
  url: string;
  books(): Books;
  behave(behaviour: Behaviour, times?: number, at?: string): void;
  /** Resolves when the next reply is being held (at once if one is). */
  held(): Promise<void>;
  release(): void;
  close(): Promise<void>;
}

/** Listens on the loopback address only. Port 0 takes a free one. */
export async function startService<Books extends object>(
  definition: ServiceDefinition<Books>,
  port: number,
): Promise<Service<Books>> {
  const switchboard = new Switchboard();
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const call = await callOf(request);
    const [head, name] = call.path;
    if (head === 'control' && name === 'books')
      return send(response, { status: 200, body: definition.books() });
    if (head === 'control') return send(response, switchboard.control(String(name), call.body));
    const answer = definition.route(call);
    if ('status' in answer) return send(response, answer);
    const reply = await switchboard.carryOut(answer, String(head));
    if (reply === 'drop') response.socket?.destroy();
    else send(response, reply);
  };
  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) =>
      send(response, {
        status: 500,
        body: { error: error instanceof Error ? error.message : String(error) },
      }),
    );
  });
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve, reject) =>
    server.once('error', reject).listen(port, '127.0.0.1', resolve),
  );
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    books: () => definition.books(),
    behave: (behaviour, times, at) => switchboard.behave(behaviour, times, at),
    held: () => switchboard.held(),
    release: () => switchboard.release(),
    close: async () => {
      switchboard.release();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

class Switchboard {
  private behaviour: Behaviour = 'normal';
  private left = Number.POSITIVE_INFINITY;
  private at: string | undefined;
  private holding = 0;
  private released = false;
  private waiting: (() => void)[] = [];

  behave(behaviour: Behaviour, times = Number.POSITIVE_INFINITY, at?: string): void {
    this.behaviour = behaviour;
    this.left = times;
    this.at = at;
    this.released = false;
  }

  release(): void {
    this.released = true;
    this.wake();
  }

  async held(): Promise<void> {
    while (this.holding === 0) await new Promise<void>((resolve) => this.waiting.push(resolve));
  }

  async carryOut(deed: Deed, head: string): Promise<Reply | 'drop'> {
    const isMeant = this.left > 0 && (this.at === undefined || this.at === head);
    const behaviour = isMeant ? this.behaviour : 'normal';
    if (isMeant) this.left -= 1;
    switch (behaviour) {
      case 'normal':
        return deed.apply(false);
      case 'wrong':
        return deed.apply(true);
      case 'lie':
        return { status: 200, body: deed.lie };
      case 'busy':
        return { status: 503, body: { error: 'come back later' } };
      case 'drop':
        deed.apply(false);
        return 'drop';
      case 'hold': {
        const reply = deed.apply(false);
        this.holding += 1;
        this.wake();
        while (!this.released) await new Promise<void>((resolve) => this.waiting.push(resolve));
        this.holding -= 1;
        return reply;
      }
      default:
        return behaviour satisfies never;
    }
  }

  control(name: string, body: Record<string, unknown>): Reply {
    if (name === 'release') this.release();
    else if (name === 'behave')
      this.behave(
        body['behaviour'] as Behaviour,
        body['times'] as number | undefined,
        body['at'] as string | undefined,
      );
    else return { status: 404, body: { error: `no control named ${name}` } };
    return { status: 200, body: {} };
  }

  private wake(): void {
    for (const each of this.waiting.splice(0)) each();
  }
}

function send(response: ServerResponse, { status, body }: Reply): void {
  if (response.destroyed || response.headersSent) return;
  if (status === 503) response.setHeader('retry-after', '1');
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

async function callOf(request: IncomingMessage): Promise<Call> {
  const url = new URL(request.url ?? '/', 'http://service');
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString('utf8');
  const key = request.headers['idempotency-key'];
  return {
    method: request.method ?? 'GET',
    path: url.pathname.split('/').slice(1).map(decodeURIComponent),
    query: url.searchParams,
    body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>),
    idempotencyKey: typeof key === 'string' ? key : null,
  };
}
