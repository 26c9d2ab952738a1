/**
 * Asking other tools of a server, and judging what they answer. Nothing here changes anything; what could not be asked,
 * and an answer that says it failed where nobody looks at that, prove nothing.
 */
import { isJsonObject } from '../../task/json.ts';
import type { Json, JsonObject } from '../../task/json.ts';
import { shownAnswer } from '../answer.ts';
import { callToEnd } from '../awaited-task.ts';
import type { Expression } from '../cel/expression.ts';
import type { UpstreamLine, UpstreamReply } from '../upstream.ts';

/** Values of the variables of an expression. */
export type Values = Record<string, Json>;

export interface CompiledCall {
  tool: string;
  args: [name: string, from: Expression | { value: Json }][];
}

export interface CompiledReads {
  /** Its answer is `answer`. */
  one: CompiledCall | null;
  /** Their answers are `reads.NAME`. */
  many: [name: string, call: CompiledCall][];
}

/** Nothing is known: to a precondition not checked, to a lookup and a verification no answer. */
export class NotTold extends Error {
  constructor(why: string) {
    super(why);
    this.name = 'NotTold';
  }
}

export interface Asking {
  upstream: UpstreamLine;
  signal: AbortSignal;
}

/**
 * Throws {@link NotTold} where an argument has no value, or would be made of an answer that says it failed, which neither
 * the argument looks at nor the condition that led here (`judged`).
 */
export function argumentsOf(
  call: CompiledCall,
  values: Values,
  judged: ReadonlySet<string> = NONE,
): JsonObject {
  const given = call.args.map(([name, from]) => {
    if ('value' in from) return [name, from.value] as const;
    const failed = unjudgedFailure(from, values, judged);
    if (failed !== undefined)
      throw new NotTold(
        `the argument ${name} of ${call.tool} is made of ${failed}, which is an error, and nothing looks at its isError`,
      );
    const evaluated = from.evaluate(values);
    if (evaluated.ok) return [name, evaluated.value] as const;
    throw new NotTold(`the argument ${name} of ${call.tool} has no value: ${evaluated.reason}`);
  });
  return Object.fromEntries(given);
}

const NONE: ReadonlySet<string> = new Set();

/** An answer that the expression uses, that says it failed, and whose failure nobody looks at. */
const unjudgedFailure = (
  { answersRead, judgedFailures }: Expression,
  values: Values,
  judged: ReadonlySet<string> = NONE,
): string | undefined =>
  [...answersRead].find(
    (path) => path !== 'args' && !judgedFailures.has(path) && !judged.has(path) && hasFailed(path, values),
  );

async function ask({ upstream, signal }: Asking, call: CompiledCall, values: Values): Promise<JsonObject> {
  const reply = await callToEnd(upstream, { tool: call.tool, args: argumentsOf(call, values), signal });
  if (reply.kind === 'answer') return shownAnswer(reply);
  throw new NotTold(`${call.tool} could not be asked: ${whyUnanswered(reply)}`);
}

export function whyUnanswered(reply: Exclude<UpstreamReply, { kind: 'answer' | 'task' }>): string {
  switch (reply.kind) {
    case 'refused':
      return `the server refused the request (${reply.code}): ${reply.message}`;
    case 'not_sent':
      return `nothing was sent: ${reply.message}`;
    case 'in_doubt':
      return `no answer came: ${reply.message}`;
    default:
      return reply satisfies never;
  }
}

/** `values`, and with them what was read. */
export async function askAll(asking: Asking, { one, many }: CompiledReads, values: Values): Promise<Values> {
  if (one !== null) return { ...values, answer: await ask(asking, one, values) };
  return many.length === 0 ? values : { ...values, reads: await askNamed(asking, many, values) };
}

/** One after another: some servers answer one call at a time. */
export async function askNamed(
  asking: Asking,
  calls: CompiledReads['many'],
  values: Values,
): Promise<JsonObject> {
  const answers: JsonObject = {};
  for (const [name, call] of calls) answers[name] = await ask(asking, call, values);
  return answers;
}

export type Judged = { kind: 'yes' } | { kind: 'no' } | { kind: 'untold'; reason: string };

export function judge(expression: Expression, values: Values): Judged {
  const failed = unjudgedFailure(expression, values);
  if (failed !== undefined)
    return {
      kind: 'untold',
      reason: `${failed} is an error, and the condition does not look at its isError`,
    };
  const evaluated = expression.evaluate(values);
  if (!evaluated.ok) return { kind: 'untold', reason: evaluated.reason };
  return { kind: evaluated.value === true ? 'yes' : 'no' };
}

function hasFailed(path: string, values: Values): boolean {
  const answer = path
    .split('.')
    .reduce<Json | undefined>((at, name) => (isJsonObject(at) ? at[name] : undefined), values);
  return isJsonObject(answer) && answer['isError'] === true;
}
