/**
 * Property tests that can be run again: a failure prints its seed and keeps it in test-output/seeds.jsonl; what is copied
 * from there into test/vectors/seeds.json is tried first in every later run. HOLDFAST_PROPERTY_RUNS asks for more cases.
 */
import { appendFileSync, mkdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';

interface Seed {
  property: string;
  seed: number;
  path: string;
}

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));
const kept = JSON.parse(readFileSync(path('../vectors/seeds.json'), 'utf8')) as Seed[];

/** `property` names it in the seed files. */
export function holds<T>(
  property: string,
  cases: fc.Arbitrary<T>,
  check: (value: T) => void,
  runs = 300,
): void {
  const wanted = Number(process.env['HOLDFAST_PROPERTY_RUNS'] ?? runs);
  const body = fc.property(cases, check);
  for (const { seed, path: where } of kept.filter((entry) => entry.property === property)) {
    fc.assert(body, { seed, path: where, endOnFailure: true });
  }
  const details = fc.check(body, { numRuns: wanted });
  if (!details.failed) return;
  const seed: Seed = { property, seed: details.seed, path: details.counterexamplePath ?? '' };
  keepSeed(seed);
  throw new Error(`${JSON.stringify(seed)}\n${fc.defaultReportMessage(details)}`, {
    cause: details.errorInstance,
  });
}

/** Cases for what is too slow to be tried hundreds of times: the kept seeds' first, then `runs` of a new seed, printed. */
export function sampled<T>(
  property: string,
  cases: fc.Arbitrary<T>,
  runs: number,
): { seed: Seed; value: T }[] {
  const drawn = (seed: number, numRuns: number) =>
    fc
      .sample(cases, { seed, numRuns })
      .map((value, index) => ({ seed: { property, seed, path: String(index) }, value }));
  const known = kept
    .filter((entry) => entry.property === property)
    .flatMap(({ seed, path: index }) => drawn(seed, Number(index) + 1).slice(-1));
  const seed = Math.trunc(Math.random() * 0x7fff_ffff);
  console.info(`${property}: seed ${seed}`);
  return [...known, ...drawn(seed, runs)];
}

/** Keeps what failed, for vectors/seeds.json. */
export function keepSeed(seed: Seed): void {
  mkdirSync(path('../../test-output'), { recursive: true });
  appendFileSync(path('../../test-output/seeds.jsonl'), `${JSON.stringify(seed)}\n`);
}
