/** What people type, checked: each refusal names the option, its shape and what to do. */
import { readFileSync } from 'node:fs';
import { HoldfastError } from '../contract/error.ts';
import { parseExactJson } from '../contract/exact-json-text.ts';
import type { Json, JsonObject } from '../task/json.ts';

/** `--args JSON`, `--args @file` or `--args -` (standard input): one JSON object, numbers exact (M1.6). */
export function parseArgs(text: string): JsonObject {
  const value = parseJsonOption('--args', text);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw wrong('--args', 'a JSON object');
  return value;
}

export function parseJsonOption(option: string, text: string): Json {
  const source =
    text === '-' ? readFileSync(0, 'utf8') : text.startsWith('@') ? readNamed(option, text.slice(1)) : text;
  try {
    return parseExactJson(source);
  } catch (error) {
    if (error instanceof HoldfastError)
      throw new HoldfastError('invalid_arguments', `${option}: ${error.message}`, { details: error.details });
    throw wrong(option, 'JSON');
  }
}

function readNamed(option: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    throw wrong(option, `JSON, or @FILE naming a readable file (${path} is not)`);
  }
}

export function parseCount(option: string, text: string, maximum: number): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1 || count > maximum)
    throw wrong(option, `a whole number from 1 to ${maximum}`);
  return count;
}

export function parseChoice(option: string, text: string, choices: readonly string[]): void {
  if (!choices.includes(text)) throw wrong(option, `one of ${choices.join(', ')}`);
}

function wrong(option: string, expected: string): HoldfastError {
  return new HoldfastError('invalid_arguments', `${option} must be ${expected}.`, {
    details: { option, expected },
  });
}
