/** The gateway of a process that has a client: tools from the configuration, callers from its `auth`. */
import { deriveRequestStateKey } from '../client/encryption-keys.ts';
import { createGateway, foreignToolOf, toolOf } from '../gateway/index.ts';
import type { Gateway, GatewayAuth, ToolSpec } from '../gateway/index.ts';
import { directCall } from '../upstream/direct-call.ts';
import { metricsRoute } from './metrics-route.ts';
import { readinessOf } from './readiness.ts';
import type { Config, Holdfast } from '../../worker/index.ts';

export function gatewayOf(
  config: Config,
  {
    client,
    log,
    metrics,
    upstreams,
  }: Pick<Holdfast, 'client' | 'log' | 'metrics'> & Partial<Pick<Holdfast, 'upstreams'>>,
): Gateway {
  const requestStateKey = deriveRequestStateKey(config.encryptionKeys);
  const gateway = createGateway({
    client,
    tools: toolsOf(config, upstreams),
    auth: authOf(config),
    ...(requestStateKey && { requestStateKey }),
    ...(config.file.limits && { limits: definedOf(config.file.limits) }),
    metrics: metrics.registry,
    log,
  });
  upstreams?.onChange(() => gateway.replaceTools(toolsOf(config, upstreams)));
  return gateway;
}

/** The user's own first: their names are never taken by another's tool. */
function toolsOf({ actions, procedures }: Config, upstreams?: Holdfast['upstreams']): ToolSpec[] {
  const own = [...actions, ...(procedures?.contracts ?? [])].map(({ contract }) => toolOf(contract));
  const foreign = (upstreams?.offered ?? []).map(({ action, displayName, entry, line }) => {
    const { name, title, inputSchema, outputSchema } = entry.tool;
    return foreignToolOf({
      ...{ contract: action.contract, displayName, inputSchema },
      ...(title !== undefined && { title }),
      ...(outputSchema && { outputSchema }),
      ...(entry.isDirect && line !== null && { direct: directCall(line, name) }),
    });
  });
  return [...own, ...foreign];
}

/** `/mcp`, `/healthz`, `/readyz` and `/metrics` where the configuration says. */
export async function listen(
  gateway: Gateway,
  config: Config,
  holdfast: Pick<Holdfast, 'check' | 'metrics'>,
): Promise<string> {
  const { allowedHosts, allowedOrigins } = config.file.gateway ?? {};
  const http = await gateway.serveHttp({
    host: config.host,
    port: config.port,
    ...(allowedHosts && { allowedHosts }),
    ...(allowedOrigins && { allowedOrigins }),
    routes: [metricsRoute({ registry: holdfast.metrics.registry, tokenSha256: config.metricsTokenSha256 })],
    readiness: readinessOf(holdfast),
  });
  return http.url;
}

function authOf(config: Config): GatewayAuth {
  const { oauth, principal } = config;
  const tokens = config.file.auth?.tokens;
  if (oauth) return { kind: 'oauth', oauth, stdioPrincipal: principal };
  if (tokens) return { kind: 'tokens', tokens, stdioPrincipal: principal };
  return { kind: 'loopback', principal };
}

function definedOf<T extends object>(values: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}
