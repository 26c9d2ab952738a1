import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { PAGES } from '../../scripts/generate-docs.ts';
import { ERROR_CODES, HoldfastError } from '../../src/contract/error.ts';
import type { ErrorCode } from '../../src/contract/error.ts';

test.each(Object.entries(PAGES))('%s is what `npm run docs` writes', (path, page) => {
  expect(readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')).toBe(page());
});

test('every error code is a row of docs/errors.md and says what to do', () => {
  const page = PAGES['docs/errors.md']?.() ?? '';
  for (const code of Object.keys(ERROR_CODES) as ErrorCode[]) {
    expect(page).toContain(`| \`${code}\` |`);
    expect(new HoldfastError(code, 'm').retryable).toBe(ERROR_CODES[code].retryable);
  }
});
