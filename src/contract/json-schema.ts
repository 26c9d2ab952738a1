/** The schemas a tool publishes (M1.1): what its handler accepts and answers, as JSON Schema draft 2020-12. */
import { z } from 'zod';
import type { JsonObject } from '../task/json.ts';
import type { ActionContract, Defect } from './define-action.ts';
import { LIMITS } from './limits.ts';
import { pointerOf } from './pointer.ts';
import { KEY_ARGUMENT } from './wire-names.ts';

/** M1.3: no action may have an argument of this name of its own. */
const KEY_PROPERTY: JsonObject = {
  type: 'string',
  minLength: 1,
  maxLength: LIMITS.keyLengthMax.value,
  description:
    'Names the intent (for example an order id), so that a repeated call has its effect once: the same key and arguments always mean the same call. Use a new key for a new intent. Without one, an attempt whose outcome is unknown is never sent again.',
};

/**
 * What `tools/list` publishes as `inputSchema`: what the handler accepts before defaults are filled in, plus
 * `idempotencyKey` for every action that is not safe. What a person is asked for may be left out, or a model would make
 * it up.
 */
export function inputJsonSchema(contract: ActionContract): JsonObject {
  const schema = withoutAsked(convert(contract.input, 'input'), contract);
  return contract.effect === 'safe' ? schema : withKeyArgument(schema);
}

/** Any object's schema, and the argument of the key in it. */
export const withKeyArgument = (schema: JsonObject): JsonObject => ({
  ...schema,
  properties: { ...(schema['properties'] as JsonObject | undefined), [KEY_ARGUMENT]: KEY_PROPERTY },
});

const ASKED = 'Left out, a person is asked for it.';

function withoutAsked(schema: JsonObject, { ask }: ActionContract): JsonObject {
  const asked = new Set<unknown>(ask.flatMap(({ fields }) => fields));
  if (asked.size === 0) return schema;
  const { required, ...rest } = schema;
  const kept = (required as string[] | undefined)?.filter((field) => !asked.has(field)) ?? [];
  const properties = Object.entries(schema['properties'] as Record<string, JsonObject>).map(
    ([name, field]) => {
      const said = typeof field['description'] === 'string' ? `${field['description']} ` : '';
      return [name, asked.has(name) ? { ...field, description: `${said}${ASKED}` } : field];
    },
  );
  return { ...rest, properties: Object.fromEntries(properties), ...(kept.length > 0 && { required: kept }) };
}

/** The schema of the action's result. */
export const outputJsonSchema = (contract: ActionContract): JsonObject => convert(contract.output, 'output');

/** What of a contract's schemas can't be published or can't travel as JSON. */
export function schemaDefects(contract: ActionContract): Defect[] {
  const taken = Object.hasOwn(contract.input.shape, KEY_ARGUMENT)
    ? [
        {
          field: `input.${KEY_ARGUMENT}`,
          message: `the name is Holdfast's own argument (M1.3): rename the field`,
        },
      ]
    : [];
  return [
    ...taken,
    ...unrepresentable(contract.input, 'input', 'input'),
    // What a transform gives is looked at when a call is planned; the rest must be JSON after parsing too.
    ...unrepresentable(contract.input, 'output', 'input'),
    ...unrepresentable(contract.output, 'output', 'output'),
    ...replacing(contract.input),
  ].filter((defect, index, all) => all.findIndex(({ field }) => field === defect.field) === index);
}

function convert(schema: z.ZodType, io: 'input' | 'output'): JsonObject {
  const { '~standard': _standard, ...published } = z.toJSONSchema(schema, { io, target: 'draft-2020-12' });
  return published as JsonObject;
}

/** M1.1: a schema that takes anything and puts a value of its own in its place has no honest publication. */
function replacing(schema: z.ZodType): Defect[] {
  const defects: Defect[] = [];
  z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema, path }) => {
      if (zodSchema._zod.def.type !== 'catch') return;
      defects.push({
        field: fieldAt('input', path),
        message: 'z.catch acts on a value that nobody sent: refuse what does not fit, or use .default()',
      });
    },
  });
  return defects;
}

const fieldAt = (root: string, path: readonly (string | number)[]): string =>
  `${root}${pointerOf(path.filter((segment) => segment !== 'properties')).replaceAll('/', '.')}`;

function unrepresentable(schema: z.ZodType, io: 'input' | 'output', field: string): Defect[] {
  const defects: Defect[] = [];
  z.toJSONSchema(schema, {
    io,
    unrepresentable: ({ zodSchema, path }) => {
      const { type } = zodSchema._zod.def;
      if (field === 'input' && io === 'output' && (type === 'transform' || type === 'custom')) return {};
      defects.push({
        field: fieldAt(field, path),
        message: `z.${type} has no JSON form; dates travel as z.iso.datetime(), large integers and bytes as strings`,
      });
      return {};
    },
  });
  return defects;
}
