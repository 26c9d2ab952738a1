/**
 * MCP over Streamable HTTP: `/mcp`, `/healthz`, `/readyz`, and a seam for further routes.
 *
 * What comes first for every request: Host and Origin, so that no web page reaches a gateway on this machine. Health
 * checks come before even that: they say nothing about anyone, and probes address machines by number.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostHeaderValidation, originValidation } from '@modelcontextprotocol/node';
import { HoldfastError } from '../../contract/error.ts';
import { FIXED_GATEWAY_LIMITS } from '../../contract/gateway-limits.ts';
import { asHoldfastError } from '../error-mapping.ts';
import { createMcpRoute } from './mcp-route.ts';
import type { McpRouteParts } from './mcp-route.ts';
import { sendJson } from './send-json.ts';

/** A path of someone else's on the same address: `/metrics`, `/console`. It authenticates its callers itself. */
export interface HttpRoute {
  /** Matches the path itself and all below it. */
  path: string;
  handle(request: IncomingMessage, response: ServerResponse): void | Promise<void>;
}

export interface HttpOptions {
  /** Default 127.0.0.1. */
  host?: string;
  /** Default 7400; 0 takes any free port. */
  port?: number;
  /** Further `Host` names (without port) under which clients reach this gateway. */
  allowedHosts?: string[];
  /** Further `Origin` host names of web pages that may call. A request without `Origin` comes from no web page. */
  allowedOrigins?: string[];
  routes?: HttpRoute[];
  /** Rejects while calls could not be served; `/readyz` answers 503 then. */
  readiness?: () => Promise<void>;
}

export interface HttpServing {
  /** `http://HOST:PORT`, without a path. */
  url: string;
  port: number;
}

export interface HttpParts extends McpRouteParts {
  /** The `Host` names that are answered. */
  hostNames: string[];
  /** Answered to anyone, whatever Host and Origin. */
  publicRoutes: readonly HttpRoute[];
  isClosing: () => boolean;
}

export interface RunningHttp extends HttpServing {
  /** Cuts what is still open. */
  close(): Promise<void>;
}

export async function startHttp(parts: HttpParts, options: HttpOptions): Promise<RunningHttp> {
  const { host = '127.0.0.1', port = 7400, allowedOrigins = [] } = options;
  const mcp = createMcpRoute(parts);
  const isHostAllowed = hostHeaderValidation(parts.hostNames);
  const isOriginAllowed = originValidation([...parts.hostNames, ...allowedOrigins]);
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = pathOf(request);
    if (path === '/healthz') return sendJson(response, 200, { status: 'ok' });
    if (path === '/readyz') return answerReadiness(response, parts, options.readiness);
    const published = parts.publicRoutes.find((each) => path === each.path);
    if (published) return published.handle(request, response);
    if (!isHostAllowed(request, response) || !isOriginAllowed(request, response)) return;
    const route = options.routes?.find((each) => path === each.path || path.startsWith(`${each.path}/`));
    if (route) return route.handle(request, response);
    if (path === '/mcp') return mcp.handle(request, response);
    sendJson(response, 404, {
      error: { code: 'not_found', message: 'There is nothing here. MCP is served at /mcp.' },
    });
  };
  const open = new Set<ServerResponse>();
  const server = createServer((request, response) => {
    open.add(response);
    response.once('close', () => open.delete(response));
    serve(request, response).catch((error: unknown) => {
      const { code, message, details } = asHoldfastError(error, parts.log, 'an HTTP request');
      if (response.headersSent) response.destroy();
      else sendJson(response, 500, { error: { code, message, details } });
    });
  });
  server.requestTimeout = FIXED_GATEWAY_LIMITS.requestArrivesMs.value;
  const address = await listen(server, host, port);
  return {
    url: `http://${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`,
    port: address.port,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      await mcp.close();
      await allWritten(open);
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Answers given before the shutdown reach their clients, as long as those read them. */
async function allWritten(open: ReadonlySet<ServerResponse>): Promise<void> {
  const signal = AbortSignal.timeout(FIXED_GATEWAY_LIMITS.answerFlushMs.value);
  await Promise.allSettled([...open].map((response) => once(response, 'close', { signal })));
}

async function answerReadiness(
  response: ServerResponse,
  parts: HttpParts,
  readiness?: () => Promise<void>,
): Promise<void> {
  if (parts.isClosing()) return sendJson(response, 503, { status: 'closing' });
  try {
    await readiness?.();
    sendJson(response, 200, { status: 'ready' });
  } catch (error) {
    const { code, message } = asHoldfastError(error, parts.log, 'the readiness check');
    sendJson(response, 503, { status: 'not_ready', error: { code, message } });
  }
}

/** Never throws: a target that is no path is nobody's path. */
function pathOf(request: IncomingMessage): string {
  const target = request.url ?? '/';
  return URL.canParse(target, 'http://localhost') ? new URL(target, 'http://localhost').pathname : '';
}

function canNotListen(host: string, port: number, cause: NodeJS.ErrnoException): HoldfastError {
  const reason = cause.code ?? 'unknown';
  const [name, fix] =
    reason === 'EADDRINUSE' || reason === 'EACCES'
      ? ['HOLDFAST_PORT', 'a port from 1 to 65535 that is free and that this user may take']
      : ['HOLDFAST_HOST', 'an address or name of this machine'];
  const message = `Can not listen on ${host}:${port}: ${cause.code ?? cause.message}. Set ${name} to ${fix}.`;
  const details = { name, host, port, reason };
  return new HoldfastError('invalid_configuration', message, { details, cause });
}

function listen(server: Server, host: string, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(canNotListen(host, port, error)));
    server.listen(port, host, () => {
      const address = server.address();
      if (address === null || typeof address === 'string')
        throw new Error('an HTTP server listens on a TCP port');
      resolve(address);
    });
  });
}
