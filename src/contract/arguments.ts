/** A call's arguments and an action's results, checked against the contract (M1.2, M1.6). */
import type { z } from 'zod';
import type { Json, JsonObject } from '../task/json.ts';
import { canonicalText, inexactArguments, tryExactJson } from './canonical.ts';
import type { ActionContract } from './define-action.ts';
import { HoldfastError } from './error.ts';
import { LIMITS } from './limits.ts';
import { isUnder, pointerOf, toldPointer } from './pointer.ts';
import { scrub, sensitiveTexts } from './redact.ts';
import { cut } from './text.ts';

/** One thing wrong with a value: where (a JSON pointer), what, and what was expected. Never the value. */
export interface ValueIssue {
  path: string;
  message: string;
  expected: string;
}

/**
 * The arguments as sent, made exact, and as the handler will get them: parsed, with defaults filled in. Throws
 * `invalid_arguments` (`details.issues`), or `payload_too_large` when either exceeds 1 MiB as canonical JSON.
 */
export function validateArguments(
  contract: ActionContract,
  args: unknown,
): { sent: JsonObject; input: JsonObject } {
  const sent = exactObject(args);
  checkSize(contract.name, sent);
  const parsed = parse(contract.input, sent);
  if (!parsed.success)
    throw invalidArguments(contract, describeIssues(parsed.error, sent, contract.sensitive.input));
  const input = exactObject(parsed.data);
  const dropped = droppedPrototypeKey(sent, input);
  if (dropped !== null) throw invalidArguments(contract, [prototypeKeyIssue(dropped)]);
  checkSize(contract.name, input);
  return { sent, input };
}

/**
 * A result as a handler or a person gave it, parsed by the contract's output schema and made exact. Never throws for
 * the value's sake: a wrong result must not undo what was done.
 */
export function checkResult(
  contract: ActionContract,
  result: unknown,
): { ok: true; result: Json } | { ok: false; issues: ValueIssue[] } {
  const exact = tryExactJson(result);
  if (!exact.ok) return { ok: false, issues: [exact.issue] };
  const parsed = parse(contract.output, exact.value);
  if (!parsed.success)
    return { ok: false, issues: describeIssues(parsed.error, exact.value, contract.sensitive.output) };
  const output = tryExactJson(parsed.data);
  return output.ok ? { ok: true, result: output.value } : { ok: false, issues: [output.issue] };
}

function parse(schema: z.ZodType, value: Json) {
  try {
    // A copy, since a schema of the user's (a transform, a preprocess) may change what it is given.
    return schema.safeParse(structuredClone(value));
  } catch (cause) {
    throw new HoldfastError(
      'invalid_contract',
      'A schema could not check a value by itself: it must be synchronous and not throw.',
      { cause },
    );
  }
}

/**
 * Where an own key `__proto__` was left out by the schema, as zod's records and loose objects do without a word: it is
 * data (S1.4), and what nobody would look at is refused.
 */
function droppedPrototypeKey(sent: Json, input: Json | undefined): string | null {
  if (typeof sent !== 'object' || sent === null || typeof input !== 'object' || input === null) return null;
  for (const [key, value] of Object.entries(sent)) {
    const kept = Object.getOwnPropertyDescriptor(input, key)?.value as Json | undefined;
    if (kept === undefined && key === PROTOTYPE_KEY) return pointerOf([key]);
    const below = droppedPrototypeKey(value, kept);
    if (below !== null) return pointerOf([key]) + below;
  }
  return null;
}

const PROTOTYPE_KEY = '__proto__';

const prototypeKeyIssue = (path: string): ValueIssue => ({
  path: toldPointer(path),
  message: `the contract’s schema can not keep a key named ${PROTOTYPE_KEY}`,
  expected: 'another key',
});

function exactObject(value: unknown): JsonObject {
  const exact = tryExactJson(value);
  if (!exact.ok) throw inexactArguments([exact.issue]);
  if (typeof exact.value !== 'object' || exact.value === null || Array.isArray(exact.value)) {
    throw inexactArguments([
      { path: '', message: 'not an object', expected: 'an object of named arguments' },
    ]);
  }
  return exact.value;
}

function checkSize(action: string, value: JsonObject): void {
  const bytes = Buffer.byteLength(canonicalText(value), 'utf8');
  const limit = LIMITS.argumentBytesMax.value;
  if (bytes <= limit) return;
  throw new HoldfastError(
    'payload_too_large',
    `The arguments of ${action} are ${bytes} bytes as canonical JSON; at most ${limit} are taken. Nothing was started. Pass a reference instead.`,
    { details: { bytes, limit } },
  );
}

function invalidArguments(contract: ActionContract, issues: ValueIssue[]): HoldfastError {
  const list = issues.map(({ path, message }) => `${path || 'the arguments'}: ${message}`).join('; ');
  return new HoldfastError(
    'invalid_arguments',
    `The arguments do not fit ${contract.name}: ${cut(list, 1_500)}`,
    {
      details: { issues: issues.map((issue) => ({ ...issue })) },
    },
  );
}

/** The first 20 issues. A schema's own words may repeat a sensitive value: they are left out there, and scrubbed elsewhere. */
function describeIssues(error: z.ZodError, value: Json, sensitive: readonly string[]): ValueIssue[] {
  const secrets = sensitiveTexts(value, sensitive);
  return error.issues.slice(0, LIMITS.issuesMax.value).map((issue) => {
    const pointer = pointerOf(issue.path);
    const path = toldPointer(pointer);
    if (sensitive.some((pattern) => isUnder(pointer, pattern))) {
      return {
        path,
        message: 'does not fit the contract (sensitive field)',
        expected: 'see the published schema',
      };
    }
    return { path, message: cut(scrub(issue.message, secrets), 300), expected: expectedBy(issue) };
  });
}

function expectedBy(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return issue.expected;
    case 'invalid_value':
      return cut(issue.values.map((value) => JSON.stringify(value)).join(' | '), 300);
    case 'too_small':
      return `${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum} (${issue.origin})`;
    case 'too_big':
      return `${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum} (${issue.origin})`;
    case 'invalid_format':
      return issue.pattern === undefined ? issue.format : cut(`${issue.format}: ${issue.pattern}`, 300);
    case 'not_multiple_of':
      return `a multiple of ${issue.divisor}`;
    case 'unrecognized_keys':
      return `no ${cut(issue.keys.join(', '), 300)}`;
    case 'invalid_union':
      return cut(
        issue.errors.map((branch) => branch.map((each) => expectedBy(each)).join(' and ')).join(', or '),
        300,
      );
    case 'invalid_key':
      return 'another key';
    case 'invalid_element':
      return 'another element';
    case 'custom':
      return 'see the message';
  }
}
