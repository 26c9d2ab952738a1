/**
 * Where the worker's workflow code comes from: the bundle that the build wrote, when running from the build; else
 * bundled from source, once for each process. A stale bundle next to newer sources is never used.
 */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode } from '@temporalio/worker';
import type { Logger, WorkflowBundle, WorkflowBundlePath } from '@temporalio/worker';

const IS_SOURCE = import.meta.url.endsWith('.ts');
const pathTo = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));

let bundled: Promise<WorkflowBundle> | null = null;

export async function workflowSource(): Promise<WorkflowBundle | WorkflowBundlePath> {
  const prebuilt = pathTo('../workflow-bundle.js'); // dist/workflow-bundle.js, seen from dist/worker
  if (!IS_SOURCE && existsSync(prebuilt)) return { codePath: prebuilt };
  const workflowsPath = pathTo(`../workflows/index.${IS_SOURCE ? 'ts' : 'js'}`);
  return (bundled ??= bundleWorkflowCode({ workflowsPath, logger: quiet }));
}

const nothing = (): void => undefined;
const quiet: Logger = {
  log: nothing,
  trace: nothing,
  debug: nothing,
  info: nothing,
  warn: (message, meta) => console.error('workflow bundle:', message, meta ?? ''),
  error: (message, meta) => console.error('workflow bundle:', message, meta ?? ''),
};
