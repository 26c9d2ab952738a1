/** The processes that stay: `dev`, `serve`, `worker`, `gateway` and `mcp`. */
import { installDrain, openHoldfast } from '../../../worker/index.ts';
import type { Config, DrainStep, Holdfast } from '../../../worker/index.ts';
import { startDevEngine } from '../dev-engine.ts';
import { EXIT } from '../exit-code.ts';
import type { CommandSite, GlobalOptions } from '../program.ts';
import { serveMetrics } from '../metrics-route.ts';
import { readinessOf } from '../readiness.ts';
import { removeRuntimeFile, writeRuntimeFile } from '../runtime-file.ts';
import { hasTemporal, isServed, loadCommandConfig, onEngine } from '../session.ts';
import { openTerminal } from '../terminal.ts';

/** Loaded where there is one: a worker alone is 25 MB smaller without. */
const gatewayParts = () => import('../serve-gateway.ts');

/** What a drain may take beyond the grace of running handlers: closing connections, the ledger, the server. */
const DRAIN_MARGIN_MS = 15_000;

export function addServingCommands({ program, run }: CommandSite): void {
  program
    .command('dev')
    .description(
      'everything on this machine: embedded Temporal, SQLite, worker and gateway; state in .holdfast/',
    )
    .action(run((_report, options) => dev(options)));
  program
    .command('serve')
    .description('gateway and worker in one process, on your Temporal')
    .action(run(async (_report, options) => serve(options, { hasWorker: true, hasGateway: true })));
  program
    .command('worker')
    .description('take work: run handlers for the tasks of your Temporal')
    .action(run(async (_report, options) => serve(options, { hasWorker: true, hasGateway: false })));
  program
    .command('gateway')
    .description('MCP over HTTP in front of your Temporal; stateless, as many as you like')
    .action(run(async (_report, options) => serve(options, { hasWorker: false, hasGateway: true })));
  program
    .command('mcp')
    .description('MCP over stdio, for clients that start their servers themselves')
    .action(run((_report, options) => mcp(options)));
}

interface Parts {
  hasWorker: boolean;
  hasGateway: boolean;
}

async function serve(options: GlobalOptions, { hasWorker, hasGateway }: Parts): Promise<number> {
  const config = await loadCommandConfig(options);
  return opening([], async (steps) => {
    const holdfast = await openHoldfast({ config, worker: hasWorker, upstreams: hasGateway });
    steps.unshift(closing(holdfast));
    const url = hasGateway ? await openGateway(config, holdfast, steps) : undefined;
    if (!hasGateway) await openMetrics(config, holdfast, steps);
    announce({ ...(url !== undefined && { url }) });
    holdfast.log.info(
      { taskQueue: config.taskQueue, ...(url !== undefined && { url }) },
      hasWorker ? 'taking work' : 'serving',
    );
    return untilDrained(config, holdfast, steps);
  });
}

/**
 * Each part that `open` opens puts its closing in front of `steps`, so that what takes work closes first. Where one can't
 * be opened, those before it are closed, and what went wrong is thrown: a process that can't serve must end.
 */
async function opening(steps: DrainStep[], open: (steps: DrainStep[]) => Promise<number>): Promise<number> {
  try {
    return await open(steps);
  } catch (error) {
    for (const { run } of steps) await run().catch(() => undefined);
    throw error;
  }
}

const closing = (holdfast: Holdfast): DrainStep => ({
  name: 'worker, connections, ledger',
  run: () => holdfast.close(),
});

async function openGateway(config: Config, holdfast: Holdfast, steps: DrainStep[]): Promise<string> {
  const { gatewayOf, listen } = await gatewayParts();
  const gateway = gatewayOf(config, holdfast);
  const url = await listen(gateway, config, holdfast);
  steps.unshift({ name: 'gateway', run: () => gateway.close() });
  return url;
}

async function openMetrics(config: Config, holdfast: Holdfast, steps: DrainStep[]): Promise<void> {
  const { metrics, log } = holdfast;
  const { workerMetricsPort: port, metricsTokenSha256: tokenSha256, host } = config;
  if (port === null) return;
  const readiness = readinessOf(holdfast);
  const server = await serveMetrics({ registry: metrics.registry, tokenSha256 }, { host, port, readiness });
  log.info({ host, port: server.port }, 'metrics');
  steps.unshift({ name: 'metrics', run: () => server.close() });
}

