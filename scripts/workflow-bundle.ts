// Bundles workflows/index.ts as it is in source. The map inside names files relative to the package, so that the
// bundle is the same on every machine and shows nobody's folders.
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode } from '@temporalio/worker';
import type { BundleOptions, Logger } from '@temporalio/worker';

type Webpack = Parameters<NonNullable<BundleOptions['webpackConfigHook']>>[0];

const root = fileURLToPath(new URL('..', import.meta.url));

const silent = () => undefined;
const complain: Logger['warn'] = (message, meta) => console.error('workflow bundle:', message, meta ?? '');
const logger: Logger = {
  log: silent,
  trace: silent,
  debug: silent,
  info: silent,
  warn: complain,
  error: complain,
};

/** The code, its source map inline. */
export async function bundleWorkflows(): Promise<string> {
  const workflowsPath = fileURLToPath(new URL('../workflows/index.ts', import.meta.url));
  const { code } = await bundleWorkflowCode({
    workflowsPath,
    logger,
    webpackConfigHook: withRelativeSources,
  });
  return code;
}

function withRelativeSources(config: Webpack): Webpack {
  const devtoolModuleFilenameTemplate = ({ absoluteResourcePath }: { absoluteResourcePath: string }) =>
    absoluteResourcePath.replaceAll(root, '');
  return { ...config, output: { ...config.output, devtoolModuleFilenameTemplate } };
}
