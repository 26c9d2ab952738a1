/**
 * A JSON-RPC message as text, read without losing anything (M1.6), before the SDK sees it: over HTTP the body, on stdio
 * the line.
 *
 * What can't be kept exactly inside the arguments of a tool call is the caller's mistake and becomes a tool result that
 * names the path: the message goes on, its arguments emptied and the issue in `_meta` under `INEXACT_META`. Anywhere
 * else (an id, a progress token, a task id) the message is refused.
 */
import { inexactArguments } from '../contract/canonical.ts';
import type { InexactValue } from '../contract/canonical.ts';
import { HoldfastError } from '../contract/error.ts';
import { parseExactJson } from '../contract/exact-json-text.ts';
import { INEXACT_META } from '../contract/wire-names.ts';
import { isJsonObject } from '../task/json.ts';
import type { Json, JsonObject } from '../task/json.ts';

export type MessageVerdict =
  | { kind: 'message'; value: Json }
  | { kind: 'not_json' }
  | { kind: 'too_deep' }
  /** `id` as far as it could be read; null for a batch, or where the id itself is what can't be kept. */
  | { kind: 'inexact'; id: string | number | null; issue: InexactValue };

const ARGUMENTS = '/params/arguments';

/** Null for bytes that are no UTF-8: replacing them would change what was sent. */
export function decodeUtf8(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

export function readMessage(text: string, depthMax: number): MessageVerdict {
  if (isDeeper(text, depthMax)) return { kind: 'too_deep' };
  try {
    return { kind: 'message', value: parseExactJson(text) };
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    const issue = firstIssue(error);
    const parsed = parseAnyhow(text);
    if (parsed === undefined) return { kind: 'not_json' };
    return markArguments(parsed, issue) ?? { kind: 'inexact', id: idOf(parsed, issue), issue };
  }
}

/** Throws `invalid_arguments` when `readMessage` found the arguments of this request inexact. */
export function refuseInexact(meta: Readonly<Record<string, unknown>>): void {
  const issue = meta[INEXACT_META];
  if (issue !== undefined) throw inexactArguments([isIssue(issue) ? issue : FOREIGN_ISSUE]);
}

const FOREIGN_ISSUE: InexactValue = {
  path: '',
  message: `_meta["${INEXACT_META}"] is set by the gateway alone`,
  expected: 'a call without it',
};

function isIssue(value: unknown): value is InexactValue {
  const { path, message, expected } = Object(value) as Partial<Record<keyof InexactValue, unknown>>;
  return [path, message, expected].every((each) => typeof each === 'string');
}

function markArguments(parsed: Json, issue: InexactValue): MessageVerdict | null {
  // In a batch (2025-03-26) the path begins with the message's index.
  const index = Array.isArray(parsed) ? /^\/(\d+)/.exec(issue.path)?.[1] : '';
  const path = index ? issue.path.slice(index.length + 1) : issue.path;
  const message = Array.isArray(parsed) ? parsed[Number(index)] : parsed;
  const isInArguments = path === ARGUMENTS || path.startsWith(`${ARGUMENTS}/`);
  if (
    !isInArguments ||
    !isJsonObject(message) ||
    message.method !== 'tools/call' ||
    !isJsonObject(message.params)
  )
    return null;
  const { _meta: meta } = message.params;
  const marked: JsonObject = {
    ...message,
    params: {
      ...message.params,
      arguments: {},
      _meta: {
        ...(isJsonObject(meta) && meta),
        [INEXACT_META]: { ...issue, path: path.slice(ARGUMENTS.length) },
      },
    },
  };
  return { kind: 'message', value: Array.isArray(parsed) ? parsed.with(Number(index), marked) : marked };
}

function idOf(parsed: Json, issue: InexactValue): string | number | null {
  if (!isJsonObject(parsed) || issue.path === '/id') return null;
  return typeof parsed.id === 'string' || typeof parsed.id === 'number' ? parsed.id : null;
}

function firstIssue(error: HoldfastError): InexactValue {
  const [issue] = error.details.issues as unknown as InexactValue[];
  if (issue === undefined) throw new Error('a refusal of inexact JSON names its issue');
  return issue;
}

function parseAnyhow(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING = new Set([0x5b, 0x7b]);
const CLOSING = new Set([0x5d, 0x7d]);

/** Whether brackets outside of strings nest beyond `depthMax`: on the text, since later readers of the value recurse. */
function isDeeper(text: string, depthMax: number): boolean {
  let depth = 0;
  let isInString = false;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (isInString) {
      if (unit === BACKSLASH) at += 1;
      else if (unit === QUOTE) isInString = false;
    } else if (unit === QUOTE) isInString = true;
    else if (OPENING.has(unit)) {
      depth += 1;
      if (depth > depthMax) return true;
    } else if (CLOSING.has(unit)) depth -= 1;
  }
  return false;
}