/** A parent that started this process with an IPC channel hears when it is ready. */
function announce(ready: { url?: string }): void {
  process.send?.({ ready: true, ...ready });
}

async function dev(options: GlobalOptions): Promise<number> {
  const terminal = openTerminal(process.stderr);
  const say = (line: string): void => terminal.write(terminal.paint('dim', line));
  process.env['HOLDFAST_LOG_LEVEL'] ??= 'warn'; // people read this terminal
  const config = await loadCommandConfig(options, () => true);
  const engine = await startDevEngine(config.stateDir, say);
  return opening([stopping(engine)], async (steps) => {
    const holdfast = await openDev(config, engine);
    steps.unshift(closing(holdfast));
    const url = await openGateway(config, holdfast, steps);
    publishRuntime(config, steps, runtimeOf(config, engine, `${url}/mcp`));
    terminal.write(
      `${terminal.paint('green', 'ready')}  MCP ${url}/mcp   Temporal ${engine.uiUrl ?? engine.address}`,
    );
    terminal.write(
      `       ${config.actions.length} actions from ${config.configFile ?? 'no configuration file (make a holdfast.config.ts)'}`,
    );
    announce({ url });
    return untilDrained(config, holdfast, steps);
  });
}

type Engine = Awaited<ReturnType<typeof startDevEngine>>;

function openDev(config: Config, engine: Engine): Promise<Holdfast> {
  return openHoldfast({ config: onEngine(config, engine), worker: true, migrate: true });
}

const stopping = (engine: Engine): DrainStep => ({ name: 'temporal', run: () => engine.stop() });

/** So that other commands find this process, for as long as it serves. */
function publishRuntime(config: Config, steps: DrainStep[], runtime: ReturnType<typeof runtimeOf>): void {
  writeRuntimeFile(config.stateDir, runtime);
  steps.unshift({ name: 'runtime file', run: () => Promise.resolve(removeRuntimeFile(config.stateDir)) });
}

function runtimeOf(config: Config, engine: Engine, mcpUrl?: string) {
  return {
    pid: process.pid,
    temporalAddress: engine.address,
    temporalNamespace: engine.namespace,
    ...(mcpUrl !== undefined && { mcpUrl }),
    ...(engine.uiUrl !== undefined && { temporalUiUrl: engine.uiUrl }),
    configFile: config.configFile,
  };
}

/** On your Temporal, or a running `dev`'s, where there is one; else it brings its own, like `dev`. Standard output is the client's. */
async function mcp(options: GlobalOptions): Promise<number> {
  const config = await loadCommandConfig(options, (found) => !isServed(found));
  const engine = hasTemporal(config)
    ? null
    : await startDevEngine(config.stateDir, (line) => console.error(line));
  return opening(engine === null ? [] : [stopping(engine)], async (steps) => {
    const holdfast =
      engine === null ? await openHoldfast({ config, upstreams: true }) : await openDev(config, engine);
    steps.unshift(closing(holdfast));
    const { gatewayOf } = await gatewayParts();
    const gateway = gatewayOf(config, holdfast);
    const { closed } = gateway.serveMcpStdio();
    steps.unshift({ name: 'gateway', run: () => gateway.close() });
    if (engine !== null) publishRuntime(config, steps, runtimeOf(config, engine));
    return untilDrained(config, holdfast, steps, closed);
  });
}

/** Until a signal, the client's leaving, or the worker's death; then everything is closed in order. */
async function untilDrained(
  config: Config,
  holdfast: Holdfast,
  steps: DrainStep[],
  left?: Promise<void>,
): Promise<number> {
  return new Promise((resolve) => {
    const drain = installDrain({
      steps,
      boundMs: config.shutdownGraceMs + DRAIN_MARGIN_MS,
      log: holdfast.log,
      exit: (code) => resolve(exitWith(code)),
    });
    const leave = (reason: string, code: number): void =>
      void drain.start(reason).then((drained) => resolve(exitWith(drained === 0 ? code : drained)));
    left?.then(
      () => leave('the client left', EXIT.done),
      () => leave('the connection broke', EXIT.failed),
    );
    holdfast.worker?.stopped.catch(() => leave('the worker died', EXIT.failed));
  });
}

/** Native threads and open handles must not keep a drained process alive. */
function exitWith(code: number): number {
  setImmediate(() => process.exit(code));
  return code;
}
