/**
 * `/metrics`: on the gateway's address, or on one of a worker's own. Whoever holds the configured token may read it;
 * without one configured, whoever asks from this machine, by a name of this machine, through no proxy.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Registry } from 'prom-client';
import { HoldfastError } from '../contract/error.ts';
import { isLoopbackHost } from '../contract/oauth-definition.ts';
import type { HttpRoute } from '../gateway/index.ts';

export interface MetricsOptions {
  registry: Registry;
  /** SHA-256 of the token that reads, in hex; null for none. */
  tokenSha256: string | null;
}

export const METRICS_PATH = '/metrics';

export function metricsRoute({ registry, tokenSha256 }: MetricsOptions): HttpRoute {
  return {
    path: METRICS_PATH,
    async handle(request, response) {
      const mayRead = tokenSha256 === null ? isFromHere(request) : holdsToken(request, tokenSha256);
      if (!mayRead) return refuse(response, tokenSha256 !== null);
      const text = await registry.metrics();
      response.writeHead(200, { 'content-type': registry.contentType, 'cache-control': 'no-store' });
      response.end(text);
    },
  };
}

function refuse(response: ServerResponse, takesToken: boolean): void {
  const message = takesToken
    ? 'Send `Authorization: Bearer …` with the token of HOLDFAST_METRICS_TOKEN_SHA256.'
    : 'Only this machine may read this; configure HOLDFAST_METRICS_TOKEN_SHA256 for others.';
  if (takesToken) response.setHeader('www-authenticate', 'Bearer realm="holdfast-metrics"');
  sendJson(response, takesToken ? 401 : 403, { error: { code: 'unauthorized', message, details: {} } });
}

/** Not the gateway's own: a worker loads nothing of it. */
function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(JSON.stringify(body));
}

function holdsToken({ headers }: IncomingMessage, tokenSha256: string): boolean {
  const [scheme, token = ''] = (headers.authorization ?? '').split(' ');
  const presented = createHash('sha256').update(token, 'utf8').digest();
  return scheme?.toLowerCase() === 'bearer' && timingSafeEqual(presented, Buffer.from(tokenSha256, 'hex'));
}

/** A proxy on this machine brings requests of others, and most say so. */
function isFromHere({ socket, headers }: IncomingMessage): boolean {
  const peer = (socket.remoteAddress ?? '').replace(/^::ffff:/, '');
  const isForwarded = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'].some((name) => name in headers);
  const host = `http://${headers.host ?? ''}`;
  const name = URL.canParse(host) ? new URL(host).hostname : '';
  return isLoopbackHost(peer) && isLoopbackHost(name) && !isForwarded;
}

export interface MetricsServer {
  port: number;
  close(): Promise<void>;
}

interface MetricsAddress {
  host: string;
  port: number;
  /** Rejects while the process can do nothing; `/readyz` answers 503 then. */
  readiness: () => Promise<void>;
}

/**
 * For a process without a gateway: `/metrics`, and `/healthz` and `/readyz` to anyone, as the gateway has them. Throws
 * `invalid_configuration` for a reachable address without a token.
 */
export async function serveMetrics(
  options: MetricsOptions,
  { host, port, readiness }: MetricsAddress,
): Promise<MetricsServer> {
  if (options.tokenSha256 === null && !isLoopbackHost(host))
    throw unusable(
      'HOLDFAST_METRICS_TOKEN_SHA256',
      `Refusing to serve metrics on ${host} without a token. Configure one, or listen on 127.0.0.1.`,
    );
  const route = metricsRoute(options);
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    switch (request.url?.split('?')[0]) {
      case METRICS_PATH:
        return route.handle(request, response);
      case '/healthz':
        return sendJson(response, 200, { status: 'ok' });
      case '/readyz':
        return readiness().then(
          () => sendJson(response, 200, { status: 'ready' }),
          () => sendJson(response, 503, { status: 'not_ready' }),
        );
      default:
        return sendJson(response, 404, { error: { code: 'not_found', message: 'There is nothing here.' } });
    }
  };
  server.listen(port, host);
  await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
    throw unusable(
      'HOLDFAST_WORKER_METRICS_PORT',
      `Can not listen on ${host}:${port}: ${error.code ?? error.message}. Set HOLDFAST_WORKER_METRICS_PORT to a free port.`,
    );
  });
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

const unusable = (name: string, message: string): HoldfastError =>
  new HoldfastError('invalid_configuration', message, { details: { name } });
