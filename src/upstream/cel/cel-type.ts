/**
 * What CEL knows of a value, read from a JSON Schema as far as CEL can say it; the rest is `dyn`.
 *
 * JSON has one kind of number and CEL two. Only what a schema calls an integer is an `int`; every other number is a
 * `double`, also where it happens to be whole, so that an expression does not fail for some values alone.
 */
import { LIMITS } from '../../contract/limits.ts';
import { isJsonObject } from '../../task/json.ts';
import type { Json, JsonObject } from '../../task/json.ts';

export type CelType =
  | { kind: 'dyn' | 'string' | 'bool' | 'int' | 'double' }
  | { kind: 'list'; of: CelType }
  | { kind: 'map' }
  /** Only the named fields exist. */
  | { kind: 'object'; fields: Record<string, CelType> };

/** The library shows an expression only the declared fields of an object: the whole travels in a field of its own. */
const WHOLE = '\0whole';

export const DYN: CelType = { kind: 'dyn' };
const DEPTH_MAX = 16;

/** A part of the schema that is still to be read, and where its type belongs. */
interface Unread {
  schema: Json | undefined;
  depth: number;
  put: (type: CelType) => void;
}

/** Level by level, so that what does not fit any more is what lies deepest. */
export function celTypeOf(schema: Json | undefined, root: JsonObject = {}): CelType {
  let whole = DYN;
  const unread: Unread[] = [{ schema, depth: 0, put: (type) => void (whole = type) }];
  const takes = (more: number): boolean => unread.length + more <= LIMITS.celTypeNodesMax.value;
  // It grows while it is gone through.
  for (const { schema: part, depth, put } of unread) {
    const resolved = depth > DEPTH_MAX ? null : resolve(part, root);
    if (resolved?.['type'] === 'array' && takes(1)) {
      const list = { kind: 'list' as const, of: DYN };
      unread.push({ schema: resolved['items'], depth: depth + 1, put: (type) => void (list.of = type) });
      put(list);
    } else if (resolved?.['type'] === 'object') {
      const members = namedMembers(resolved);
      if (members === null || !takes(members.length)) put({ kind: 'map' });
      else {
        const fields = Object.create(null) as Record<string, CelType>;
        for (const [name, member] of members)
          unread.push({ schema: member, depth: depth + 1, put: (type) => void (fields[name] = type) });
        put({ kind: 'object', fields });
      }
    } else put(scalarType(resolved?.['type']));
  }
  return whole;
}

function scalarType(type: Json | undefined): CelType {
  switch (type) {
    case 'string':
      return { kind: 'string' };
    case 'boolean':
      return { kind: 'bool' };
    case 'integer':
      return { kind: 'int' };
    case 'number':
      return { kind: 'double' };
    default:
      return DYN;
  }
}

/** Null: others may be there too, or none is known. */
function namedMembers(schema: JsonObject): [string, Json][] | null {
  const { properties } = schema;
  const isOpen = schema['patternProperties'] !== undefined || isJsonObject(schema['additionalProperties']);
  return isOpen || !isJsonObject(properties) ? null : Object.entries(properties);
}

/** A local `$ref` followed; null for what says nothing, or several things. */
function resolve(schema: Json | undefined, root: JsonObject): JsonObject | null {
  if (!isJsonObject(schema)) return null;
  const { $ref } = schema;
  if (typeof $ref !== 'string') return isSeveral(schema) ? null : schema;
  if (!$ref.startsWith('#/')) return null;
  const target = $ref
    .slice(2)
    .split('/')
    .reduce<Json | undefined>(
      (at, step) => (isJsonObject(at) && Object.hasOwn(at, step) ? at[step] : undefined),
      root,
    );
  return isJsonObject(target) && target['$ref'] === undefined && !isSeveral(target) ? target : null;
}

const isSeveral = (schema: JsonObject): boolean =>
  schema['anyOf'] !== undefined || schema['oneOf'] !== undefined || schema['nullable'] === true;

/** In the words of the CEL library: a type's name, or the fields of an object. */
export type Declared = string | { [field: string]: Declared };

export function declared(type: CelType): Declared {
  switch (type.kind) {
    case 'object': {
      const fields = Object.entries(type.fields).map(([name, field]) => [name, declared(field)] as const);
      return { ...Object.fromEntries(fields), [WHOLE]: 'dyn' };
    }
    case 'map':
      return 'map<string, dyn>';
    case 'list': {
      if (type.of.kind === 'object') return 'list<dyn>';
      const of = declared(type.of);
      return typeof of === 'string' ? `list<${of}>` : 'list<dyn>';
    }
    default:
      return type.kind;
  }
}

/** A JSON value as the CEL library wants it: integers as BigInt where the type says so, the rest as it is. */
export function toCel(value: Json, type: CelType): unknown {
  switch (type.kind) {
    case 'int':
      return typeof value === 'number' && Number.isInteger(value) ? BigInt(value) : value;
    case 'list':
      return Array.isArray(value) && declared(type) !== 'list<dyn>'
        ? value.map((member) => toCel(member, type.of))
        : value;
    case 'object':
      return isJsonObject(value) ? objectToCel(value, type.fields) : value;
    default:
      return value;
  }
}

function objectToCel(value: JsonObject, fields: Record<string, CelType>): Record<string, unknown> {
  const members = Object.entries(value).map(([name, field]) => [
    name,
    toCel(field, Object.hasOwn(fields, name) ? (fields[name] ?? DYN) : DYN),
  ]);
  return { ...(Object.fromEntries(members) as Record<string, unknown>), [WHOLE]: value };
}

/** What an expression answered, as JSON; undefined where JSON has no such value, or would round it. */
export function fromCel(value: unknown): Json | undefined {
  if (typeof value === 'bigint') {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : undefined;
  }
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value;
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined;
  if (Array.isArray(value)) return allOf(value.map(fromCel));
  if (typeof value !== 'object') return undefined;
  return entriesOf(value);
}

function entriesOf(value: object): Json | undefined {
  const whole = value instanceof Map ? (value.get(WHOLE) as Json | undefined) : undefined;
  if (whole !== undefined) return whole;
  const isPlain = [Object.prototype, null].includes(Object.getPrototypeOf(value) as null);
  if (!isPlain && !(value instanceof Map)) return undefined;
  const entries = [...(value instanceof Map ? value.entries() : Object.entries(value))] as [
    unknown,
    unknown,
  ][];
  const members = allOf(entries.map(([, member]) => fromCel(member)));
  if (members === undefined || !entries.every(([name]) => typeof name === 'string')) return undefined;
  return Object.fromEntries(entries.map(([name], index) => [name as string, members[index] as Json]));
}

const allOf = (values: (Json | undefined)[]): Json[] | undefined =>
  values.every((value) => value !== undefined) ? values : undefined;
