/**
 * Marking fields as sensitive (S2.10), and finding the marks again as pointer patterns.
 *
 * The marks live in a registry of their own, not in the published schema. They are inherited by what checks such as
 * `.min(3)` make of a marked schema, and found through optional, default, union, pipe and the like.
 */
import { z } from 'zod';
import { HoldfastError } from './error.ts';
import { childPointer } from './pointer.ts';

type Schema = z.core.$ZodType;

const marks = z.registry<{ sensitive: true }>();

/**
 * Marks `schema` as sensitive: its values never reach ledger, journal, audit, log, metric, error or approval view.
 * Answers the same kind of schema, marked: `sensitive(z.string())`. Derive before marking, not after: what `.extend()`,
 * `.pick()` and the like make of a marked object is a new, unmarked one.
 */
export function sensitive<Marked extends z.ZodType>(schema: Marked): Marked {
  // A clone, so that the mark stays off other uses of the schema; `parent` keeps its description.
  const marked = z.core.clone(schema, schema._zod.def, { parent: true });
  marks.add(marked, { sensitive: true });
  return marked;
}

/**
 * Patterns of all sensitive fields of `schema`, sorted, without duplicates; `*` stands for any index or key.
 *
 * A transform may move what is marked inside it anywhere, so then its whole value is sensitive. Throws
 * `invalid_contract` where a mark can't become a pattern: on a record's keys, and inside a recursive schema.
 */
export function sensitivePatterns(schema: z.ZodType, field: string): string[] {
  const search: Search = { field, loops: [], ancestors: new Map() };
  const patterns = [...new Set(find(search, schema, ''))].sort();
  for (const origin of search.loops) {
    const inside = patterns.find((pattern) => pattern.startsWith(`${origin}/`));
    if (inside === undefined) continue;
    const why = `lies in a schema that contains itself (at "${origin}"), which no pattern can name`;
    throw defect(field, inside, `is marked sensitive and ${why}: mark the whole recursive value`);
  }
  return patterns;
}

interface Search {
  readonly field: string;
  /** Pointers of schemas that were met again below themselves. */
  readonly loops: string[];
  readonly ancestors: Map<Schema, string>;
}

function find(search: Search, schema: Schema, pointer: string): string[] {
  if (marks.get(schema)?.sensitive) return [pointer];
  const seenAt = search.ancestors.get(schema);
  if (seenAt !== undefined) {
    search.loops.push(seenAt);
    return [];
  }
  search.ancestors.set(schema, pointer);
  const { def } = (schema as z.core.$ZodTypes)._zod;
  if (def.type === 'record' && marks.get(def.keyType)?.sensitive) {
    throw defect(
      search.field,
      pointer,
      'has keys marked sensitive; only values can be: mark the whole record',
    );
  }
  const found = childrenOf(def).flatMap(([child, segment]) => find(search, child, pointer + segment));
  search.ancestors.delete(schema);
  return found.length > 0 && isTransforming(def) ? [pointer] : found;
}

/** Each child with its pointer segment; an empty one for what wraps the same value. */
function childrenOf(def: z.core.$ZodTypes['_zod']['def']): [Schema, string][] {
  switch (def.type) {
    case 'object':
      return [
        ...Object.entries(def.shape).map(([key, child]): [Schema, string] => [child, childPointer('', key)]),
        ...optional(def.catchall, '/*'),
      ];
    case 'array':
      return [[def.element, '/*']];
    case 'tuple':
      return [
        ...def.items.map((child, index): [Schema, string] => [child, childPointer('', index)]),
        ...optional(def.rest, '/*'),
      ];
    case 'record':
      return [[def.valueType, '/*']];
    case 'union':
      return def.options.map((child) => [child, '']);
    case 'intersection':
      return [
        [def.left, ''],
        [def.right, ''],
      ];
    case 'pipe':
      return [
        [def.in, ''],
        [def.out, ''],
      ];
    case 'lazy':
      return [[def.getter(), '']];
    default:
      // optional, nullable, default, prefault, nonoptional, readonly, catch hold one schema; leaves hold none.
      return 'innerType' in def ? [[def.innerType, '']] : [];
  }
}

const optional = (child: Schema | null | undefined, segment: string): [Schema, string][] =>
  child == null ? [] : [[child, segment]];

function isTransforming(def: z.core.$ZodTypes['_zod']['def']): boolean {
  if (def.type !== 'pipe') return false;
  return 'transform' in def || [def.in, def.out].some((side) => side._zod.def.type === 'transform');
}

function defect(field: string, pointer: string, why: string): HoldfastError {
  const where = `${field}${pointer.replaceAll('/', '.')}`;
  return new HoldfastError('invalid_contract', `${where} ${why}.`, {
    details: { issues: [{ field: where, message: why }] },
  });
}
