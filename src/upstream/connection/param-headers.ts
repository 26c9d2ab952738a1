/**
 * Arguments that a tool of 2026-07-28 wants repeated as HTTP headers (`x-mcp-header` in its schema), so that what stands
 * before the server can route by them. The server compares both and refuses a call without them.
 */
import { isJsonObject } from '../../task/json.ts';
import type { Json, JsonObject } from '../../task/json.ts';

const PREFIX = 'Mcp-Param-';
/** RFC 9110: what a header may be called. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Visible ASCII, blanks within: everything else is carried as base64. */
const PLAIN = /^[\x21-\x7E](?:[\x09\x20-\x7E]*[\x21-\x7E])?$/;
const ENCODED = /^=\?base64\?.*\?=$/;

/** Of the arguments that are there; null and absent ones have no header. */
export function paramHeaders(inputSchema: JsonObject, args: JsonObject): Record<string, string> {
  const headers: Record<string, string> = {};
  const { properties } = inputSchema;
  for (const [name, schema] of Object.entries(isJsonObject(properties) ? properties : {})) {
    const value = Object.hasOwn(args, name) ? args[name] : undefined;
    if (!isJsonObject(schema) || value === undefined) continue;
    const header = schema['x-mcp-header'];
    const text = textOf(value);
    if (typeof header === 'string' && TOKEN.test(header) && text !== null)
      headers[`${PREFIX}${header}`] = encoded(text);
    if (isJsonObject(value)) Object.assign(headers, paramHeaders(schema, value));
  }
  return headers;
}

function textOf(value: Json): string | null {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return String(value);
  return Number.isSafeInteger(value) ? String(value) : null;
}

const encoded = (text: string): string =>
  PLAIN.test(text) && !ENCODED.test(text)
    ? text
    : `=?base64?${Buffer.from(text, 'utf8').toString('base64')}?=`;
