import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { VERSION } from '../../src/contract/version.ts';

test('to clients and servers it names the version of the package', () => {
  const read = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  expect((JSON.parse(read) as { version: string }).version).toBe(VERSION);
});
