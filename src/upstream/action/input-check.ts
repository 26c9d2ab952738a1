/** Arguments against the schema that a server publishes, by the MCP SDK's own validator. */
import { z } from 'zod';
import { jsonSchemaCheck } from '../../contract/json-schema-check.ts';
import { childPointer } from '../../contract/pointer.ts';
import type { JsonObject } from '../../task/json.ts';

/** What is wrong with a value, each with a JSON pointer. Empty: it fits. */
export type InputCheck = (value: JsonObject) => { path: string; message: string }[];

/** Throws where the schema is none, or refers to another document. */
export function inputCheck(schema: JsonObject): InputCheck {
  const validator = jsonSchemaCheck(schema);
  return (value) => {
    const outcome = validator['~standard'].validate(value);
    if (outcome instanceof Promise) throw new Error('the validator must answer at once');
    return (outcome.issues ?? []).flatMap(({ message }) => issuesIn(message));
  };
}

/** The validator joins all it finds: `data/a must be string, data must NOT have additional properties`. */
function issuesIn(text: string): { path: string; message: string }[] {
  return text.split(/, (?=data[/ ])/).map((one) => {
    const [, path = '', message = one] = /^data(\/\S*)? ([\s\S]*)$/.exec(one) ?? [];
    return { path, message };
  });
}

/** Takes and answers any object that passes the check, unchanged but for the argument that is left out. */
export const checkedInput = (check: InputCheck, leftOut?: string): z.ZodObject =>
  z
    .looseObject({})
    .superRefine((value, context) => {
      for (const { path, message } of check(value as JsonObject))
        context.addIssue({ code: 'custom', message, path: segmentsOf(path) });
    })
    .overwrite((value) =>
      leftOut === undefined
        ? value
        : Object.fromEntries(Object.entries(value).filter(([name]) => name !== leftOut)),
    );

const segmentsOf = (path: string): string[] =>
  path
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'));

/** Whether the schema's own property takes this text. */
export function takesText(schema: JsonObject, argument: string, text: string): boolean {
  const check = inputCheck({ ...schema, required: [] });
  const pointer = childPointer('', argument);
  return !check({ [argument]: text }).some(({ path }) => path === pointer);
}
