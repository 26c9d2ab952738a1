/**
 * M1.1: what `tools/list` publishes is what a call accepts, no more and no less, by an independent JSON Schema validator
 * over generated arguments. Refinements and transforms that throw are beyond JSON Schema, and not among these.
 */
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { validateArguments } from '../../src/contract/arguments.ts';
import { tryExactJson } from '../../src/contract/canonical.ts';
import { defineAction } from '../../src/contract/define-action.ts';
import { HoldfastError } from '../../src/contract/error.ts';
import { inputJsonSchema, outputJsonSchema } from '../../src/contract/json-schema.ts';
import type { JsonObject } from '../../src/task/json.ts';
import { holds } from '../support/property.ts';

const contractOf = (input: z.ZodObject, output: z.ZodType = z.null()) =>
  defineAction({ name: 'act', version: 1, description: 'acts', input, output, effect: 'safe' });

const node = z.object({
  name: z.string(),
  get children(): z.ZodOptional<z.ZodArray<typeof node>> {
    return z.array(node).max(2).optional();
  },
});

/** Each with what it accepts, and what is like it and may not be. */
const CASES: Record<string, { schema: z.ZodType; near: fc.Arbitrary<unknown> }> = {
  'a discriminated union': {
    schema: z.discriminatedUnion('type', [
      z.object({ type: z.literal('card'), number: z.string().min(4) }),
      z.object({ type: z.literal('bank'), iban: z.string(), bic: z.string().optional() }),
      z.strictObject({ type: z.enum(['cash', 'cheque']), amount: z.int().default(1) }),
    ]),
    near: fc.oneof(
      fc.constantFrom({ type: 'card', number: '1234' }, { type: 'bank', iban: 'DE' }, { type: 'cash' }),
      fc.record(
        {
          type: fc.constantFrom('card', 'bank', 'cash', 'cheque', 'gold', 1),
          number: fc.constantFrom('1234', '12', 5),
          iban: fc.constantFrom('DE', 1),
          bic: fc.constantFrom('X', null),
          amount: fc.constantFrom(1, 1.5),
        },
        { requiredKeys: [] },
      ),
    ),
  },
  'a discriminated union inside another': {
    schema: z.discriminatedUnion('kind', [
      z.object({
        kind: z.literal(1),
        of: z.discriminatedUnion('a', [z.object({ a: z.literal(true) }), z.object({ a: z.null() })]),
      }),
      z.object({ kind: z.literal(2) }),
    ]),
    near: fc.record(
      {
        kind: fc.constantFrom(1, 2, '1'),
        of: fc.record({ a: fc.constantFrom(true, false, null) }, { requiredKeys: [] }),
      },
      { requiredKeys: [] },
    ),
  },
  'a plain union': {
    schema: z.union([z.string(), z.int().min(0), z.object({ a: z.boolean() }), z.null()]),
    near: fc.constantFrom('', 1, -1, 1.5, { a: true }, { a: 1 }, { a: true, b: 1 }, null, []),
  },
  'a default': {
    schema: z.enum(['EUR', 'USD']).default('EUR'),
    near: fc.constantFrom('EUR', 'GBP', null, 1),
  },
  'a default of an object': {
    schema: z.object({ retries: z.int().default(3) }).default({ retries: 1 }),
    near: fc.constantFrom({}, { retries: 2 }, { retries: 'x' }, null),
  },
  'a prefault': { schema: z.string().trim().min(1).prefault('x'), near: fc.constantFrom('a', '', 1) },
  'an optional': { schema: z.string().max(3).optional(), near: fc.constantFrom('abc', 'abcd', null) },
  'a nullish': { schema: z.int().nullish(), near: fc.constantFrom(1, null, 'x', 0.5) },
  'a transform': {
    schema: z.string().transform((text) => text.length),
    near: fc.constantFrom('abc', 3, null),
  },
  // What a transform makes of a value no schema can tell: this one makes a number of every text.
  'a pipe': {
    schema: z
      .string()
      .transform((text) => text.length)
      .pipe(z.number()),
    near: fc.constantFrom('3', 3),
  },
  'a preprocess': { schema: z.preprocess((value) => value, z.int()), near: fc.constantFrom(3, '3', null) },
  'a number': {
    schema: z.number().min(-2).max(2),
    near: fc.constantFrom(0, 0.5, 2, 2.5, -2, -3, '1'),
  },
  'an integer': {
    schema: z.int(),
    near: fc.constantFrom(0, Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER, 1.5, '1'),
  },
  'a record': {
    schema: z.record(z.string().max(2), z.int()),
    near: fc.constantFrom({}, { a: 1 }, { abc: 1 }, { a: 'x' }, []),
  },
  'a record of named keys': {
    schema: z.partialRecord(z.enum(['a', 'b']), z.int()),
    near: fc.constantFrom({}, { a: 1 }, { c: 1 }, { a: 'x' }),
  },
  'a tuple': {
    schema: z.tuple([z.string(), z.int()]).rest(z.boolean()),
    near: fc.constantFrom(['a', 1], ['a'], ['a', 1, true], ['a', 1, 2], []),
  },
  'an array': {
    schema: z.array(z.int()).min(1).max(2),
    near: fc.constantFrom([], [1], [1, 2], [1, 2, 3], ['x'], {}),
  },
  'an intersection': {
    schema: z.intersection(z.object({ a: z.int() }), z.object({ b: z.int() })),
    near: fc.constantFrom({ a: 1, b: 1 }, { a: 1 }, { a: 1, b: 'x' }),
  },
  'a loose object': {
    schema: z.looseObject({ a: z.int() }),
    near: fc.constantFrom({ a: 1 }, { a: 1, b: 2 }, { b: 2 }),
  },
  'an object that is stripped': {
    schema: z.object({ a: z.int() }),
    near: fc.constantFrom({ a: 1 }, { a: 1, b: 2 }, { b: 2 }),
  },
  'a catchall': {
    schema: z.object({ a: z.int() }).catchall(z.string()),
    near: fc.constantFrom({ a: 1 }, { a: 1, b: 'x' }, { a: 1, b: 2 }),
  },
  recursion: {
    schema: node,
    near: fc.constantFrom(
      { name: 'a' },
      { name: 'a', children: [{ name: 'b' }] },
      { name: 'a', children: [{ name: 1 }] },
      { name: 'a', children: [{ name: 'b', children: [{}] }] },
    ),
  },
  'a literal of several': {
    schema: z.literal(['a', 1, null, true]),
    near: fc.constantFrom('a', 1, null, true, false, 'b'),
  },
};

