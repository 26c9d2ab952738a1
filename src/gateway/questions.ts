/**
 * A contract's questions in the midst of a call: fields that were left out are asked for before anything starts. Pure.
 *
 * Invariants:
 * 1. Each question is put at most once to a call: what a person did not fill in is then left to validation.
 * 2. An answer adds the question's own fields, those that were left out, and no others.
 * 3. The state a client carries meanwhile holds what it was told itself: the answers so far, and no decision.
 */
import { inputRequired, inputResponse } from '@modelcontextprotocol/server';
import type { InputRequest } from '@modelcontextprotocol/server';
import type { QuestionForm } from '../contract/asked.ts';
import { HoldfastError } from '../contract/error.ts';
import type { Json, JsonObject } from '../task/json.ts';
import { ownOf } from './approval.ts';
import type { Caller } from './caller.ts';
import type { ToolSpec } from './tool-spec.ts';

/** What was asked in earlier rounds of a call. */
export interface AskedSoFar {
  asked: string[];
  answers: JsonObject;
}

export type Asked =
  /** Nothing is left to ask: the arguments with all answers. */
  { kind: 'complete'; args: JsonObject } | { kind: 'ask'; question: QuestionForm; soFar: AskedSoFar };

/**
 * What to ask next. Throws `input_declined` where the person declined or dismissed a form. A client that takes no forms
 * is asked nothing: what is missing is then `invalid_arguments`.
 */
export function askNext(
  { name, questions = [] }: ToolSpec,
  given: JsonObject,
  { canElicit, inputResponses }: Pick<Caller, 'canElicit' | 'inputResponses'>,
  before: AskedSoFar = { asked: [], answers: {} },
): Asked {
  const isLeftOut = (field: string): boolean => !Object.hasOwn(given, field);
  let { asked, answers } = before;
  for (const question of questions) {
    const missing = Object.keys(question.fields).filter(isLeftOut);
    if (missing.length === 0 || asked.includes(question.id)) continue;
    const answer = answerTo(name, question, inputResponses);
    if (answer === null) {
      if (!canElicit) continue;
      return { kind: 'ask', question: about(question, missing), soFar: { asked, answers } };
    }
    asked = [...asked, question.id];
    answers = { ...answers, ...pick(answer, missing) };
  }
  return { kind: 'complete', args: { ...given, ...answers } };
}

/** The question as an input request of the call. */
export function inputRequestOf({ message, fields, required }: QuestionForm): InputRequest {
  const requestedSchema = { type: 'object', properties: fields, required: [...required] };
  return inputRequired.elicit({ message, requestedSchema } as Parameters<typeof inputRequired.elicit>[0]);
}

/** Null: not answered yet, or not by anything that could be an answer. */
function answerTo(tool: string, { id }: QuestionForm, responses: unknown): JsonObject | null {
  const response = inputResponse(ownOf(responses), id);
  if (response.kind !== 'elicit') return null;
  if (response.action !== 'accept')
    throw new HoldfastError(
      'input_declined',
      `A person was asked for ${id} of ${tool} and gave no answer. Nothing was started.`,
      { details: { question: id, action: response.action } },
    );
  return (response.content ?? {}) as JsonObject;
}

function about(question: QuestionForm, missing: readonly string[]): QuestionForm {
  return {
    ...question,
    fields: pick(question.fields, missing) as Record<string, JsonObject>,
    required: question.required.filter((field) => missing.includes(field)),
  };
}

function pick(from: Readonly<Record<string, Json>>, fields: readonly string[]): JsonObject {
  return Object.fromEntries(
    fields.flatMap((field) => {
      const value = Object.hasOwn(from, field) ? from[field] : undefined;
      return value === undefined ? [] : [[field, value]];
    }),
  );
}
