/**
 * What a handler returned, made fit to be kept: checked against the contract, plain JSON, redacted for the row, by
 * reference where it is large. Nothing here ever undoes an effect: a result that can't be kept is dropped, with its
 * hash, and the task completes all the same (interfaces.md "Sizes").
 */
import { createHash } from 'node:crypto';
import { checkResult } from '../contract/arguments.ts';
import { canonicalText, tryExactJson } from '../contract/canonical.ts';
import type { ActionContract } from '../contract/define-action.ts';
import { LIMITS } from '../contract/limits.ts';
import { redact } from '../contract/redact.ts';
import type { Json } from '../task/json.ts';
import type { StoredResult } from '../task/outcome.ts';

export interface Result {
  /** Whole and parsed anew: what verify and rollback are given (S2.9). Null when it could not be recalled. */
  value: Json;
  /** For the row: sensitive fields redacted. */
  stored: StoredResult;
  /** For the workflow, whose history is encrypted: whole where it is small. */
  answer: StoredResult;
}

/** A result and, where the row refers to it, the text that must be put into the payload table. */
export interface ComposedResult extends Result {
  payload: string | null;
}

export type CheckedOutput =
  | { kind: 'fits'; value: Json }
  /** Not exact JSON and not what the schema takes; `value` is as near as JSON comes, undefined when there is no way. */
  | { kind: 'inexact'; value: Json | undefined }
  /** JSON, but not what the contract promises: a defect of the handler. */
  | { kind: 'misfit'; value: Json; issue: string };

/**
 * A handler's output as the contract's schema parsed it. What JSON can't hold exactly is kept as near as possible (a Date
 * as its ISO text, a BigInt, NaN or an integer beyond 2^53 as text). Never throws: the effect has happened.
 */
export function checkOutput(contract: ActionContract | undefined, output: unknown): CheckedOutput {
  const given = output === undefined ? null : output;
  const exact = exactly(given);
  if (exact === undefined) return checkInexact(contract, given);
  if (contract === undefined) return { kind: 'fits', value: exact };
  try {
    const checked = checkResult(contract, exact);
    if (checked.ok) return { kind: 'fits', value: checked.result };
    const [issue] = checked.issues;
    return {
      kind: 'misfit',
      value: exact,
      issue: `${issue?.path || 'the result'}: ${issue?.message ?? 'invalid'}`,
    };
  } catch {
    return { kind: 'misfit', value: exact, issue: 'the output schema threw' };
  }
}

function checkInexact(contract: ActionContract | undefined, output: unknown): CheckedOutput {
  let parsed = output;
  try {
    const checked = contract?.output.safeParse(output);
    if (checked?.success === false) return { kind: 'inexact', value: nearestJson(output) };
    if (checked !== undefined) parsed = checked.data;
  } catch {
    return { kind: 'inexact', value: nearestJson(output) };
  }
  const value = nearestJson(parsed);
  return value === undefined ? { kind: 'inexact', value } : { kind: 'fits', value };
}

/** Forms of a result for the row and the workflow. Calls nothing. */
export function composeResult(value: Json, sensitive: readonly string[]): ComposedResult {
  const whole = canonicalText(value);
  const shown = sensitive.length === 0 ? whole : canonicalText(redact(value, sensitive));
  const [wholeBytes, shownBytes] = [Buffer.byteLength(whole), Buffer.byteLength(shown)];
  if (Math.max(wholeBytes, shownBytes) <= LIMITS.resultInlineBytesMax.value) {
    return { value: parse(whole), stored: inline(shown), answer: inline(whole), payload: null };
  }
  const isKept = shownBytes <= LIMITS.resultStoredBytesMax.value;
  const stored: StoredResult = {
    kind: isKept ? 'reference' : 'dropped',
    sha256: sha256(shown),
    bytes: shownBytes,
  };
  return { value: parse(whole), stored, answer: stored, payload: isKept ? shown : null };
}

/** A result that can't be kept as it is: the task completes and says so. */
export function droppedResult(value: Json | undefined, sensitive: readonly string[]): ComposedResult {
  const shown = value === undefined ? '' : canonicalText(redact(value, sensitive));
  const stored: StoredResult = { kind: 'dropped', sha256: sha256(shown), bytes: Buffer.byteLength(shown) };
  return { value: value ?? null, stored, answer: stored, payload: null };
}

export const NO_RESULT: StoredResult = { kind: 'inline', value: null };

const parse = (text: string): Json => JSON.parse(text) as Json;
const inline = (text: string): StoredResult => ({ kind: 'inline', value: parse(text) });
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

function exactly(value: unknown): Json | undefined {
  try {
    const exact = tryExactJson(value);
    return exact.ok ? exact.value : undefined;
  } catch {
    return undefined; // a getter or a Proxy threw
  }
}

/** As `JSON.stringify` would have it, with numbers that it would falsify as text; undefined when there is no way. */
function nearestJson(value: unknown): Json | undefined {
  try {
    const text = JSON.stringify(value, asText);
    return text === undefined ? undefined : exactly(JSON.parse(text));
  } catch {
    return undefined; // a cycle, or deeper than the stack
  }
}

function asText(_key: string, value: unknown): unknown {
  switch (typeof value) {
    case 'bigint':
      return String(value);
    case 'number':
      if (!Number.isFinite(value)) return String(value);
      return Number.isInteger(value) && !Number.isSafeInteger(value) ? String(BigInt(value)) : value;
    case 'string':
      return value.replace(/\p{Surrogate}/gu, '\ufffd');
    default:
      return value;
  }
}
