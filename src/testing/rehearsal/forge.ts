/**
 * The result of an effect that never took place: what a target that lies would have answered (S2.6).
 *
 * Made from a real result by changing what the target itself has put into it (ids, hashes, numbers it assigned), never
 * what merely repeats the arguments: a verify that reads the target back can't find it there.
 */
import type { z } from 'zod';
import type { Json, JsonObject } from '../../task/json.ts';

type Leaf = string | number;

/** What an honest call was given and answered. */
export interface CleanRun {
  args: JsonObject;
  result: Json;
  /** Whether the target's count tells its arguments from those of an edit. */
  isCountedByArgs: boolean;
}

/**
 * As answered to `args` by a target that did nothing. Null: nothing in the result is the target's own, so that a lie
 * can't be told from the truth by it.
 */
export function forgedResult(
  clean: Pick<CleanRun, 'args' | 'result'>,
  args: JsonObject,
  output: z.ZodType,
): Json {
  const echoes = echoesOf(clean.args, args);
  const forged = structuredClone(clean.result);
  if (!isContainer(forged)) return null;
  const isFit = (): boolean => output.safeParse(forged).success;
  let isForged = false;
  for (const { holder, key } of sitesOf(forged)) {
    const leaf = holder[key] as Leaf;
    if (echoes.has(leaf)) holder[key] = echoes.get(leaf);
    else if (change(holder, key, variantsOf(leaf), isFit)) isForged = true;
  }
  return isForged ? forged : null;
}

/** Sets the first variant with which the whole still fits; else leaves it as it was. */
function change(holder: Container, key: string, variants: readonly Leaf[], isFit: () => boolean): boolean {
  const before = holder[key];
  const fits = variants.some((variant) => {
    holder[key] = variant;
    return isFit();
  });
  if (!fits) holder[key] = before;
  return fits;
}

/** What an argument of the honest call has become in this one. */
function echoesOf(clean: unknown, now: unknown): Map<Leaf, Leaf> {
  if (isLeaf(clean)) return new Map(isLeaf(now) ? [[clean, now]] : []);
  if (!isContainer(clean)) return new Map();
  const parts = isContainer(now) ? now : {};
  return new Map(Object.entries(clean).flatMap(([key, part]) => [...echoesOf(part, parts[key])]));
}

type Container = Record<string, unknown>;
const isContainer = (value: unknown): value is Container => typeof value === 'object' && value !== null;
const isLeaf = (value: unknown): value is Leaf => typeof value === 'string' || typeof value === 'number';

function sitesOf(value: Container): { holder: Container; key: string }[] {
  return Object.entries(value).flatMap(([key, part]) => {
    if (isContainer(part)) return sitesOf(part);
    return isLeaf(part) ? [{ holder: value, key }] : [];
  });
}

const NEVER = 900_000_001;

/** Longer first, so that it meets nothing that is there; of the same length where the shape asks for that. */
function variantsOf(leaf: Leaf): Leaf[] {
  if (typeof leaf === 'number') return [leaf + NEVER];
  const last = leaf.at(-1) ?? '';
  const suffix = /[a-z]/.test(last) ? 'zzzzzzzz' : /[A-Z]/.test(last) ? 'ZZZZZZZZ' : '77777777';
  return [leaf + suffix, rotated(leaf)];
}

const LAST_CHANGED = 8;

/** The last characters, each by another of its kind: digits, hex letters, letters. */
function rotated(text: string): string {
  const from = text.length - LAST_CHANGED;
  return [...text].map((character, index) => (index < from ? character : next(character))).join('');
}

const RINGS = ['0123456789', 'abcdef', 'ghijklmnopqrstuvwxyz', 'ABCDEF', 'GHIJKLMNOPQRSTUVWXYZ'];

function next(character: string): string {
  const ring = RINGS.find((each) => each.includes(character));
  return ring === undefined ? character : (ring[(ring.indexOf(character) + 3) % ring.length] ?? character);
}
