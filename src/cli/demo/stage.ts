/**
 * The demo's stage: a Temporal server, a gateway, workers and two services outside, each a process of its own, and an MCP
 * client that calls over HTTP. Everything lives in a temporary folder and is gone afterwards.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Connection } from '@temporalio/client';
import { startEmbeddedTemporal } from '../../embedded/index.ts';
import { openLedger } from '../../ledger/open-ledger.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { createLogger, loadConfig, openHoldfast } from '../../../worker/index.ts';
import type { HoldfastClient } from '../../client/index.ts';
import { quietAtItsEnd } from '../../client/quiet-connection.ts';
import type { Action } from '../../contract/implement-action.ts';
import { startChild } from './child.ts';
import type { DemoChild } from './child.ts';

export interface Stage {
  ledger: Ledger;
  /** Path of the ledger's SQLite file, for playing somebody else who writes into it. */
  ledgerFile: string;
  mcp: Client;
  temporal: Connection;
  warehouse: OutsideService;
  provider: OutsideService;
  chat: OutsideService;
  /** For the people who decide: not the connection that asked. */
  decisions: Pick<HoldfastClient, 'decide'>;
  freight: OutsideService;
  /** Where the filesystem server works (examples/demo/filesystem.ts). */
  files: string;
  /** With `procedures` it has their code too, which takes some seconds to bundle. */
  startWorker(config?: 'actions' | 'procedures'): Promise<DemoChild>;
  /** For this process, not for the worker: one that keeps its promise, and one that does not. */
  rehearsedActions(): Promise<{ right: Action; careless: Action }>;
  close(): Promise<void>;
}

/** A service outside: its own books are the demo's only judge of what really happened. */
export interface OutsideService {
  books<Books extends object = Record<string, number>>(): Promise<Books>;
  behave(behaviour: 'normal' | 'hold' | 'wrong', times?: number): Promise<void>;
  release(): Promise<void>;
}

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
/** `.js` when built, `.ts` when run from source: whatever this file is. */
const EXTENSION = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
const MAIN = here(`../main.${EXTENSION}`);
const EXAMPLES = here('../../../examples');

export async function openStage(say: (line: string) => void): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-demo-'));
  const closers: (() => Promise<unknown> | void)[] = [() => rmSync(folder, { recursive: true, force: true })];
  const close = async (): Promise<void> => {
    for (const closer of closers.splice(0).reverse()) await closer();
  };
  try {
    return await build(folder, closers, close, say);
  } catch (error) {
    await close();
    throw error;
  }
}

async function build(
  folder: string,
  closers: (() => Promise<unknown> | void)[],
  close: () => Promise<void>,
  say: (line: string) => void,
): Promise<Stage> {
  const temporalServer = await startEmbeddedTemporal({
    stateDir: join(folder, 'temporal'),
    ui: false,
    log: say,
  });
  closers.push(() => temporalServer.stop());
  const child = async (
    script: string,
    args: readonly string[],
    env: NodeJS.ProcessEnv,
  ): Promise<DemoChild> => {
    const started = await startChild(script, args, env, join(folder, 'processes.log'));
    closers.push(() => started.kill());
    return started;
  };
  const [warehouse, provider, chat, freight] = await Promise.all(
    ['inventory', 'provider', 'chat-post', 'cargo'].map(async (name) =>
      child(join(EXAMPLES, name, `service.${EXTENSION}`), [String(await freePort())], process.env),
    ),
  );
  const env = {
    ...settingsOf(folder, temporalServer),
    HOLDFAST_WAREHOUSE_URL: warehouse?.ready.url ?? '',
    HOLDFAST_PROVIDER_URL: provider?.ready.url ?? '',
    HOLDFAST_CHAT_URL: chat?.ready.url ?? '',
    HOLDFAST_FREIGHT_URL: freight?.ready.url ?? '',
  };
  const ledger = await openLedger({ url: env.HOLDFAST_DATABASE_URL });
  closers.push(() => ledger.close());
  await ledger.migrate();
  const gateway = await child(MAIN, ['gateway'], env);
  say(`the gateway is ${gateway.ready.url}; warehouse, payment provider, chat and freight desk are up`);
  const mcp = await connectMcp(`${gateway.ready.url}/mcp`);
  closers.push(() => mcp.close());
  const holdfast = await openQuietly(env);
  closers.push(() => holdfast.close());
  const temporal = quietAtItsEnd(await Connection.connect({ address: temporalServer.address }));
  closers.push(() => temporal.close());
  return {
    ledger,
    ledgerFile: ledgerFileOf(folder),
    mcp,
    temporal,
    warehouse: outside(env.HOLDFAST_WAREHOUSE_URL),
    provider: outside(env.HOLDFAST_PROVIDER_URL),
    chat: outside(env.HOLDFAST_CHAT_URL),
    decisions: holdfast.client,
    freight: outside(env.HOLDFAST_FREIGHT_URL),
    files: env.HOLDFAST_DEMO_FILES,
    startWorker: (config = 'actions') => child(MAIN, ['worker'], configured(env, CONFIG_OF[config])),
    rehearsedActions: () => rehearsedActions(env),
    close,
  };
}

