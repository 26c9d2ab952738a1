/**
 * The argument in which a server takes its key. Holdfast fills it in, with the operation id: what a caller puts there names
 * the intent and is no part of the input, so no expression sees it.
 */
import type { UpstreamToolDefinition } from '../../contract/upstream-definition.ts';
import { isJsonObject } from '../../task/json.ts';
import type { JsonObject } from '../../task/json.ts';
import { celTypeOf } from '../cel/cel-type.ts';
import type { CelType } from '../cel/cel-type.ts';
import type { UpstreamTool } from '../upstream.ts';

export const keyArgumentOf = ({ effect, key }: UpstreamToolDefinition): string | undefined =>
  effect !== 'safe' && key !== undefined && 'argument' in key ? key.argument : undefined;

/** A caller may leave it out where the server may not be given a call without. */
export function keyIsOptional({ inputSchema }: UpstreamTool, definition: UpstreamToolDefinition): JsonObject {
  const { required } = inputSchema;
  const key = keyArgumentOf(definition);
  if (key === undefined || !Array.isArray(required)) return inputSchema;
  return { ...inputSchema, required: required.filter((name) => name !== key) };
}

/** What expressions know of `args`. */
export function argumentsType({ inputSchema }: UpstreamTool, definition: UpstreamToolDefinition): CelType {
  const key = keyArgumentOf(definition);
  const { properties } = inputSchema;
  if (key === undefined || !isJsonObject(properties)) return celTypeOf(inputSchema, inputSchema);
  const { [key]: _key, ...others } = properties;
  return celTypeOf({ ...inputSchema, properties: others }, inputSchema);
}
