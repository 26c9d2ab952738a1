/**
 * Where the worker's workflow code comes from. Without procedures: the bundle that the build wrote, when running from the
 * build; else bundled from source, once for each process. With them: bundled with the user's file, once for each process.
 * A stale bundle next to newer sources is never used.
 */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode } from '@temporalio/worker';
import type { Logger, WorkflowBundle, WorkflowBundlePath } from '@temporalio/worker';
import { configurationError } from './configuration-error.ts';

const IS_SOURCE = import.meta.url.endsWith('.ts');
const EXTENSION = IS_SOURCE ? 'ts' : 'js';
const pathTo = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));

/** By the user's file; the empty name is none. */
const bundled = new Map<string, Promise<WorkflowBundle>>();

/** `procedures`: absolute path of the user's file. Throws `invalid_configuration` where it can't be bundled. */
export async function workflowSource(procedures?: string): Promise<WorkflowBundle | WorkflowBundlePath> {
  const prebuilt = pathTo('../workflow-bundle.js'); // dist/workflow-bundle.js, seen from dist/worker
  if (procedures === undefined && !IS_SOURCE && existsSync(prebuilt)) return { codePath: prebuilt };
  const name = procedures ?? '';
  const bundling = bundled.get(name) ?? bundle(procedures);
  bundled.set(name, bundling);
  // A failure is not kept: the file may be corrected while this process lives (tests, `holdfast dev`).
  bundling.catch(() => bundled.delete(name));
  return bundling;
}

/** `interceptors`: files of workflow interceptors, for tests that watch what workflow code does. */
export async function bundle(
  procedures: string | undefined,
  interceptors: string[] = [],
): Promise<WorkflowBundle> {
  const workflowsPath = pathTo(`../workflows/index.${EXTENSION}`);
  const workflowInterceptorModules = [pathTo(`../workflows/trace-context.${EXTENSION}`), ...interceptors];
  if (procedures === undefined)
    return bundleWorkflowCode({ workflowsPath, workflowInterceptorModules, logger: loggerTo(complain) });
  if (!existsSync(procedures)) throw cannotBundle(procedures, 'there is no such file');
  const complaints: string[] = [];
  const logger = loggerTo((message) => complaints.push(message));
  try {
    return await bundleWorkflowCode({
      workflowsPath,
      logger,
      workflowInterceptorModules,
      webpackConfigHook: (config) => withProcedures(config, procedures),
    });
  } catch (error) {
    const why = [error instanceof Error ? error.message : String(error), ...complaints].join('\n');
    throw cannotBundle(procedures, problemIn(why), error);
  }
}

type WebpackConfig = Parameters<
  NonNullable<Parameters<typeof bundleWorkflowCode>[0]['webpackConfigHook']>
>[0];

/** What of webpack's compiler is needed; webpack itself is Temporal's, not ours. */
interface Compiler {
  hooks: { normalModuleFactory: { tap(name: string, use: (factory: ModuleFactory) => void): void } };
}
interface ModuleFactory {
  hooks: { beforeResolve: { tap(name: string, use: (data: { request: string }) => void): void } };
}

/** The user's file takes the place of ours without any; `holdfast/procedure` is the copy that our workflow code uses. */
function withProcedures(config: WebpackConfig, procedures: string): WebpackConfig {
  const placeholder = `./user-procedures.${EXTENSION}`;
  const plugin = {
    apply: (compiler: Compiler) =>
      compiler.hooks.normalModuleFactory.tap('holdfast', (factory) =>
        factory.hooks.beforeResolve.tap('holdfast', (data) => {
          if (data.request === placeholder) data.request = procedures;
        }),
      ),
  };
  const own = pathTo(`../src/procedure/index.${EXTENSION}`);
  const alias = { ...(config.resolve?.alias as object), 'holdfast/procedure$': own };
  return {
    ...config,
    resolve: { ...config.resolve, alias },
    plugins: [...(config.plugins ?? []), plugin],
  };
}

/** The lines that tell what is wrong, without the bundler's own surroundings. */
function problemIn(text: string): string {
  const named = [...text.matchAll(/^ {2}- '([^']+)'|Reading from "(node:[^"]+)"/gm)];
  const forbidden = named.map(([, listed, unread]) => listed ?? unread);
  if (forbidden.length > 0)
    return `it imports, itself or through what it imports, ${[...new Set(forbidden)].join(', ')}, which replayed code can't have`;
  const found = /(Module not found: .*|Module build failed.*(?:\n.*){0,12}|SyntaxError.*)/.exec(text);
  const lines = (found?.[0] ?? text).split('\n').filter((line) => !/^\s+at /.test(line));
  return lines.join('\n').slice(0, 2_000).trim();
}

function cannotBundle(path: string, problem: string, cause?: unknown): Error {
  return configurationError(
    [
      {
        name: 'procedures.code',
        problem: `${path} can not be bundled as workflow code: ${problem}`,
        expected:
          'a file that imports `holdfast/procedure`, types, and other code without I/O, clock or chance',
        fix: 'use `import type` for actions and contracts, and move what does I/O into an action',
      },
    ],
    cause,
  );
}

const nothing = (): void => undefined;
const complain = (message: string, meta?: unknown): void =>
  console.error('workflow bundle:', message, meta ?? '');

function loggerTo(tell: (message: string, meta?: unknown) => unknown): Logger {
  const warn = (message: string, meta?: unknown): void => void tell(message, meta);
  return { log: nothing, trace: nothing, debug: nothing, info: nothing, warn, error: warn };
}
