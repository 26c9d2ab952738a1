/** Other people's servers of one process, from its configuration: lines where it keeps them, lists from the ledger. */
import type { Ledger } from '../src/ledger/ledger.ts';
import type { openUpstream } from '../src/upstream/connection/open-upstream.ts';
import { UpstreamServer } from '../src/upstream/upstream-server.ts';
import type { ListStore } from '../src/upstream/upstream-server.ts';
import { Upstreams } from '../src/upstream/upstreams.ts';
import type { UpstreamTool } from '../src/upstream/upstream.ts';
import { VERSION } from '../src/contract/version.ts';
import type { UpstreamDefinition, UpstreamTarget } from '../src/contract/upstream-definition.ts';
import type { JsonObject } from '../src/task/json.ts';
import type { Config } from './config.ts';
import type { Log } from './logger.ts';

export interface OpenUpstreamsOptions {
  config: Pick<Config, 'upstreams' | 'actions' | 'procedures' | 'hmacKey'>;
  ledger: Pick<Ledger, 'upstreamList' | 'keepUpstreamList' | 'keepBefore' | 'recallBefore' | 'forgetBefore'>;
  log: Log;
  /** Whether this process keeps lines to the servers. Without, it knows them by their last lists. */
  isConnected: boolean;
}

/** A start waits this long for servers to list their tools; those that take longer are looked for in the background. */
const LIST_WAIT_MS = 15_000;
/** How often a process looks what others have seen of a server since. */
const RECALL_MS = 15_000;
const INFO = { name: 'holdfast', version: VERSION };

/** Never rejects for a server's sake. Throws what the ledger throws. */
export async function openUpstreams(options: OpenUpstreamsOptions): Promise<Upstreams> {
  const { config, ledger, log, isConnected } = options;
  const open = isConnected && config.upstreams.length > 0 ? await opener() : null;
  let upstreams: Upstreams | null = null;
  const servers = config.upstreams.map(
    ({ name, definition, target }) =>
      new UpstreamServer({
        name,
        definition,
        open: open && ((listChanged) => open({ ...lineTo(target(), definition, log), listChanged })),
        lists: listsIn(ledger),
        before: {
          keep: (operationId, tenant, before) => ledger.keepBefore(operationId, tenant, before),
          recall: (operationId) => ledger.recallBefore(operationId),
          forget: (operationId) => ledger.forgetBefore(operationId),
        },
        log,
        changed: () => upstreams?.gather(),
      }),
  );
  const started = AbortSignal.timeout(LIST_WAIT_MS);
  try {
    await Promise.all(servers.map((server) => server.start(started)));
  } catch (error) {
    await Promise.allSettled(servers.map((server) => server.close()));
    throw error;
  }
  const taken = [...config.actions, ...(config.procedures?.contracts ?? [])].map(
    ({ contract }) => contract.name,
  );
  upstreams = new Upstreams({ servers, taken, hasKey: config.hmacKey !== null });
  for (const { server, tool, error } of upstreams.problems)
    log.error({ upstream: server, tool, reason: error.message }, 'quarantined');
  if (isConnected && servers.length > 0) followOthers(upstreams, log);
  return upstreams;
}

/** For a look at the servers alone: nothing is remembered of them, and no ledger is needed. */
export function openUnkeptUpstreams(config: OpenUpstreamsOptions['config'], log: Log): Promise<Upstreams> {
  const ledger = {
    upstreamList: () => Promise.resolve(null),
    keepUpstreamList: (_identity: string, tools: unknown[]) =>
      Promise.resolve({ tools, gone: [], seenAt: 0 } as never),
    keepBefore: (_operationId: string, _tenant: string, before: JsonObject) => Promise.resolve(before),
    recallBefore: () => Promise.resolve(null),
    forgetBefore: () => Promise.resolve(),
  };
  return openUpstreams({ config, ledger: ledger as OpenUpstreamsOptions['ledger'], log, isConnected: true });
}

/** The MCP client under a line is loaded by those who open one: a worker without servers holds none of it. */
const opener = async (): Promise<typeof openUpstream> =>
  (await import('../src/upstream/connection/open-upstream.ts')).openUpstream;

const isSensitive = ({ tools = {} }: UpstreamDefinition): boolean =>
  Object.values(tools).some(({ sensitive }) => sensitive !== undefined);

function lineTo(
  target: UpstreamTarget,
  definition: UpstreamDefinition,
  log: Log,
): Parameters<typeof openUpstream>[0] {
  const { identity, secrets } = target;
  const hidesStderr = isSensitive(definition);
  const { tools = {} } = definition;
  const asTask = (tool: string): boolean => Object.hasOwn(tools, tool) && tools[tool]?.asTask === true;
  const address =
    target.kind === 'http'
      ? { url: target.url, headers: target.headers, secrets }
      : {
          ...{ command: target.command, args: target.args, env: target.env, secrets, hidesStderr },
          ...(target.cwd !== undefined && { cwd: target.cwd }),
        };
  return { identity, address, info: INFO, log, asTask };
}

function listsIn(ledger: OpenUpstreamsOptions['ledger']): ListStore {
  return {
    recall: (identity) => ledger.upstreamList<UpstreamTool>(identity),
    keep: (identity, tools) => ledger.keepUpstreamList(identity, tools),
  };
}

/** A gateway may have seen a newer list than this worker, and the other way round. */
function followOthers(upstreams: Upstreams, log: Log): void {
  const timer = setInterval(() => {
    Promise.all(upstreams.servers.map((server) => server.recall())).catch((error: unknown) =>
      log.warn({ err: error }, 'lists of upstream servers could not be read'),
    );
  }, RECALL_MS);
  timer.unref();
  upstreams.onClose(() => clearInterval(timer));
}