/** By what is run: workers to be killed do without the procedures, whose code takes a while to bundle. */
const CONFIG_OF = { actions: 'actions', procedures: 'holdfast' } as const;

const configured = (env: NodeJS.ProcessEnv, name: string): NodeJS.ProcessEnv => ({
  ...env,
  HOLDFAST_CONFIG: join(EXAMPLES, 'demo', `${name}.config.${EXTENSION}`),
});

const ledgerFileOf = (folder: string): string => join(folder, 'ledger.db');

/** Of the machine's settings none that are about another Temporal. */
function foreignVariables(): NodeJS.ProcessEnv {
  const others = Object.entries(process.env).filter(([name]) => !name.startsWith('TEMPORAL_'));
  return Object.fromEntries(others);
}

function settingsOf(folder: string, { address, namespace }: { address: string; namespace: string }) {
  const files = join(folder, 'files');
  mkdirSync(join(files, 'root'), { recursive: true });
  return {
    ...foreignVariables(),
    HOLDFAST_CONFIG: join(EXAMPLES, 'demo', `holdfast.config.${EXTENSION}`),
    HOLDFAST_STATE_DIR: folder,
    HOLDFAST_DEMO_FILES: files,
    HOLDFAST_DATABASE_URL: `sqlite:${ledgerFileOf(folder)}`,
    HOLDFAST_PORT: '0',
    HOLDFAST_LOG_LEVEL: 'warn',
    TEMPORAL_ADDRESS: address,
    TEMPORAL_NAMESPACE: namespace,
    TEMPORAL_CONFIG_FILE: join(folder, 'no-profiles.toml'), // instead of the user's own
  };
}

async function rehearsedActions(env: NodeJS.ProcessEnv): Promise<{ right: Action; careless: Action }> {
  process.env['HOLDFAST_PROVIDER_URL'] = env['HOLDFAST_PROVIDER_URL']; // where the handlers look for it
  const { actions } = await loadConfig({ env: configured(env, 'rehearsal') });
  const [right, careless] = actions;
  if (right === undefined || careless === undefined) throw new Error('two actions are rehearsed');
  return { right, careless };
}

async function openQuietly(env: NodeJS.ProcessEnv) {
  return openHoldfast({ config: await loadConfig({ env }), log: createLogger({ level: 'error' }) });
}

async function connectMcp(url: string): Promise<Client> {
  const mcp = new Client({ name: 'holdfast-demo', version: '1.0.0' });
  await mcp.connect(new StreamableHTTPClientTransport(new URL(url)));
  return mcp;
}

function outside(url: string): OutsideService {
  const control = async (name: string, body: object): Promise<void> => {
    await fetch(`${url}/control/${name}`, { method: 'POST', body: JSON.stringify(body) });
  };
  return {
    books: async <Books extends object>() => (await (await fetch(`${url}/control/books`)).json()) as Books,
    behave: (behaviour, times) => control('behave', { behaviour, ...(times !== undefined && { times }) }),
    release: () => control('release', {}),
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
