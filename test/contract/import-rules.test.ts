// A rule that never fires is worse than none: each import rule is shown a file that breaks it.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');
const CONFIGS = ['.dependency-cruiser.cjs', '.dependency-cruiser.runtime.cjs'];

const FILES: Readonly<Record<string, string>> = {
  // what is allowed
  'src/task/state.ts': `export const state = 1;`,
  'src/contract/index.ts': `import { z } from 'zod'; import { state } from '../task/state.ts'; export const c = [z, state]; export interface C { a: 1 }`,
  'src/ledger/index.ts': `import { c } from '../contract/index.ts'; export const l = c;`,
  'src/operation/index.ts': `import { l } from '../ledger/index.ts'; export const o = l;`,
  'src/embedded/index.ts': `export const e = 1;`,
  'src/client/index.ts': `import { l } from '../ledger/index.ts'; import { m } from '../../workflows/messages.ts'; export const k = [l, m];`,
  'src/cli/main.ts': `import { w } from '../../worker/index.ts'; import { e } from '../embedded/index.ts'; export const main = [w, e];`,
  'worker/index.ts': `import { o } from '../src/operation/index.ts'; export const w = o;`,
  'workflows/messages.ts': `import { sleep } from '@temporalio/workflow'; import type { C } from '../src/contract/index.ts'; import { state } from '../src/task/state.ts'; export const m: [unknown, C | undefined, number] = [sleep, undefined, state];`,
  'test/support.ts': `export const t = 1;`,
  // what is not
  'src/task/impure.ts': `import { readFileSync } from 'node:fs'; export const r = readFileSync;`,
  'src/task/typed.ts': `import type { C } from '../contract/index.ts'; export type D = C;`,
  'src/contract/up.ts': `import type { l } from '../ledger/index.ts'; export type U = typeof l;`,
  'src/operation/temporal.ts': `import { Client } from '@temporalio/client'; export const x = Client;`,
  'src/embedded/not-alone.ts': `import { state } from '../task/state.ts'; export const x = state;`,
  'src/client/steps.ts': `import { w } from '../../workflows/imports-contract.ts'; export const x = w;`,
  'src/gateway/worker.ts': `import { w } from '../../worker/index.ts'; import { e } from '../embedded/index.ts'; export const x = [w, e];`,
  'src/gateway/tasks/index.ts': `export { m } from './methods.ts';`,
  'src/gateway/tasks/methods.ts': `export const m = 1;`,
  'src/gateway/past-the-seam.ts': `import { m } from './tasks/index.ts'; import { m as past } from './tasks/methods.ts'; export const x = [m, past];`,
  'src/console/ledger.ts': `import { l } from '../ledger/index.ts'; import { main } from '../cli/main.ts'; export const x = [l, main];`,
  'src/cli/uses-test.ts': `import { t } from '../../test/support.ts'; export const x = t;`,
  'src/ledger/dev.ts': `import fc from 'fast-check'; export const x = fc;`,
  'src/client/circle-a.ts': `import { b } from './circle-b.ts'; export const a = () => b;`,
  'src/client/circle-b.ts': `import { a } from './circle-a.ts'; export const b = () => a;`,
  'src/client/nowhere.ts': `import { x } from './no-such-file.ts'; export const y = x;`,
  'activities/client.ts': `import { k } from '../src/client/index.ts'; export const x = k;`,
  'workflows/imports-contract.ts': `import { c } from '../src/contract/index.ts'; export const w = c;`,
  'workflows/imports-zod.ts': `import { z } from 'zod'; export const x = z;`,
  'workflows/indirect.ts': `export { w } from './imports-contract.ts';`,
};

const EXPECTED: readonly (readonly [file: string, rule: string])[] = [
  ['src/task/impure.ts', 'task-is-pure'],
  ['src/task/impure.ts', 'task-reaches-only-itself'],
  ['src/task/typed.ts', 'task-imports-only-its-own'],
  ['src/contract/up.ts', 'contract-imports-only-its-own'],
  ['src/operation/temporal.ts', 'operation-knows-no-temporal'],
  ['src/embedded/not-alone.ts', 'embedded-imports-only-its-own'],
  ['src/client/steps.ts', 'client-imports-only-its-own'],
  ['src/gateway/worker.ts', 'worker-is-for-composition-roots'],
  ['src/gateway/worker.ts', 'embedded-is-for-cli-and-testing'],
  ['src/gateway/past-the-seam.ts', 'tasks-extension-has-one-seam'],
  ['src/console/ledger.ts', 'console-imports-only-its-own'],
  ['src/console/ledger.ts', 'cli-is-an-end'],
  ['src/cli/uses-test.ts', 'only-tests-import-test'],
  ['src/ledger/dev.ts', 'shipped-code-needs-no-dev-dependency'],
  ['src/client/circle-a.ts', 'no-circular'],
  ['src/client/nowhere.ts', 'no-unresolvable'],
  ['activities/client.ts', 'activities-imports-only-its-own'],
  ['workflows/imports-contract.ts', 'workflows-see-types-of-contract-only'],
  ['workflows/imports-zod.ts', 'workflows-npm'],
  ['workflows/indirect.ts', 'replayed-code-reaches-only-pure-code'],
];

/** Temporal's own packages are reached through a link here, which the rule on workflows must still let pass. */
const INNOCENT = Object.keys(FILES).slice(0, 10);

let folder: string;
let broken: { from: string; rule: string }[];
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-imports-'));
  for (const file of [...CONFIGS, 'tsconfig.json', 'package.json'])
    copyFileSync(join(root, file), join(folder, file));
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  for (const [file, content] of Object.entries(FILES)) {
    mkdirSync(join(folder, dirname(file)), { recursive: true });
    writeFileSync(join(folder, file), content);
  }
  broken = CONFIGS.flatMap((config) => violations(config));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function violations(config: string): { from: string; rule: string }[] {
  const cli = join(root, 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs');
  const args = [
    cli,
    '--config',
    config,
    '--output-type',
    'json',
    'src',
    'workflows',
    'activities',
    'worker',
    'test',
  ];
  const run = spawnSync(process.execPath, args, {
    cwd: folder,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  const { summary } = JSON.parse(run.stdout) as {
    summary: { violations: { from: string; rule: { name: string } }[] };
  };
  return summary.violations.map(({ from, rule }) => ({ from, rule: rule.name }));
}

describe('the import rules', () => {
  it.each(EXPECTED)('catch %s by %s', (from, rule) => {
    expect(broken).toContainEqual({ from, rule });
  });

  it('let every allowed import pass', () => {
    expect(broken.filter(({ from }) => INNOCENT.includes(from))).toEqual([]);
  });

  it('are all shown breaking', () => {
    const shown = new Set(EXPECTED.map(([, rule]) => rule));
    const fired = new Set(broken.map(({ rule }) => rule));
    expect([...fired].filter((rule) => !shown.has(rule) && !rule.endsWith('-imports-only-its-own'))).toEqual(
      [],
    );
  });
});
