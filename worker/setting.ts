/** One setting, and the shapes that several share. */
import { z } from 'zod';
import { parseDuration } from '../src/contract/duration.ts';

export interface Setting<Value> {
  /** The environment variable; it wins over the file. */
  env: string;
  /** The key in holdfast.config.ts, dotted; null for what belongs into no file (secrets, who asks). */
  key: string | null;
  /** Takes the text of the variable or the value from the file. */
  schema: z.ZodType<Value>;
  /** The shape, as an error message says it. */
  expected: string;
  fix: string;
  meaning: string;
  /** What holds when it is not set, in words. */
  defaultText: string;
  default: (() => Value) | null;
}

export const text = z.string().trim().min(1).max(4_096);
export const wholeNumber = (minimum: number, maximum: number) =>
  z
    .union([
      z.number(),
      z
        .string()
        .trim()
        .regex(/^\d{1,9}$/)
        .transform(Number),
    ])
    .pipe(z.int().min(minimum).max(maximum));
export const duration = (minimumMs: number, maximumMs: number) =>
  z
    .union([z.number(), z.string().trim()])
    .transform((value) => parseDuration(value) ?? Number.NaN)
    .pipe(z.int().min(minimumMs).max(maximumMs));
export const roles = z
  .union([z.array(z.string()), z.string().transform((list) => list.split(','))])
  .transform((list) => list.map((role) => role.trim()).filter((role) => role !== ''))
  .pipe(z.array(z.string().max(255)).max(100));

/** Words in a list, or in text with commas between them. */
export const words = (fits: (word: string) => boolean, most: number) =>
  z
    .union([z.array(z.string()), z.string().transform((list) => list.split(','))])
    .transform((list) => list.map((word) => word.trim()).filter((word) => word !== ''))
    .pipe(z.array(z.string().refine(fits)).min(1).max(most));

export const setting = <Value>(value: Setting<Value>): Setting<Value> => value;
