/**
 * Reads the whole configuration, once: environment over file over defaults (worker/settings.ts has the table).
 *
 * Throws `invalid_configuration` naming every wrong value with its expected shape and the fix, `encryption_key_required`
 * where a contract has sensitive fields and no key is set, `ledger_unsuitable` for a store that dies with the process.
 */
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import type { ClientConnectConfig } from '@temporalio/envconfig';
import { deriveHmacKey } from '../src/client/encryption-keys.ts';
import type { ConfiguredProcedures, HoldfastConfig } from '../src/contract/define-config.ts';
import type { Action } from '../src/contract/implement-action.ts';
import type { UpstreamDefinition, UpstreamTarget } from '../src/contract/upstream-definition.ts';
import type { Principal } from '../src/task/plan.ts';
import { targetOf } from '../src/upstream/target.ts';
import { loadConfigFile } from './config-file.ts';
import { configurationError } from './configuration-error.ts';
import type { Deployment } from './deployment.ts';
import { checkKeyPresence } from './key-presence.ts';
import { checkLedgerUrl } from './ledger-url.ts';
import { oauthOf } from './oauth-config.ts';
import type { OAuthConfig } from './oauth-config.ts';
import type { OAUTH_SETTINGS } from './oauth-settings.ts';
import { readSettings } from './read-settings.ts';
import { CONFIG } from './settings.ts';
import type { SettingName, SettingValue } from './settings.ts';

type Elsewhere = 'databaseUrl' | 'deploymentName' | 'buildId' | 'versioning' | keyof typeof OAUTH_SETTINGS;
type Settings = { [Name in Exclude<SettingName, Elsewhere>]: SettingValue<Name> };

export interface Config extends Settings {
  /** Absolute path of the file; null when there is none. */
  configFile: string | null;
  /** Absolute. */
  stateDir: string;
  /** `sqlite:` with an absolute path, or `postgres://…`. */
  databaseUrl: string;
  /** For redaction; null without keys, and then no contract has sensitive fields. */
  hmacKey: Uint8Array | null;
  actions: Action[];
  /** Other people's servers, in the order they are written; each is reached with what this environment holds. */
  upstreams: ConfiguredUpstream[];
  /** Null: workers are not versioned. */
  deployment: Deployment | null;
  /** `code` is absolute; null when the file has none. */
  procedures: ConfiguredProcedures | null;
  /** Null: HTTP takes static tokens, or anyone on this machine. */
  oauth: OAuthConfig | null;
  /** Who the command line and loopback HTTP act as. */
  principal: Principal;
  temporal: ClientConnectConfig & { namespace: string };
  /** The file as written, for what only one part reads (`auth`, `alerts`, `limits`, `gateway`, `setup`). */
  file: HoldfastConfig;
}

export interface ConfiguredUpstream {
  name: string;
  definition: UpstreamDefinition;
  /** Throws `invalid_configuration` naming what the environment lacks. The answer holds secrets. */
  target(): UpstreamTarget;
}

export interface LoadConfigOptions {
  /** Default: this process's environment. */
  env?: NodeJS.ProcessEnv;
  /** Default: the working directory. */
  cwd?: string;
  /** `--config`; wins over HOLDFAST_CONFIG. */
  file?: string;
  /** An encryption key for where none is set, by what else is configured. Default: none. */
  keyOf?: (found: Pick<Config, 'stateDir' | 'temporal'>) => string | undefined;
}

