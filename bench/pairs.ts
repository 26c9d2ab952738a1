/**
 * Interleaved measurement: what is compared takes turns within one run, so that whatever else this machine does at the
 * moment slows each of them alike. Answers are ratios; the times they are made of are not comparable between runs.
 */
import { median } from './statistics.ts';

export interface Contender {
  /** One call, from the request to the answer in the caller's hand. */
  call(): Promise<unknown>;
  /** Not measured: until nothing of the last call is still at work. */
  settle?(): Promise<unknown>;
}

export type Contenders<Name extends string> = Readonly<Record<Name, Contender>>;
export type Samples<Name extends string> = Record<Name, number[]>;

/** So many turns, or fewer when the time is up; never fewer than a tenth. */
export interface Turns {
  turns: number;
  seconds: number;
}

/** Milliseconds of single calls, one after the other, each turn in another order. */
export async function takeTurns<Name extends string>(
  contenders: Contenders<Name>,
  { turns, seconds }: Turns,
): Promise<Samples<Name>> {
  const names = Object.keys(contenders) as Name[];
  const samples = emptySamples(names);
  const endsAt = performance.now() + seconds * 1_000;
  for (let turn = 0; turn < turns && (turn < turns / 10 || performance.now() < endsAt); turn += 1) {
    for (const name of rotated(names, turn)) {
      const { call, settle } = contenders[name];
      const startedAt = performance.now();
      await call();
      samples[name].push(performance.now() - startedAt);
      await settle?.();
    }
  }
  return samples;
}

/** So many rounds, or fewer when the time is up; never none. */
export interface Rounds {
  rounds: number;
  calls: number;
  concurrency: number;
  seconds: number;
}

/** Calls per second at a fixed concurrency, one number for each round of each contender. */
export async function takeRounds<Name extends string>(
  contenders: Contenders<Name>,
  options: Rounds,
): Promise<Samples<Name>> {
  const names = Object.keys(contenders) as Name[];
  const samples = emptySamples(names);
  const endsAt = performance.now() + options.seconds * 1_000;
  for (let round = 0; round < options.rounds && (round === 0 || performance.now() < endsAt); round += 1) {
    for (const name of rotated(names, round)) samples[name].push(await throughput(contenders[name], options));
  }
  return samples;
}

async function throughput(
  { call, settle }: Contender,
  { calls, concurrency }: { calls: number; concurrency: number },
): Promise<number> {
  let begun = 0;
  const lane = async (): Promise<void> => {
    while (begun < calls) {
      begun += 1;
      await call();
    }
  };
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: concurrency }, lane));
  // What is still at work belongs to these calls, whoever has his answer already.
  await settle?.();
  return (calls * 1_000) / (performance.now() - startedAt);
}

/** Median over median. */
export const ratio = (over: readonly number[], under: readonly number[]): number =>
  median(over) / median(under);

/** The median of each round's own ratio. */
export function pairedRatio(over: readonly number[], under: readonly number[]): number {
  return median(over.map((value, index) => value / (under[index] ?? Number.NaN)));
}

function emptySamples<Name extends string>(names: readonly Name[]): Samples<Name> {
  return Object.fromEntries(names.map((name) => [name, []])) as unknown as Samples<Name>;
}

function rotated<T>(items: readonly T[], by: number): T[] {
  const cut = by % items.length;
  const turned = [...items.slice(cut), ...items.slice(0, cut)];
  // Every other lap backwards, so that none always follows the same other.
  return Math.floor(by / items.length) % 2 === 0 ? turned : turned.reverse();
}
