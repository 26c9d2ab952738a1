/**
 * What a short-lived command needs: configuration, ledger and, where tasks are spoken to, Temporal. Works through client
 * and ledger, not through HTTP; a running `holdfast dev` of the same folder is found by its runtime file.
 */
import { Connection } from '@temporalio/client';
import type { HoldfastClient } from '../client/index.ts';
import { quietAtItsEnd } from '../client/quiet-connection.ts';
import { HoldfastError } from '../contract/error.ts';
import { openLedger } from '../ledger/open-ledger.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Principal } from '../task/plan.ts';
import { createLogger, loadConfig, openHoldfast } from '../../worker/index.ts';
import type { Config, Holdfast } from '../../worker/index.ts';
import { DEFAULT_STATE_DIR } from '../../worker/settings.ts';
import { ensureKey, readKey } from './key-file.ts';
import type { GlobalOptions } from './program.ts';
import { readRuntimeFile } from './runtime-file.ts';

export interface LedgerSession {
  config: Config;
  ledger: Ledger;
  principal: Principal;
}

export interface Session extends LedgerSession {
  client: HoldfastClient;
  /** As they were last seen to be. */
  upstreams: Holdfast['upstreams'];
}

const CONNECT_TIMEOUT_MS = 5_000;

/** What of a configuration says which Temporal is meant, and where the state of one-machine use is. */
type Whereabouts = Pick<Config, 'stateDir' | 'temporal'>;

/**
 * Configuration as a command sees it: environment, file, then what is kept with the state: the key that `dev` made, and
 * where a running `dev` is reached. `makesKey` says whether a missing key is made. Default: it is not.
 */
export async function loadCommandConfig(
  options: GlobalOptions,
  makesKey: (found: Whereabouts) => boolean = () => false,
): Promise<Config> {
  const file = options.config ?? set('HOLDFAST_CONFIG') ?? configFileOfRunning();
  const config = await loadConfig({
    ...(file !== undefined && { file }),
    keyOf: (found) => keptKey(found) ?? (makesKey(found) ? ensureKey(found.stateDir) : undefined),
  });
  const runtime = readRuntimeFile(config.stateDir);
  if (runtime === null || (hasTemporal(config) && isTemporalNamed())) return config;
  return onEngine(config, { address: runtime.temporalAddress, namespace: runtime.temporalNamespace });
}

/** Releases before kept it by the variable alone, also where the file names another folder. */
const keptKey = ({ stateDir }: Whereabouts): string | undefined =>
  readKey(stateDir) ?? readKey(set('HOLDFAST_STATE_DIR') ?? DEFAULT_STATE_DIR);

/** A `dev` that runs here knows its file, wherever that is. */
const configFileOfRunning = (): string | undefined =>
  readRuntimeFile(set('HOLDFAST_STATE_DIR') ?? DEFAULT_STATE_DIR)?.configFile ?? undefined;

/** A variable set to nothing counts as not set. */
const set = (name: string): string | undefined => process.env[name]?.trim() || undefined;

/** What Temporal's own file merely says does not stand against a `dev` that runs here. */
const isTemporalNamed = (): boolean =>
  ['TEMPORAL_ADDRESS', 'TEMPORAL_PROFILE', 'TEMPORAL_CONFIG_FILE'].some((name) => set(name) !== undefined);

/** The user's own: by variable, or by a profile of Temporal's configuration file. */
export const hasTemporal = ({ temporal }: Pick<Whereabouts, 'temporal'>): boolean =>
  temporal.connectionOptions.address !== undefined;

/** A Temporal is there already: the user's own, or that of a `dev` that runs here. */
export const isServed = (found: Whereabouts): boolean =>
  hasTemporal(found) || readRuntimeFile(found.stateDir) !== null;

/** On the embedded server, which knows nothing of the TLS, keys and namespaces meant for another. */
export const onEngine = (
  config: Config,
  { address, namespace }: { address: string; namespace: string },
): Config => ({ ...config, temporal: { namespace, connectionOptions: { address } } });

export async function withLedger<T>(
  options: GlobalOptions,
  work: (session: LedgerSession) => Promise<T>,
): Promise<T> {
  const config = await loadCommandConfig(options);
  const ledger = await openLedger({ url: config.databaseUrl });
  try {
    await ledger.check();
    return await work({ config, ledger, principal: config.principal });
  } finally {
    await ledger.close();
  }
}

export async function withSession<T>(
  options: GlobalOptions,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const config = await loadCommandConfig(options);
  const holdfast = await openHoldfast({ config, log: createLogger({ level: 'error' }) }).catch(withAdvice);
  try {
    return await work({
      config,
      ledger: holdfast.ledger,
      client: holdfast.client,
      upstreams: holdfast.upstreams,
      principal: config.principal,
    });
  } finally {
    await holdfast.close();
  }
}

function withAdvice(error: unknown): never {
  if (!(error instanceof HoldfastError) || error.code !== 'engine_unavailable') throw error;
  const message = `${error.message} Start \`holdfast dev\` in this folder, or set TEMPORAL_ADDRESS.`;
  throw new HoldfastError('engine_unavailable', message, { details: error.details, cause: error });
}

/** Throws `engine_unavailable` naming the address and what to start. */
export async function connectToTemporal(config: Config): Promise<Connection> {
  const { connectionOptions } = config.temporal;
  try {
    return quietAtItsEnd(
      await Connection.connect({ ...connectionOptions, connectTimeout: CONNECT_TIMEOUT_MS }),
    );
  } catch (error) {
    const address = connectionOptions.address ?? 'localhost:7233';
    throw new HoldfastError(
      'engine_unavailable',
      `Temporal can not be reached at ${address}. Start \`holdfast dev\` in this folder, or set TEMPORAL_ADDRESS.`,
      { details: { address }, cause: error },
    );
  }
}
