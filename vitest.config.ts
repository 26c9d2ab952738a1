// One vitest project per kind of test (docs: test/<kind>/**). The kinds that share the machine's clock and ports with
// real processes (fault, e2e, examples) run after the others, one file at a time.
// Pick tests by what they are about: `npx vitest run -t 'crash|approval|interrupt|retry|timeout|permanent'`.
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const source = (path: string) => fileURLToPath(new URL(path, import.meta.url));

// `holdfast/…` as users write it, resolved to source so that tests need no build.
const alias = [
  { find: /^holdfast$/, replacement: source('src/index.ts') },
  { find: /^holdfast\/procedure$/, replacement: source('src/procedure/index.ts') },
  { find: /^holdfast\/worker$/, replacement: source('worker/index.ts') },
  { find: /^holdfast\/(client|testing|gateway|mcp-client)$/, replacement: source('src/$1/index.ts') },
];

interface Kind {
  readonly name: string;
  readonly timeoutMs: number;
  readonly group: number;
}

const project = ({ name, timeoutMs, group }: Kind) => ({
  extends: true as const,
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`, ...(name === 'examples' ? ['examples/**/*.test.ts'] : [])],
    testTimeout: timeoutMs,
    hookTimeout: timeoutMs,
    fileParallelism: group === 0,
    maxWorkers: group === 0 ? 2 : 1,
    sequence: { groupOrder: group },
  },
});

export default defineConfig({
  resolve: { alias },
  test: {
    pool: 'forks',
    maxWorkers: 2,
    allowOnly: false,
    passWithNoTests: false,
    reporters: ['default', './test/closing-line-reporter.ts'],
    projects: [
      project({ name: 'unit', timeoutMs: 10_000, group: 0 }),
      project({ name: 'contract', timeoutMs: 30_000, group: 0 }),
      project({ name: 'workflow', timeoutMs: 60_000, group: 0 }),
      project({ name: 'replay', timeoutMs: 60_000, group: 0 }),
      project({ name: 'fault', timeoutMs: 120_000, group: 1 }),
      project({ name: 'e2e', timeoutMs: 120_000, group: 2 }),
      project({ name: 'examples', timeoutMs: 120_000, group: 3 }),
    ],
  },
});
