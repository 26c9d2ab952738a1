/**
 * The tools of one gateway, each published once.
 *
 * Invariants:
 * 1. What `tools/list` shows is the same entries in the same order for every client, until all are replaced at once.
 * 2. A tool that can't be published is quarantined by name with its reason; the others are listed all the same (M1.1).
 * 3. No name is two tools: the later of two, and an action named like a task tool, is quarantined.
 */
import { HoldfastError } from '../contract/error.ts';
import { jsonSchemaCheck } from '../contract/json-schema-check.ts';
import type { JsonSchemaCheck } from '../contract/json-schema-check.ts';
import { LIMITS } from '../contract/limits.ts';
import { EFFECT_META, OWN_KEY_META } from '../contract/wire-names.ts';
import type { JsonObject } from '../task/json.ts';
import type { ToolSpec } from './tool-spec.ts';

export interface ListedTool {
  name: string;
  title?: string;
  description: string;
  inputSchema: JsonObject;
  outputSchema?: JsonObject;
  annotations: {
    readOnlyHint: boolean;
    destructiveHint: boolean;
    idempotentHint: boolean;
    openWorldHint: boolean;
  };
  _meta: JsonObject;
}

export interface Quarantined {
  name: string;
  error: HoldfastError;
}

export type ToolLookup =
  { kind: 'action'; spec: ToolSpec } | { kind: 'quarantined'; error: HoldfastError } | { kind: 'unknown' };

export interface MirroredTool {
  name: string;
  inputSchema: JsonSchemaCheck;
}

export interface ToolCatalog {
  /** Frozen. */
  readonly listed: readonly ListedTool[];
  /** Those with an `x-mcp-header` in their schema: clients mirror such arguments in headers, which the SDK compares (SEP-2243). */
  readonly mirrored: readonly MirroredTool[];
  readonly quarantined: readonly Quarantined[];
  find(name: string): ToolLookup;
}

export function createCatalog(specs: readonly ToolSpec[], reservedNames: readonly string[]): ToolCatalog {
  const usable = new Map<string, { spec: ToolSpec; listed: ListedTool; mirrored: MirroredTool[] }>();
  const broken = new Map<string, HoldfastError>();
  const quarantined: Quarantined[] = [];
  for (const spec of specs) {
    try {
      checkName(spec.name);
      if (reservedNames.includes(spec.name)) throw invalidTool(spec.name, 'has the name of a built-in tool');
      if (usable.has(spec.name)) throw invalidTool(spec.name, 'is configured twice; the first one is used');
      const listed = deepFreeze(listedTool(spec));
      usable.set(spec.name, { spec, listed, mirrored: mirroredOf(listed) });
    } catch (error) {
      const reason = error instanceof HoldfastError ? error : unpublishable(spec.name, error);
      quarantined.push({ name: String(spec.name), error: reason });
      broken.set(spec.name, reason);
    }
  }
  const listed = Object.freeze([...usable.values()].map((tool) => tool.listed));
  return {
    listed,
    mirrored: [...usable.values()].flatMap((tool) => tool.mirrored),
    quarantined,
    find(name) {
      const tool = usable.get(name);
      if (tool) return { kind: 'action', spec: tool.spec };
      const error = broken.get(name);
      return error ? { kind: 'quarantined', error } : { kind: 'unknown' };
    },
  };
}

export interface LiveCatalog extends ToolCatalog {
  /** What is listed from now on; calls that are under way keep their tool. */
  replace(specs: readonly ToolSpec[]): void;
}

/** One whose tools may become others: those of another's server that was not there at the start. */
export function createLiveCatalog(specs: readonly ToolSpec[], reservedNames: readonly string[]): LiveCatalog {
  let current = createCatalog(specs, reservedNames);
  return {
    get listed() {
      return current.listed;
    },
    get mirrored() {
      return current.mirrored;
    },
    get quarantined() {
      return current.quarantined;
    },
    find: (name) => current.find(name),
    replace: (next) => void (current = createCatalog(next, reservedNames)),
  };
}

function listedTool(spec: ToolSpec): ListedTool {
  const inputSchema = spec.publishSchema();
  if (inputSchema.type !== 'object')
    throw invalidTool(spec.name, 'publishes a schema whose root is not `type: "object"`');
  const isSafe = spec.effect === 'safe';
  return {
    name: spec.name,
    ...(spec.title !== undefined && { title: spec.title }),
    description: spec.description,
    inputSchema,
    ...(spec.outputSchema && { outputSchema: spec.outputSchema }),
    // Display only (S5.1). Without a key a second call is a second effect, so no effect is claimed to be idempotent.
    annotations: {
      readOnlyHint: isSafe,
      destructiveHint: !isSafe && !spec.isReversible,
      idempotentHint: isSafe,
      openWorldHint: true,
    },
    _meta: {
      [EFFECT_META]: spec.effect,
      ...(spec.keyArgument !== undefined && { [OWN_KEY_META]: spec.keyArgument }),
    },
  };
}

const mirroredOf = ({ name, inputSchema }: ListedTool): MirroredTool[] =>
  JSON.stringify(inputSchema).includes('"x-mcp-header":')
    ? [{ name, inputSchema: jsonSchemaCheck(inputSchema) }]
    : [];

function checkName(name: string): void {
  const longest = LIMITS.toolNameLengthMax.value;
  if (typeof name === 'string' && new RegExp(`^[A-Za-z0-9_-]{1,${longest}}$`).test(name)) return;
  throw invalidTool(name, `needs a name of 1 to ${longest} of A-Z a-z 0-9 _ -`);
}

const invalidTool = (name: string, why: string) =>
  new HoldfastError('invalid_contract', `The tool ${name} ${why}.`, { details: { tool: String(name) } });

const unpublishable = (name: string, cause: unknown) =>
  new HoldfastError(
    'invalid_contract',
    `The input schema of the tool ${name} can not be published: ${cause instanceof Error ? cause.message : String(cause)}`,
    { details: { tool: String(name) }, cause },
  );

function deepFreeze<T extends object>(value: T): T {
  for (const member of Object.values(value)) {
    if (typeof member === 'object' && member !== null && !Object.isFrozen(member))
      deepFreeze(member as object);
  }
  return Object.freeze(value);
}
