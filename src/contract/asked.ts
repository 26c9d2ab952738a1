/**
 * Questions of a contract: fields that a person is asked for, by a form, where a call over MCP leaves them out and its
 * client takes forms. What comes back is an argument like any other: validated, fingerprinted, recorded.
 *
 * A form is flat, so what can be asked for is text, a number, yes or no, or a choice; never what is marked sensitive,
 * since forms are no place for secrets.
 */
import { z } from 'zod';
import { isJsonObject } from '../task/json.ts';
import type { Json, JsonObject } from '../task/json.ts';
import type { ActionContract, Defect } from './define-action.ts';
import { childPointer, isUnder } from './pointer.ts';

/** What a user writes. */
export interface Question {
  /** Names the question on the wire: 1 to 64 of `A–Z a–z 0–9 _ -`. */
  id: string;
  /** Fields of `input`, at its top level, asked for together. One with a default is shown with it filled in. */
  fields: string[];
  /** What the person reads above the form. Default: the action's name and description. */
  message?: string;
}

/** A question as a form: the schema of each field, and which of them must be filled in. */
export interface QuestionForm {
  readonly id: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, JsonObject>>;
  readonly required: readonly string[];
}

type Asking = Pick<ActionContract, 'name' | 'description' | 'input' | 'ask' | 'sensitive'>;

/** The contract's questions, in the order they are asked. Nothing is left out where `askDefects` finds nothing. */
export function questionForms(contract: Asking): QuestionForm[] {
  if (contract.ask.length === 0) return [];
  const { properties, required } = inputSchema(contract);
  return contract.ask.map(({ id, fields, message }) => ({
    id,
    message: message ?? `${contract.name} needs to know: ${contract.description}`,
    fields: Object.fromEntries(fields.map((field) => [field, formField(properties[field]) ?? {}])),
    required: fields.filter((field) => required.includes(field)),
  }));
}

export function askDefects(contract: Asking): Defect[] {
  if (contract.ask.length === 0) return [];
  const { properties } = inputSchema(contract);
  const ids = contract.ask.map(({ id }) => id);
  const repeated = ids.find((id, index) => ids.indexOf(id) !== index);
  return [
    ...(repeated === undefined
      ? []
      : [{ field: 'ask', message: `two questions have the id ${repeated}: give each its own` }]),
    ...contract.ask.flatMap(({ fields }, index) =>
      fields.flatMap((field) => {
        const message = fieldDefect(contract, field, properties);
        return message === null ? [] : [{ field: `ask.${index}.fields`, message: `${field} ${message}` }];
      }),
    ),
  ];
}

function fieldDefect({ sensitive }: Asking, field: string, properties: JsonObject): string | null {
  if (!Object.hasOwn(properties, field)) return 'is no field of input';
  const pointer = childPointer('', field);
  if (sensitive.input.some((pattern) => isUnder(pointer, pattern) || isUnder(pattern, pointer)))
    return 'is marked sensitive, and forms are no place for secrets: leave it out';
  return formField(properties[field]) === null
    ? 'can not be asked for by a form: only text, numbers, booleans and choices can'
    : null;
}

function inputSchema({ input }: Asking): { properties: JsonObject; required: string[] } {
  const schema = z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' });
  return { properties: (schema.properties ?? {}) as JsonObject, required: schema.required ?? [] };
}

const SHOWN = ['title', 'description', 'default'];
const TEXT = [...SHOWN, 'minLength', 'maxLength', 'enum', 'enumNames'];
const NUMBER = [...SHOWN, 'minimum', 'maximum'];
const LIST = [...SHOWN, 'minItems', 'maxItems'];
const FORMATS: readonly Json[] = ['email', 'uri', 'date', 'date-time'];

/** A field's JSON schema cut down to what forms know (MCP's PrimitiveSchemaDefinition); null where they can't ask for it. */
function formField(schema: Json | undefined): JsonObject | null {
  if (!isJsonObject(schema)) return null;
  switch (schema['type']) {
    case 'boolean':
      return { type: 'boolean', ...only(schema, SHOWN) };
    case 'integer':
    case 'number':
      return { type: schema['type'], ...only(schema, NUMBER) };
    case 'string': {
      const format = FORMATS.includes(schema['format'] ?? null) ? only(schema, ['format']) : {};
      return schema['const'] === undefined ? { type: 'string', ...only(schema, TEXT), ...format } : null;
    }
    case 'array': {
      const items = choices(schema['items']);
      return items === null ? null : { type: 'array', ...only(schema, LIST), items };
    }
    case undefined: {
      const titled = titledChoices(schema['anyOf']);
      return titled === null ? null : { type: 'string', ...only(schema, SHOWN), oneOf: titled };
    }
    default:
      return null;
  }
}

/** Several of a list may be chosen. */
function choices(items: Json | undefined): JsonObject | null {
  if (!isJsonObject(items)) return null;
  if (items['type'] === 'string' && Array.isArray(items['enum']))
    return { type: 'string', enum: items['enum'] };
  const titled = titledChoices(items['anyOf']);
  return titled === null ? null : { anyOf: titled };
}

/** `z.union([z.literal('a').meta({ title: 'A' }), …])`. */
function titledChoices(options: Json | undefined): JsonObject[] | null {
  if (!Array.isArray(options)) return null;
  const titled = options.map((option) =>
    isJsonObject(option) && typeof option['const'] === 'string'
      ? { const: option['const'], title: option['title'] ?? option['const'] }
      : null,
  );
  return titled.includes(null) ? null : (titled as JsonObject[]);
}

function only(schema: JsonObject, keywords: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(schema).filter(([keyword]) => keywords.includes(keyword)));
}
