/**
 * The gateway: MCP on one side, a `TaskClient` on the other, nothing of its own in between. It holds no task, no key
 * and no result: any number of gateways may stand in front of one system, and each may die at any moment.
 *
 * Guarantees: a call is answered only after its start is durable (M1.2); a dropped request never cancels a task (M5.3),
 * a shutdown neither (M5.4), and open calls then still get their task's handle, and listens their end, within `drainMs`.
 */
import { randomBytes } from 'node:crypto';
import type { McpServer, McpServerFactory } from '@modelcontextprotocol/server';
import type { Registry } from 'prom-client';
import type { TaskAnswer, TaskClient } from '../client/task-client.ts';
import { HoldfastError } from '../contract/error.ts';
import { VERSION } from '../contract/version.ts';
import type { Principal } from '../task/plan.ts';
import { admitOne, createAdmission } from './admission.ts';
import { createAuthenticate } from './auth/authenticate.ts';
import type { GatewayAuth } from './auth/authenticate.ts';
import { principalOf } from './auth/auth-info.ts';
import { hostNames } from './auth/host-names.ts';
import type { Connection } from './caller.ts';
import { createLiveCatalog } from './catalog.ts';
import type { LiveCatalog, Quarantined, ToolLookup } from './catalog.ts';
import { systemClock } from '../contract/clock.ts';
import type { Clock } from '../contract/clock.ts';
import { createOAuthMetadataRoute } from './http/oauth-metadata.ts';
import { startHttp } from './http/server.ts';
import type { HttpOptions, HttpServing } from './http/server.ts';
import { resolveLimits } from './limits.ts';
import type { GatewayLimits } from './limits.ts';
import { silentLog } from './log.ts';
import type { GatewayLog } from './log.ts';
import { createGatewayMetrics, silentMetrics } from './metrics.ts';
import { createMcpServer } from './mcp-server.ts';
import type { ServerParts } from './mcp-server.ts';
import { createOpenCalls } from './open-calls.ts';
import type { RequestEnd } from './request-life.ts';
import { checkRequestStateKey, REQUEST_STATE_KEY_BYTES } from './request-state.ts';
import { startStdio } from './stdio.ts';
import type { StdioOptions, StdioServing } from './stdio.ts';
import { createTaskTools, RESERVED_NAMES } from './task-tools.ts';
import { TaskListens } from './tasks/index.ts';
import type { ToolSpec } from './tool-spec.ts';

export interface GatewayOptions {
  client: TaskClient;
  tools: readonly ToolSpec[];
  auth: GatewayAuth;
  limits?: Partial<GatewayLimits>;
  /**
   * At least 32 bytes, the same for every gateway in front of one system: signs what a client carries from one round of
   * a call to the next. Default: a random one, which serves a single gateway until it restarts.
   */
  requestStateKey?: Uint8Array;
  log?: GatewayLog;
  /** Where it counts (docs/operations.md); one gateway to a registry. Default: nowhere. */
  metrics?: Registry;
  /** What clients see as `serverInfo`. */
  info?: { name: string; version: string };
  clock?: Clock;
  /** Told how each call ended, once (M5.2). */
  requestEnded?: (end: RequestEnd) => void;
  /** Fault seam: awaited when a call's start is durable and its answer known, before the answer is sent. */
  beforeAnswer?: (answer: TaskAnswer) => Promise<void>;
}

export interface Gateway {
  /** Tools that could not be published, each with its reason (M1.1). */
  readonly quarantined: readonly Quarantined[];
  /** From now on these are listed and called; what is under way goes on. */
  replaceTools(tools: readonly ToolSpec[]): void;
  /** Throws `invalid_configuration` where auth does not fit the address, or the address can't be had. */
  serveHttp(options?: HttpOptions): Promise<HttpServing>;
  /** Throws `invalid_configuration` when no principal is configured for stdio. */
  serveMcpStdio(options?: StdioOptions): StdioServing;
  /** Lets open calls answer for up to `drainMs`, then closes every connection. Tasks go on. */
  close(): Promise<void>;
}

