/**
 * `npm run bench [-- --quick] [--json] [--only PART,…]`: measures, prints a table (or, with `--json`, an array of
 * `{name, value, unit, bar, ok}`), and exits with 1 where a figure misses its bar. docs/performance.md says what the
 * figures mean.
 */
import { parseArgs } from 'node:util';
import { lineOf, tableOf } from './figure.ts';
import type { Figure } from './figure.ts';
import { callFigures, separateCallFigures } from './figures/call-figures.ts';
import { historyFigures } from './figures/history-figures.ts';
import { ledgerFigures } from './figures/ledger-figures.ts';
import { growthFigures, waitingFigures } from './figures/memory-figures.ts';
import { readFigures } from './figures/read-figures.ts';
import { upstreamFigures } from './figures/upstream-figures.ts';
import { startBareProcess, startWorkerProcess } from './processes/child.ts';
import { FULL, QUICK } from './size.ts';
import type { Size } from './size.ts';
import { openSystem } from './system.ts';
import type { System } from './system.ts';

type Measure = (system: System, size: Size) => Promise<Figure[]>;

interface Part {
  /** Whether this process takes work too, as `serve` does. */
  worker: boolean;
  measures: Record<string, Measure>;
}

const PARTS: readonly Part[] = [
  {
    worker: true,
    measures: { calls: callFigures, history: historyFigures, ledger: ledgerFigures, reads: readFigures },
  },
  { worker: false, measures: { upstreams: upstreamFigures } },
  { worker: false, measures: { separate: inSeparateProcesses } },
  { worker: false, measures: { waiting: (system, size) => waitingFigures(system, size.waitingTasks) } },
  { worker: false, measures: { growth: (system, size) => growthFigures(system, size.longRunCalls) } },
];

const { values: options } = parseArgs({
  options: { json: { type: 'boolean' }, quick: { type: 'boolean' }, only: { type: 'string' } },
});
const only = options.only?.split(',');
const size = options.quick ? QUICK : FULL;
const isAsked = (name: string): boolean =>
  (only?.includes(name) ?? true) &&
  (name !== 'waiting' || size.waitingTasks.length > 0) &&
  (name !== 'growth' || size.longRunCalls > 0);

const figures: Figure[] = [];
for (const part of PARTS) figures.push(...(await measurePart(part)));
const lines = figures.map(lineOf);
console.log(options.json ? JSON.stringify(lines, null, 2) : tableOf(lines));
// Native threads and open handles must not keep a finished run alive.
process.exit(lines.every(({ ok }) => ok) ? 0 : 1);

/** Each part on a server and a ledger of its own, so that none inherits another's history. */
async function measurePart({ worker, measures }: Part): Promise<Figure[]> {
  const asked = Object.entries(measures).filter(([name]) => isAsked(name));
  if (asked.length === 0) return [];
  const system = await openSystem({ worker });
  const measured: Figure[] = [];
  try {
    for (const [name, measure] of asked) {
      const startedAt = performance.now();
      measured.push(...(await measure(system, size)));
      console.error(`${name}: ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`);
    }
  } finally {
    await system.close();
  }
  return measured;
}

async function inSeparateProcesses(system: System, measured: Size): Promise<Figure[]> {
  const children = [await startWorkerProcess(system), await startBareProcess(system)];
  try {
    return await separateCallFigures(system, measured);
  } finally {
    for (const child of children) await child.stop();
  }
}
