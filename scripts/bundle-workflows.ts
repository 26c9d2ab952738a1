// Writes dist/workflow-bundle.js: the workflows of workflows/index.ts as one file with its source map inline, so that
// a worker starts without a bundler. Built from source, so the map lists the very files that are replayed.
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode } from '@temporalio/worker';
import type { Logger } from '@temporalio/worker';

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));
const target = path('../dist/workflow-bundle.js');

const silent = () => undefined;
const logger: Logger = {
  log: silent,
  trace: silent,
  debug: silent,
  info: silent,
  warn: (message, meta) => console.error('workflow bundle:', message, meta ?? ''),
  error: (message, meta) => console.error('workflow bundle:', message, meta ?? ''),
};

const { code } = await bundleWorkflowCode({ workflowsPath: path('../workflows/index.ts'), logger });
await mkdir(path('../dist'), { recursive: true });
const unfinished = `${target}.${process.pid}`;
await writeFile(unfinished, code);
await rename(unfinished, target);
