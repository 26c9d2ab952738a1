/** What a command prints: one JSON object for scripts, words for people; errors alike in both (architecture.md). */
import { randomUUID } from 'node:crypto';
import { HoldfastError } from '../contract/error.ts';
import { ERROR_CODES } from '../contract/error.ts';
import { exitCodeOfError } from './exit-code.ts';
import { oneLine, openTerminal } from './terminal.ts';
import type { Terminal } from './terminal.ts';

export interface Report {
  isJson: boolean;
  terminal: Terminal;
  /** The command's answer: `value` under `--json`, else what `people` writes. */
  answer(value: unknown, people: (terminal: Terminal) => void): void;
}

export function openReport(isJson: boolean): Report {
  const terminal = openTerminal();
  return {
    isJson,
    terminal,
    answer: (value, people) => {
      if (isJson) process.stdout.write(`${JSON.stringify(value)}\n`);
      else people(terminal);
    },
  };
}

/** Prints `error` and answers the exit code. A defect shows a number to quote, never a stack. */
export function reportError(error: unknown, isJson: boolean): number {
  const known = error instanceof HoldfastError ? error : internal(error);
  if (isJson) process.stdout.write(`${JSON.stringify({ error: known.toJSON() })}\n`);
  else {
    const terminal = openTerminal(process.stderr);
    terminal.write(`${terminal.paint('red', known.code)}: ${oneLine(known.message)}`);
    terminal.write(terminal.paint('dim', `  ${ERROR_CODES[known.code].action}`));
  }
  return exitCodeOfError(known);
}

function internal(error: unknown): HoldfastError {
  const id = randomUUID();
  if (process.env['HOLDFAST_LOG_LEVEL'] === 'debug') console.error(id, error);
  const name = error instanceof Error ? error.name : typeof error;
  return new HoldfastError(
    'internal_error',
    `Unexpected ${name}. Run again with HOLDFAST_LOG_LEVEL=debug to see it (${id}).`,
    {
      details: { correlationId: id },
      cause: error,
    },
  );
}
