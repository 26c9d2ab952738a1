// Writes dist/workflow-bundle.js, with which a worker starts without a bundler.
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { bundleWorkflows } from './workflow-bundle.ts';

const dist = fileURLToPath(new URL('../dist/', import.meta.url));
const unfinished = `${dist}workflow-bundle.js.${process.pid}`;

await mkdir(dist, { recursive: true });
await writeFile(unfinished, (await bundleWorkflows()).code);
await rename(unfinished, `${dist}workflow-bundle.js`);
