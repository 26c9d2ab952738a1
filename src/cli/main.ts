#!/usr/bin/env -S MALLOC_ARENA_MAX=2 node
/**
 * Entry of the `holdfast` command. Checks Node before anything else is loaded: native parts crash on an older one. glibc
 * is told in the first line, since it reads that at the start of a process alone: left to itself it keeps a heap for each
 * of a worker's native threads, and what they free in it.
 */
import { setFlagsFromString } from 'node:v8';

// A worker's live heap is small; left alone V8 keeps several times as much in garbage, in each of its two heaps.
setFlagsFromString('--optimize-for-size');

const NODE_MINIMUM = [22, 12] as const;

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < NODE_MINIMUM[0] || (major === NODE_MINIMUM[0] && minor < NODE_MINIMUM[1])) {
  console.error(
    `holdfast needs Node ${NODE_MINIMUM.join('.')} or newer and was started with ${process.versions.node}. ` +
      'Inside the project `npx holdfast` and `npm run` bring a newer one; elsewhere install Node 24.',
  );
  process.exitCode = 2;
} else {
  const { runProgram } = await import('./program.ts');
  process.exitCode = await runProgram(process.argv.slice(2));
}
