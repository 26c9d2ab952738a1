/**
 * The result of an effect that never took place: what a target that lies would have answered (S2.6).
 *
 * Made from a real result by changing what the target itself has put into it (ids, hashes, numbers it assigned), never
 * what merely repeats the arguments: a verify that reads the target back can't find it there.
 */
import type { z } from 'zod';
import type { Json, JsonObject } from '../../task/json.ts';

type Leaf = string | number;

/** Null: nothing in the result is the target's own, so that a lie can't be told from the truth by it. */
export function forgedResult(result: Json, args: JsonObject, output: z.ZodType): Json {
  const echoed = new Set(leavesOf(args));
  const forged = structuredClone(result);
  const isFit = (): boolean => output.safeParse(forged).success;
  if (!isContainer(forged)) return null;
  const changed = sitesOf(forged).filter(({ holder, key }) => {
    const leaf = holder[key] as Leaf;
    if (echoed.has(leaf)) return false;
    return (
      variantsOf(leaf).some((variant) => {
        holder[key] = variant;
        return isFit();
      }) || restore(holder, key, leaf)
    );
  });
  return changed.length > 0 ? forged : null;
}

function restore(holder: Record<string, unknown>, key: string, leaf: Leaf): false {
  holder[key] = leaf;
  return false;
}

type Container = Record<string, unknown>;
const isContainer = (value: unknown): value is Container => typeof value === 'object' && value !== null;

function sitesOf(value: Container): { holder: Container; key: string }[] {
  return Object.entries(value).flatMap(([key, part]) => {
    if (isContainer(part)) return sitesOf(part);
    return typeof part === 'string' || typeof part === 'number' ? [{ holder: value, key }] : [];
  });
}

function leavesOf(value: unknown): Leaf[] {
  if (isContainer(value)) return Object.values(value).flatMap(leavesOf);
  return typeof value === 'string' || typeof value === 'number' ? [value] : [];
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