const accepts = (contract: ReturnType<typeof contractOf>, args: JsonObject): boolean => {
  try {
    validateArguments(contract, args);
    return true;
  } catch (error) {
    if (error instanceof HoldfastError && error.code === 'invalid_arguments') return false;
    throw error;
  }
};

describe('the published schema of', () => {
  test.each(Object.entries(CASES))(
    '%s accepts what the call accepts, and nothing else [M1.1]',
    (name, { schema, near }) => {
      const contract = contractOf(z.object({ field: schema, other: z.int().optional() }));
      const published = inputJsonSchema(contract);
      const validate = new Ajv2020({ strict: false }).compile(published);
      let [taken, refused] = [0, 0];
      const args = fc.record(
        {
          field: fc.oneof(
            { weight: 9, arbitrary: near },
            fc.jsonValue({ maxDepth: 1 }).filter((value) => tryExactJson(value).ok),
          ),
          other: fc.constantFrom(1, 'x'),
          unknown: fc.constant(1),
        },
        { requiredKeys: ['field'] },
      );
      holds(
        `published schema of ${name}`,
        fc.oneof({ weight: 9, arbitrary: args }, fc.constant({})),
        (value) => {
          const isTaken = accepts(contract, value as JsonObject);
          if (isTaken) taken += 1;
          else refused += 1;
          expect(validate(value), JSON.stringify({ value, published })).toBe(isTaken);
        },
      );
      expect([taken > 0, refused > 0]).toEqual([true, true]); // or it would compare nothing
    },
  );

  test('an output is what the parsed result fits, defaults filled in and transforms applied [M1.1]', () => {
    const output = z.object({
      state: z.discriminatedUnion('is', [
        z.object({ is: z.literal('done'), at: z.iso.datetime() }),
        z.object({ is: z.literal('open'), tries: z.int().default(0) }),
      ]),
      note: z.string().optional(),
    });
    const published = outputJsonSchema(contractOf(z.object({}), output));
    const validate = new Ajv2020({ strict: false, validateFormats: false }).compile(published);
    for (const result of [
      { state: { is: 'open' } },
      { state: { is: 'done', at: '2026-01-01T00:00:00Z' }, note: 'x' },
    ])
      expect(validate(output.parse(result))).toBe(true);
    expect(validate({ state: { is: 'open' } })).toBe(false); // a result always has its default
  });
});
