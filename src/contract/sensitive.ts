/**
 * Marking fields as sensitive (S2.10), and finding the marks again as pointer patterns.
 *
 * The marks live in a registry of their own, not in the published schema. They are inherited by what checks such as
 * `.min(3)` make of a marked schema, and found through optional, default, union, pipe and the like.
 */
import { z } from 'zod';
import { HoldfastError } from './error.ts';
import { childPointer } from './pointer.ts';

const marks = z.registry<{ sensitive: true }>();

/**
 * Marks `schema` as sensitive: its values never reach ledger, journal, audit, log, metric, error or approval view.
 * Answers the same schema, marked. `sensitive(z.string())`.
 */
export function sensitive<Schema extends z.ZodType>(schema: Schema): Schema {
  // A clone, so that the mark stays off other uses of the schema; `parent` keeps its description.
  const marked = z.core.clone(schema, schema._zod.def, { parent: true });
  marks.add(marked, { sensitive: true });
  return marked;
}

type Visit = (schema: z.core.$ZodType, pointer: string) => void;

/** Only what children need; `def` differs by kind and zod publishes no common shape for it. */
interface Definition {
  type: string;
  [member: string]: unknown;
}

/**
 * Patterns of all sensitive fields of `schema`, sorted, without duplicates; `*` stands for any index or key. Throws
 * `invalid_contract` where a mark can't be turned into a pattern: on a record's or map's keys, and inside a recursive schema.
 */
export function sensitivePatterns(schema: z.ZodType, field: string): string[] {
  const found = new Set<string>();
  const recursive: string[] = [];
  const path = new Map<z.core.$ZodType, string>();
  const visit: Visit = (node, pointer) => {
    if (marks.get(node)?.sensitive) {
      found.add(pointer);
      return;
    }
    const seenAt = path.get(node);
    if (seenAt !== undefined) {
      recursive.push(seenAt);
      return;
    }
    path.set(node, pointer);
    visitChildren(node._zod.def as unknown as Definition, pointer, visit, field);
    path.delete(node);
  };
  visit(schema, '');
  for (const pattern of found) {
    const origin = recursive.find((pointer) => pattern.startsWith(`${pointer}/`) || pattern === pointer);
    if (origin !== undefined) {
      throw new HoldfastError(
        'invalid_contract',
        `${field}: the sensitive field ${pattern} lies in a schema that contains itself (at "${origin}"), which no pattern can name. Mark the whole recursive value as sensitive.`,
        { details: { field: `${field}${pattern}` } },
      );
    }
  }
  return [...found].sort();
}

function visitChildren(def: Definition, pointer: string, visit: Visit, field: string): void {
  const each = (children: unknown, at: (index: number) => string) =>
    (children as z.core.$ZodType[]).forEach((child, index) => visit(child, at(index)));
  const one = (child: unknown, at: string) => {
    if (child != null) visit(child as z.core.$ZodType, at);
  };
  switch (def.type) {
    case 'object':
      for (const [key, child] of Object.entries(def['shape'] as object))
        one(child, childPointer(pointer, key));
      return one(def['catchall'], `${pointer}/*`);
    case 'array':
      return one(def['element'], `${pointer}/*`);
    case 'tuple':
      each(def['items'], (index) => childPointer(pointer, index));
      return one(def['rest'], `${pointer}/*`);
    case 'record':
      refuseMarkedKeys(def['keyType'] as z.core.$ZodType, pointer, field);
      return one(def['valueType'], `${pointer}/*`);
    case 'union':
      return each(def['options'], () => pointer);
    case 'intersection':
      return each([def['left'], def['right']], () => pointer);
    case 'pipe':
      return each([def['in'], def['out']], () => pointer);
    case 'lazy':
      return one((def['getter'] as () => unknown)(), pointer);
    default:
      // optional, nullable, default, prefault, nonoptional, readonly, catch: one inner schema; leaves: none.
      return one(def['innerType'], pointer);
  }
}

function refuseMarkedKeys(keys: z.core.$ZodType, pointer: string, field: string): void {
  if (!marks.get(keys)?.sensitive) return;
  throw new HoldfastError(
    'invalid_contract',
    `${field}: the keys of the record at "${pointer}" are marked sensitive; only values can be. Mark the whole record instead.`,
    { details: { field: `${field}${pointer}` } },
  );
}
