/**
 * What a short-lived command needs: configuration, ledger and, where tasks are spoken to, Temporal. Works through client
 * and ledger, not through HTTP; a running `holdfast dev` of the same folder is found by its runtime file.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import type { HoldfastClient } from '../client/index.ts';
import { quietAtItsEnd } from '../client/quiet-connection.ts';
import { HoldfastError } from '../contract/error.ts';
import { openLedger } from '../ledger/open-ledger.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Principal } from '../task/plan.ts';
import { createLogger, loadConfig, openHoldfast } from '../../worker/index.ts';
import type { Config, Holdfast } from '../../worker/index.ts';
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
/** Made by `holdfast dev` when none is configured (interfaces.md "Secrets in history"). */
export const KEY_FILE = 'encryption-key';

/** Configuration as a command sees it: environment, file, then what a running `dev` says of itself. */
export async function loadCommandConfig(options: GlobalOptions): Promise<Config> {
  const env = { ...process.env };
  const stateDir = env['HOLDFAST_STATE_DIR'] ?? '.holdfast';
  const runtime = readRuntimeFile(stateDir);
  if (runtime !== null) {
    env['TEMPORAL_ADDRESS'] ??= runtime.temporalAddress;
    env['TEMPORAL_NAMESPACE'] ??= runtime.temporalNamespace;
    if (options.config === undefined && runtime.configFile !== null)
      env['HOLDFAST_CONFIG'] ??= runtime.configFile;
  }
  const keyFile = join(stateDir, KEY_FILE);
  if (env['HOLDFAST_ENCRYPTION_KEY'] === undefined && existsSync(keyFile)) {
    env['HOLDFAST_ENCRYPTION_KEY'] = readFileSync(keyFile, 'utf8').trim();
  }
  return loadConfig({ env, ...(options.config !== undefined && { file: options.config }) });
}

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