export async function loadConfig(options: LoadConfigOptions = {}): Promise<Config> {
  const env = options.env ?? process.env;
  const cwd = resolve(options.cwd ?? '.');
  const { path, config: file } = await loadConfigFile(
    cwd,
    options.file ?? (env['HOLDFAST_CONFIG'] || undefined),
  );
  const given = readSettings(env, file);
  const stateDir = resolve(cwd, given.stateDir);
  const temporal = temporalConfig(env);
  const key = given.encryptionKeys.length > 0 ? undefined : options.keyOf?.({ stateDir, temporal });
  const { deploymentName, buildId, versioning, ...settings } =
    key === undefined ? given : readSettings({ ...env, [CONFIG.encryptionKeys.env]: key }, file);
  checkKeyPresence([...file.actions, ...(file.procedures?.contracts ?? [])], settings.encryptionKeys);
  return {
    ...settings,
    configFile: path,
    stateDir,
    databaseUrl: checkLedgerUrl(settings.databaseUrl, cwd, stateDir),
    hmacKey: deriveHmacKey(settings.encryptionKeys),
    actions: file.actions,
    upstreams: upstreamsOf(file, env, path === null ? cwd : dirname(path)),
    deployment: deploymentOf(deploymentName, buildId, versioning),
    oauth: oauthOf(settings, file),
    procedures: proceduresOf(file, path === null ? cwd : dirname(path)),
    principal: { tenant: settings.tenant, subject: settings.subject, roles: settings.roles },
    temporal,
    file,
  };
}

/** The file's own folder is where the paths of commands begin. */
function upstreamsOf(
  { upstreams = {} }: HoldfastConfig,
  env: NodeJS.ProcessEnv,
  folder: string,
): ConfiguredUpstream[] {
  return Object.entries(upstreams).map(([name, definition]) => {
    const placed =
      definition.command === undefined
        ? definition
        : { ...definition, cwd: resolve(folder, definition.cwd ?? '.') };
    return { name, definition, target: () => targetOf(name, placed, env) };
  });
}

/** A build without a deployment, or the other way round, would be taken for unversioned. */
function deploymentOf(
  name: string | null,
  buildId: string | null,
  versioning: Deployment['versioning'],
): Deployment | null {
  if (name !== null && buildId !== null) return { name, buildId, versioning };
  if (name === null && buildId === null) return null;
  const [missing, given] =
    buildId === null
      ? ['HOLDFAST_BUILD_ID', 'HOLDFAST_DEPLOYMENT']
      : ['HOLDFAST_DEPLOYMENT', 'HOLDFAST_BUILD_ID'];
  const problem = `it is not set, and ${given} is`;
  throw configurationError([
    {
      name: missing,
      problem,
      expected: CONFIG[buildId === null ? 'buildId' : 'deploymentName'].expected,
      fix: 'set both or neither',
    },
  ]);
}

/** The file's own folder is where its paths begin; compiled, the configuration has compiled procedures beside it. */
function proceduresOf({ procedures }: HoldfastConfig, folder: string): ConfiguredProcedures | null {
  if (procedures === undefined) return null;
  const { contracts, code: written } = procedures;
  const code = resolve(folder, written);
  const compiled = code.replace(/\.([cm]?)ts$/, '.$1js');
  return { contracts, code: !existsSync(code) && existsSync(compiled) ? compiled : code };
}

function temporalConfig(env: NodeJS.ProcessEnv): ClientConnectConfig & { namespace: string } {
  const variables = Object.entries(env).filter((entry): entry is [string, string] => !!entry[1]);
  try {
    const config = loadClientConnectConfig({ overrideEnvVars: Object.fromEntries(variables) });
    return { ...config, namespace: config.namespace ?? 'default' };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const expected =
      'what @temporalio/envconfig reads (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_TLS_…)';
    throw configurationError(
      [{ name: namedBy(why, variables), problem: why, expected, fix: 'correct it, or unset it' }],
      error,
    );
  }
}

/** What reads them names no variable, but repeats what one says: a path, a profile. Else it is in the file that it read. */
function namedBy(why: string, variables: [string, string][]): string {
  const repeated = variables.filter(
    ([name, value]) => name.startsWith('TEMPORAL_') && value.length > 1 && why.includes(value),
  );
  const [longest] = repeated.sort(([, a], [, b]) => b.length - a.length);
  return longest?.[0] ?? 'TEMPORAL_CONFIG_FILE';
}