export function createGateway(options: GatewayOptions): Gateway {
  const { auth, log = silentLog, clock = systemClock } = options;
  const limits = resolveLimits(options.limits);
  const shutdown = new AbortController();
  const openCalls = createOpenCalls(clock);
  const guards = guardsOf(options, limits);
  const { client, requestEnded } = options;
  const shared = { client, limits, clock, log, shutdown: shutdown.signal, requestEnded };
  const parts: ServerParts & { catalog: LiveCatalog } = {
    ...shared,
    ...partsOf(options, shared),
    metrics: guards.metrics,
    track: (call) => openCalls.track(call),
  };
  const { catalog } = parts;
  const serverFor = (connection: Connection): McpServer => createMcpServer(parts, connection);
  const running: { close(): Promise<void> }[] = [];

  return {
    get quarantined() {
      return catalog.quarantined;
    },
    replaceTools: (tools) => catalog.replace(tools),
    async serveHttp(httpOptions = {}) {
      const names = hostNames(auth, httpOptions.host ?? '127.0.0.1', httpOptions.allowedHosts ?? []);
      const http = await startHttp(
        {
          factory: ({ era, authInfo }) =>
            serverFor({ era, transport: 'http', principal: principalOf(authInfo) }),
          sessionServerFor: (principal) => serverFor({ era: 'legacy', transport: 'http-session', principal }),
          mayBlock: (tool) => mayBlock(catalog.find(tool)),
          ...guards,
          hostNames: names,
          publicRoutes: auth.kind === 'oauth' ? [createOAuthMetadataRoute(auth.oauth)] : [],
          limits,
          clock,
          log,
          isClosing: () => shutdown.signal.aborted,
        },
        httpOptions,
      );
      running.push(http);
      log.info({ url: `${http.url}/mcp` }, 'MCP over HTTP');
      return http;
    },
    serveMcpStdio(stdioOptions = {}) {
      const principal = stdioPrincipal(auth);
      const factory: McpServerFactory = ({ era }) =>
        serverFor({ era, transport: 'stdio', principal, admit: () => admitOne(guards.admission, principal) });
      const stdio = startStdio({ factory, limits, log }, stdioOptions);
      running.push(stdio);
      return stdio;
    },
    async close() {
      shutdown.abort(); // before any connection is cut: a cut looks like a caller who left (M5.4)
      if (!(await openCalls.settle(limits.drainMs)))
        log.warn({ open: openCalls.size }, 'calls still open at shutdown');
      await Promise.all(running.splice(0).map((each) => each.close()));
    },
  };
}

type Shared = Pick<ServerParts, 'client' | 'limits' | 'clock' | 'log' | 'shutdown' | 'requestEnded'>;

function partsOf(
  options: GatewayOptions,
  shared: Shared,
): Omit<ServerParts, keyof Shared | 'metrics' | 'track' | 'catalog'> & { catalog: LiveCatalog } {
  const catalog = createLiveCatalog(options.tools, RESERVED_NAMES);
  for (const { name, error } of catalog.quarantined)
    shared.log.error({ tool: name, reason: error.message }, 'tool quarantined');
  return {
    catalog,
    taskTools: createTaskTools(shared),
    listens: new TaskListens(shared),
    requestStateKey: checkRequestStateKey(options.requestStateKey ?? randomBytes(REQUEST_STATE_KEY_BYTES)),
    info: options.info ?? { name: 'holdfast', version: VERSION },
    beforeAnswer: options.beforeAnswer ?? (() => Promise.resolve()),
  };
}

/** Whoever calls a tool that needs the Tasks extension is answered within `inlineWaitMs`, or refused. */
const mayBlock = (tool: ToolLookup): boolean => tool.kind !== 'action' || tool.spec.needsTasks !== true;

/** What stands before a call: who it is, how many they have, and the count of it all. */
function guardsOf({ auth, log = silentLog, metrics: registry }: GatewayOptions, limits: GatewayLimits) {
  const metrics = registry ? createGatewayMetrics(registry) : silentMetrics;
  return {
    authenticate: createAuthenticate(auth, log),
    admission: createAdmission({ limits, refused: metrics.refused }),
    metrics,
  };
}

function stdioPrincipal(auth: GatewayAuth): Principal {
  const principal = auth.kind === 'loopback' ? auth.principal : auth.stdioPrincipal;
  if (principal) return principal;
  throw new HoldfastError('invalid_configuration', 'stdio has no tokens: configure auth.stdioPrincipal.', {
    details: { name: 'auth.stdioPrincipal' },
  });
}
