import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { upstreamsSchema } from '../../../src/contract/upstream-schema.ts';

const page = readFileSync(new URL('../../../docs/upstream.md', import.meta.url), 'utf8');

/** Every field that a configuration may have, at any depth. */
function fieldsOf(schema: unknown): string[] {
  if (Array.isArray(schema)) return schema.flatMap(fieldsOf);
  if (typeof schema !== 'object' || schema === null) return [];
  const { properties, ...rest } = schema as { properties?: Record<string, unknown> };
  return [
    ...Object.keys(properties ?? {}),
    ...[...Object.values(properties ?? {}), ...Object.values(rest)].flatMap(fieldsOf),
  ];
}

test('docs/upstream.md names every field of `upstreams`', () => {
  const fields = new Set(fieldsOf(z.toJSONSchema(upstreamsSchema, { unrepresentable: 'any', io: 'input' })));
  expect([...fields]).toEqual(
    expect.arrayContaining(['identity', 'notApplied', 'natural', 'heartbeat', 'remains']),
  );
  const named = [...fields].filter((field) => new RegExp(`\`[^\`]*\\b${field}\\b[^\`]*\``).test(page));
  expect(named).toEqual([...fields]);
});
