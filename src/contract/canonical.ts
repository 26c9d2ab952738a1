/**
 * Exact JSON and its canonical form (RFC 8785), the bytes that fingerprints, rows and hashes are made of (S1.4).
 *
 * The package `canonicalize` orders keys and prints numbers as RFC 8785 says, but turns what JSON can't hold into
 * something else (`Map` to `{}`, `[undefined]` to `[null]`). So every value passes `exactJson` first, which refuses
 * such values by path and answers a detached plain copy, from which alone the text is made.
 */
import canonicalize from 'canonicalize';
import type { Json, JsonObject } from '../task/json.ts';
import { HoldfastError } from './error.ts';
import { LIMITS } from './limits.ts';
import { pointerOf, toldPointer } from './pointer.ts';
import { hasLoneSurrogate } from './text.ts';

/** Why one value can't be kept exactly. `path` is a JSON pointer; neither field repeats the value. */
export interface InexactValue {
  path: string;
  message: string;
  expected: string;
}

class Inexact extends Error {
  readonly value: InexactValue;
  constructor(value: InexactValue) {
    super(value.message);
    this.value = value;
  }
}

/** The members that lead to a value; a pointer is made of them for what is refused alone, or each member would cost one. */
type Path = (string | number)[];

const refuse = (path: Path, message: string, expected: string): never => {
  throw new Inexact({ path: toldPointer(pointerOf(path)), message, expected });
};

/** The first reason why `value` is no exact JSON, or its detached copy. Never throws, except through a Proxy or getter of a hostile value. */
export function tryExactJson(value: unknown): { ok: true; value: Json } | { ok: false; issue: InexactValue } {
  try {
    return { ok: true, value: copy(value, [], []) };
  } catch (error) {
    if (error instanceof Inexact) return { ok: false, issue: error.value };
    throw error;
  }
}

/**
 * A deep copy of `value` as plain JSON (S1.4).
 *
 * Refused with `invalid_arguments` and the JSON pointer: NaN, ±Infinity, integers beyond 2^53 − 1 in either direction,
 * BigInt, strings or keys with lone surrogates, `undefined` except as an object member (which counts as omitted),
 * functions, symbols, sparse arrays, cycles, anything whose prototype is not plain (Date, Map, class instances), getters,
 * hidden or symbol-keyed properties, and nesting beyond 100 levels. `-0` becomes `0`; own keys such as `__proto__` are data.
 */
export function exactJson(value: unknown): Json {
  const outcome = tryExactJson(value);
  if (outcome.ok) return outcome.value;
  throw inexactArguments([outcome.issue]);
}

/** The RFC 8785 text of `value` after the checks of {@link exactJson}. Throws `invalid_arguments` as that does. */
export const canonicalJson = (value: unknown): string => canonicalText(exactJson(value));

/** The RFC 8785 text of a value that is already exact JSON. */
export function canonicalText(value: Json): string {
  const text = canonicalize(value);
  if (text === undefined) throw new Error('canonicalize answered nothing for a JSON value');
  return text;
}

export function inexactArguments(given: InexactValue[]): HoldfastError {
  const issues = given.map((issue) => ({ ...issue, path: toldPointer(issue.path) }));
  const first = issues[0];
  const where = first?.path === '' ? 'The arguments' : `The value at ${first?.path}`;
  return new HoldfastError('invalid_arguments', `${where} can not be kept exactly: ${first?.message}.`, {
    details: { issues },
  });
}

function copy(value: unknown, path: Path, ancestors: object[]): Json {
  switch (typeof value) {
    case 'boolean':
      return value;
    case 'string':
      return hasLoneSurrogate(value)
        ? refuse(path, 'a string with a lone surrogate', 'well-formed Unicode')
        : value;
    case 'number':
      return copyNumber(value, path);
    case 'object':
      return value === null ? null : copyContainer(value, path, ancestors);
    case 'bigint':
      return refuse(path, 'a BigInt', 'a string of digits');
    case 'undefined':
      return refuse(path, 'undefined', 'a JSON value, or null');
    case 'function':
    case 'symbol':
      return refuse(path, `a ${typeof value}`, 'a JSON value');
  }
}

function copyNumber(value: number, path: Path): number {
  if (!Number.isFinite(value)) return refuse(path, String(value), 'a finite number');
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    return refuse(path, 'an integer beyond 2^53', 'a string of digits');
  }
  return value === 0 ? 0 : value;
}

function copyContainer(value: object, path: Path, ancestors: object[]): Json {
  if (ancestors.includes(value)) return refuse(path, 'a cycle', 'a value that does not contain itself');
  if (ancestors.length >= LIMITS.nestingDepthMax.value) {
    return refuse(path, `nested deeper than ${LIMITS.nestingDepthMax.value} levels`, 'a flatter value');
  }
  ancestors.push(value);
  const result = Array.isArray(value)
    ? copyArray(value, path, ancestors)
    : copyObject(value, path, ancestors);
  ancestors.pop();
  return result;
}

function copyArray(value: unknown[], path: Path, ancestors: object[]): Json[] {
  if (Object.getPrototypeOf(value) !== Array.prototype)
    return refuse(path, 'an instance of a class', 'a plain array');
  if (Reflect.ownKeys(value).length > value.length + 1)
    return refuse(path, 'an array with named members', 'a plain array');
  return Array.from({ length: value.length }, (_, index) => {
    path.push(index);
    if (!Object.hasOwn(value, index))
      return refuse(path, 'a hole in a sparse array', 'a JSON value, or null');
    const kept = copy(dataOf(value, String(index), path), path, ancestors);
    path.pop();
    return kept;
  });
}

function copyObject(value: object, path: Path, ancestors: object[]): JsonObject {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    return refuse(path, `an instance of ${classOf(value)}`, 'a plain object, or a string');
  }
  const result: JsonObject = {};
  for (const key of Reflect.ownKeys(value)) {
    if (typeof key === 'symbol') return refuse(path, 'an object with a symbol as key', 'string keys');
    if (hasLoneSurrogate(key)) return refuse(path, 'a key with a lone surrogate', 'well-formed Unicode');
    path.push(key);
    const member = dataOf(value, key, path);
    if (member !== undefined) setOwn(result, key, copy(member, path, ancestors));
    path.pop();
  }
  return result;
}

/** Assigning `__proto__` would set the prototype; defining every member would cost several times as much. */
function setOwn(object: JsonObject, key: string, value: Json): void {
  if (key !== '__proto__') object[key] = value;
  else Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
}

/** The member as data: reading it twice, or through a getter, could give two answers. */
function dataOf(value: object, key: string, path: Path): unknown {
  const descriptor = Object.getOwnPropertyDescriptor(value, key);
  if (descriptor === undefined || !('value' in descriptor)) return refuse(path, 'a getter', 'a plain value');
  if (!descriptor.enumerable) return refuse(path, 'a hidden property', 'a plain value');
  return descriptor.value;
}

function classOf(value: object): string {
  const name = Object.prototype.toString.call(value).slice('[object '.length, -1);
  return name !== 'Object' && /^\w{1,64}$/.test(name) ? name : 'a class';
}
