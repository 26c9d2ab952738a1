// Bundles workflows/index.ts as it is in source. The map inside names files relative to the package, so that the
// bundle is the same on every machine and shows nobody's folders.
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode } from '@temporalio/worker';
import type { Logger } from '@temporalio/worker';

const root = fileURLToPath(new URL('..', import.meta.url));
const INLINE_MAP = /(?<=\/\/# sourceMappingURL=data:application\/json;[^,]*base64,)\S+(?=\s*$)/;

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

/** The code with its source map inline, and the map's text. */
export async function bundleWorkflows(): Promise<{ code: string; sourceMap: string }> {
  const workflowsPath = fileURLToPath(new URL('../workflows/index.ts', import.meta.url));
  const trace = fileURLToPath(new URL('../workflows/trace-context.ts', import.meta.url));
  const { code } = await bundleWorkflowCode({ workflowsPath, workflowInterceptorModules: [trace], logger });
  const encoded = INLINE_MAP.exec(code)?.[0];
  if (encoded === undefined) throw new Error('the workflow bundle has no source map inline');
  const sourceMap = Buffer.from(encoded, 'base64').toString('utf8').replaceAll(root, '');
  return { code: code.replace(INLINE_MAP, Buffer.from(sourceMap).toString('base64')), sourceMap };
}
