import { HoldfastError } from '../src/contract/error.ts';
import type { JsonObject } from '../src/task/json.ts';

export interface ConfigurationIssue {
  /** The variable, or the key in the file. */
  name: string;
  problem: string;
  expected: string;
  fix: string;
}

/** One error for everything that is wrong, so that a user corrects all of it at once. Never holds a value. */
export function configurationError(
  issues: [ConfigurationIssue, ...ConfigurationIssue[]],
  cause?: unknown,
): HoldfastError {
  const lines = issues.map(
    ({ name, problem, expected, fix }) => `${name}: ${problem}. Expected ${expected}; ${fix}.`,
  );
  const [{ name, expected, fix }] = issues;
  return new HoldfastError('invalid_configuration', lines.join('\n'), {
    details: { name, expected, fix, issues: issues as unknown as JsonObject[] },
    cause,
  });
}
