/**
 * Finds and loads holdfast.config.{ts,js,mjs,…}. TypeScript is loaded by Node itself where it can strip types, else by
 * c12's loader. No other file, no package.json key, no inheritance, nothing from the network.
 */
import { existsSync, readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { loadConfig as loadWithC12 } from 'c12';
import { defineConfig } from '../src/contract/define-config.ts';
import type { HoldfastConfig } from '../src/contract/define-config.ts';
import { ERROR_CODES, HoldfastError } from '../src/contract/error.ts';
import type { ErrorCode } from '../src/contract/error.ts';
import type { JsonObject } from '../src/task/json.ts';
import { configurationError } from './configuration-error.ts';

const NAME = 'HOLDFAST_CONFIG';
const EXPECTED = 'a module whose default export is what `defineConfig({…})` answers';
const BASE_NAME = 'holdfast';
/** A module that awaits something for longer waits for ever, as far as whoever started the process can tell. */
const LOADED_WITHIN_MS = 30_000;

export interface ConfigFile {
  /** Absolute; null when there is none. */
  path: string | null;
  config: HoldfastConfig;
}

/** `named` is a file the user asked for: it must exist. Without any file there are no actions. Throws `invalid_configuration`. */
export async function loadConfigFile(cwd: string, named: string | undefined): Promise<ConfigFile> {
  const path = named === undefined ? undefined : resolve(cwd, named);
  if (path !== undefined && !existsSync(path)) {
    throw configurationError([
      { name: NAME, problem: `${path} does not exist`, expected: EXPECTED, fix: 'correct the path' },
    ]);
  }
  const { config, _configFile: found } = await load(cwd, path);
  if (found === undefined) return { path: null, config: { actions: [] } };
  if (typeof config !== 'object' || config === null || Array.isArray(config)) {
    const fix = 'export default defineConfig({ actions: [] })';
    throw configurationError([{ name: found, problem: 'it has no default export', expected: EXPECTED, fix }]);
  }
  // Checked again here: a file in plain JavaScript may have left `defineConfig` out.
  return { path: found, config: defineConfig(config as unknown as HoldfastConfig) };
}

async function load(cwd: string, path: string | undefined) {
  try {
    return await within(
      LOADED_WITHIN_MS,
      loadWithC12<Record<string, unknown>>({
        cwd,
        name: BASE_NAME,
        ...(path !== undefined && { configFile: path }),
        rcFile: false,
        globalRc: false,
        packageJson: false,
        dotenv: false,
        extend: false,
        giget: false,
        envName: false,
        jitiOptions: { tryNative: true },
      }),
    );
  } catch (error) {
    if (error instanceof Error && error.name === 'HoldfastError') throw ownError(error); // by defineConfig or defineAction
    const why = error instanceof Error ? error.message : String(error);
    const name = path ?? fileIn(cwd);
    throw configurationError(
      [
        {
          name,
          problem: `it can not be loaded: ${why}`,
          expected: EXPECTED,
          fix: 'run it with node to see the whole error',
        },
      ],
      error,
    );
  }
}

/** The timer also keeps the process alive: with nothing else to do it would end without a word. */
async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`it awaits something that has not settled after ${ms / 1_000} s`)),
      ms,
    );
  });
  return Promise.race([work, tooLate]).finally(() => clearTimeout(timer));
}

function fileIn(cwd: string): string {
  const found = readdirSync(cwd).find((name) => name.startsWith(`${BASE_NAME}.config.`));
  return resolve(cwd, found ?? `${BASE_NAME}.config`);
}

/** A file that throws is evaluated once more by c12's loader, with copies of our modules: its error is of their class. */
function ownError(error: Error & { code?: unknown; details?: JsonObject }): Error {
  const { code, details = {} } = error;
  if (error instanceof HoldfastError || typeof code !== 'string' || !(code in ERROR_CODES)) return error;
  return new HoldfastError(code as ErrorCode, error.message, { details, cause: error });
}
