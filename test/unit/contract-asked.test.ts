/** What a contract may ask a person for, and the forms that come of it. */
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAction, sensitive } from '../../src/index.ts';
import type { HoldfastError, Question } from '../../src/index.ts';
import { questionForms } from '../../src/contract/asked.ts';
import { inputJsonSchema } from '../../src/contract/json-schema.ts';

const output = z.json();
const contractOf = (input: z.ZodObject, ask: Question[]) =>
  defineAction({
    name: 'letter',
    version: 1,
    description: 'Sends a letter.',
    input,
    output,
    effect: 'safe',
    ask,
  });
const formOf = (input: z.ZodObject, fields: string[]) =>
  questionForms(contractOf(input, [{ id: 'q', fields }]))[0];
const defect = (input: z.ZodObject, ask: unknown): string => {
  try {
    contractOf(input, ask as Question[]);
    return '';
  } catch (error) {
    return (error as HoldfastError).message;
  }
};

describe('the form of a question', () => {
  test('has what forms know of each field’s schema, and what must be filled in [M1.1] [M2.3]', () => {
    const input = z.object({
      to: z.email().max(80).describe('Who gets it'),
      copies: z.int().min(1).max(9).default(1),
      speed: z.enum(['slow', 'fast']),
      urgent: z.boolean().optional(),
      text: z.string(),
    });
    expect(formOf(input, ['to', 'copies', 'speed', 'urgent'])).toEqual({
      id: 'q',
      message: 'letter needs to know: Sends a letter.',
      fields: {
        to: { type: 'string', format: 'email', maxLength: 80, description: 'Who gets it' },
        copies: { type: 'integer', minimum: 1, maximum: 9, default: 1 },
        speed: { type: 'string', enum: ['slow', 'fast'] },
        urgent: { type: 'boolean' },
      },
      required: ['to', 'speed'],
    });
  });

  test('offers choices by their titles, one or several [M2.3]', () => {
    const shelf = z.union([z.literal('a').meta({ title: 'Upper' }), z.literal('b').meta({ title: 'Lower' })]);
    expect(formOf(z.object({ shelf, shelves: z.array(shelf).max(2) }), ['shelf', 'shelves'])?.fields).toEqual(
      {
        shelf: { type: 'string', oneOf: [{ const: 'a', title: 'Upper' }, { const: 'b', title: 'Lower' }] }, // prettier-ignore
        shelves: { type: 'array', maxItems: 2, items: { anyOf: [{ const: 'a', title: 'Upper' }, { const: 'b', title: 'Lower' }] } }, // prettier-ignore
      },
    );
  });
});

describe('the published schema', () => {
  test('lets what a person is asked for be left out, and says so, so that no model makes it up [M1.1]', () => {
    const input = z.object({ to: z.string().describe('Who gets it.'), copies: z.int(), text: z.string() });
    const published = inputJsonSchema(contractOf(input, [{ id: 'q', fields: ['to', 'copies'] }]));
    expect(published).toMatchObject({
      properties: {
        to: { type: 'string', description: 'Who gets it. Left out, a person is asked for it.' },
        copies: { type: 'integer', description: 'Left out, a person is asked for it.' },
        text: { type: 'string' },
      },
      required: ['text'],
      additionalProperties: false,
    });
    expect(
      inputJsonSchema(contractOf(input, [{ id: 'q', fields: ['to', 'copies', 'text'] }])),
    ).not.toHaveProperty('required');
    expect(inputJsonSchema(contractOf(input, []))).toMatchObject({ required: ['to', 'copies', 'text'] });
  });
});

describe('a contract that asks', () => {
  test.each([
    [{ pin: sensitive(z.string()) }, 'pin', 'is marked sensitive'],
    [{ card: z.object({ pin: sensitive(z.string()) }) }, 'card', 'is marked sensitive'],
    [{ card: z.object({ number: z.string() }) }, 'card', 'can not be asked for by a form'],
    [{ list: z.array(z.string()) }, 'list', 'can not be asked for by a form'],
    [{ either: z.union([z.string(), z.int()]) }, 'either', 'can not be asked for by a form'],
    [{ to: z.string() }, 'from', 'is no field of input'],
    [{ to: z.string() }, 'constructor', 'is no field of input'],
  ])('for %j is refused where it names %s [S2.10]', (shape, field, why) => {
    expect(defect(z.object(shape), [{ id: 'q', fields: [field] }])).toContain(
      `ask.0.fields: ${field} ${why}`,
    );
  });

  test('never asks for anything of an input that is sensitive as a whole [S2.10]', () => {
    const input = sensitive(z.object({ to: z.string() }));
    expect(defect(input, [{ id: 'q', fields: ['to'] }])).toContain('is marked sensitive');
  });

  test.each([
    [
      [
        { id: 'q', fields: ['to'] },
        { id: 'q', fields: ['to'] },
      ],
      'two questions have the id q',
    ],
    [[{ id: 'a b', fields: ['to'] }], 'ask.0.id: write 1 to 64'],
    [[{ id: 'q', fields: [] }], 'ask.0.fields: write at least one'],
    [Array.from({ length: 6 }, (_, n) => ({ id: `q${n}`, fields: ['to'] })), 'ask: at most 5 questions'],
    [[{ id: 'q', field: 'to' }], 'ask.0: unknown: field'],
    ['to', 'ask: write questions'],
  ])('as %j is refused, and says how to mend it', (ask, why) => {
    expect(defect(z.object({ to: z.string() }), ask)).toContain(why);
  });

  test('can not ask of a safe action that its clients take tasks [M2.1]', () => {
    const base = { name: 'read', version: 1, description: 'Reads.', input: z.object({}), output } as const;
    expect(() => defineAction({ ...base, effect: 'safe', tasks: 'required' })).toThrow(
      /tasks: a safe action/,
    );
  });
});
