/**
 * The fault target as a process of its own: `node fault-target-server.ts [--port N] [--file F]`.
 * Prints `{"url": …}` as its first line and ends when its stdin does, so that it outlives every worker a test kills
 * but never the test itself.
 *
 *   POST /conditional/:action      applies once per Idempotency-Key    {value} → 200 Resource
 *   POST /unsafe/:action           applies as often as it is asked     {value} → 200 Resource
 *   GET  /operations/:operationId  200 Resource | 404                  status look-up
 *   GET  /resources/:resourceId    200 Resource | 404                  read-back
 *   POST /resources/:id/undo       idempotent by Idempotency-Key       200 | 404 | 409
 *   /control/…                     modes, gates, report (see fault-target.ts)
 */
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { FaultTargetBook } from './fault-target-book.ts';
import type { Mode, Rule } from './fault-target-mode.ts';

const { values: options } = parseArgs({ options: { port: { type: 'string' }, file: { type: 'string' } } });
const book = new FaultTargetBook(options.file ?? null);

const server = createServer((request, response) => {
  route(request, response).catch((error: unknown) => reply(response, 500, { error: String(error) }));
});
server.keepAliveTimeout = 0; // an idle connection closed by us would look like a fault nobody asked for
server.listen(Number(options.port ?? 0), '127.0.0.1', () => {
  console.log(JSON.stringify({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }));
});
process.stdin.resume().on('end', () => process.exit(0));

async function route(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://target');
  const [head = '', name = '', tail = ''] = url.pathname.split('/').slice(1).map(decodeURIComponent);
  const body = await bodyOf(request);
  const key = header(request, 'idempotency-key');
  const fence = header(request, 'x-fence');
  const asked = `${request.method} /${head}`;
  if (head === 'control') return control(name, url.searchParams, body, response);
  if (asked === 'POST /conditional' || asked === 'POST /unsafe') {
    if (key === null) return reply(response, 400, { error: 'Idempotency-Key is missing' });
    const wanted = {
      action: name,
      operationId: key,
      value: String(body['value']),
      dedupes: head === 'conditional',
    };
    const mode = book.receive('apply', { action: name, operationId: key, fence });
    const apply = () => ({ status: 200, body: book.apply(wanted, mode) });
    const lie = { ...wanted, resourceId: 'r0', undone: false };
    return act(mode, response, apply, lie);
  }
  if (asked === 'POST /resources' && tail === 'undo') {
    if (key === null) return reply(response, 400, { error: 'Idempotency-Key is missing' });
    const mode = book.receive('undo', { action: null, operationId: key, fence });
    const undo = () => {
      const outcome = book.undo(name, key);
      return {
        status: { undone: 200, unknown_resource: 404, undone_by_another: 409 }[outcome],
        body: { outcome },
      };
    };
    return act(mode, response, undo, { outcome: 'undone' });
  }
  if (asked === 'GET /operations') {
    const mode = book.receive('lookup', { action: null, operationId: name, fence });
    return act(mode, response, () => shown({ operationId: name }), {});
  }
  if (asked === 'GET /resources') {
    const mode = book.receive('read', { action: null, operationId: null, fence });
    return act(mode, response, () => shown({ resourceId: name }), {});
  }
  return reply(response, 404, { error: `no ${asked}` });
}

/** Carries out one request under its mode. `apply` does the thing and says what an honest answer would be. */
async function act(
  mode: Mode,
  response: ServerResponse,
  apply: () => { status: number; body: object },
  lie: object,
): Promise<void> {
  switch (mode.kind) {
    case 'ok':
    case 'applyUnseen': {
      const { status, body } = apply();
      return reply(response, status, body);
    }
    case 'dropBefore':
      return drop(response);
    case 'applyThenDrop':
      apply();
      return drop(response);
    case 'applyThenTruncate':
      return truncate(response, apply().body);
    case 'applyThenHang':
      apply();
      return;
    case 'dropThenApply':
      drop(response);
      if (mode.gate !== undefined) await book.pass(mode.gate);
      apply();
      return;
    case 'hold': {
      const early = mode.when === 'afterApply' ? apply() : null;
      await book.pass(mode.gate);
      const { status, body } = early ?? apply();
      return reply(response, status, body);
    }
    case 'refuse':
      if (mode.retryAfterSeconds !== undefined) response.setHeader('retry-after', mode.retryAfterSeconds);
      return reply(response, mode.status, { error: mode.message ?? `refused with ${mode.status}` });
    case 'proxyError':
      if (mode.applies) apply();
      return reply(response, mode.status, { error: 'upstream' });
    case 'lie':
      return reply(response, 200, lie);
    case 'applyOther':
      return reply(response, 200, { ...apply().body, value: (lie as { value?: string }).value });
    default:
      return mode satisfies never;
  }
}

async function control(
  name: string,
  query: URLSearchParams,
  body: Record<string, unknown>,
  response: ServerResponse,
) {
  switch (name) {
    case 'mode':
      book.addRule(body as unknown as Rule);
      break;
    case 'release':
      book.release(String(body['gate']));
      break;
    case 'reached':
      await book.reached(String(query.get('gate')), Number(query.get('count')));
      break;
    case 'reset':
      book.reset();
      break;
    case 'report':
      break;
    default:
      return reply(response, 404, { error: `no control ${name}` });
  }
  reply(response, 200, name === 'report' ? book.report() : {});
}

function shown(find: { operationId: string } | { resourceId: string }): { status: number; body: object } {
  const resource = book.look(find);
  return resource ? { status: 200, body: resource } : { status: 404, body: { error: 'not found' } };
}

function reply(response: ServerResponse, status: number, body: object): void {
  if (response.destroyed || response.headersSent) return; // whoever asked is gone
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function drop(response: ServerResponse): void {
  response.socket?.resetAndDestroy();
}

function truncate(response: ServerResponse, body: object): void {
  const whole = JSON.stringify(body);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(whole) });
  response.write(whole.slice(0, whole.length / 2), () => response.socket?.destroy());
}

function header(request: IncomingMessage, name: string): string | null {
  const value = request.headers[name];
  return typeof value === 'string' ? value : null;
}

async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString('utf8');
  return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
}
