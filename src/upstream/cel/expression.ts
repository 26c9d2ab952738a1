/**
 * One CEL expression: parsed and checked once against what its variables are known to be, evaluated without effects.
 *
 * Fails closed: an expression that throws, answers another type, or would take too long has no value; who asks must not
 * take that for a yes.
 */
import { Environment } from '@marcbachmann/cel-js';
import type { ParseResult } from '@marcbachmann/cel-js';
import { parseExactJson } from '../../contract/exact-json-text.ts';
import { LIMITS } from '../../contract/limits.ts';
import type { Json } from '../../task/json.ts';
import { declared, fromCel, toCel } from './cel-type.ts';
import type { CelType } from './cel-type.ts';
import { touchedBy } from './walk.ts';
import type { Touched } from './walk.ts';

export type Wanted = 'bool' | 'string' | 'json';

export interface Expression {
  source: string;
  /** Answers it looks at (`answer`, `reads.now`), and those whose failure it judges itself. */
  answersRead: ReadonlySet<string>;
  judgedFailures: ReadonlySet<string>;
  variables: ReadonlySet<string>;
  evaluate(values: Record<string, Json>): Evaluated;
}

/** `reason` holds no value of a variable. */
export type Evaluated = { ok: true; value: Json } | { ok: false; reason: string };

/** `at`: offset in the expression, from 0. */
export interface CelProblem {
  at: number;
  message: string;
}

/** Variables by name, and what an expression over them is compiled in. */
export class CelScope {
  readonly #variables: Record<string, CelType>;
  readonly #environment: Environment;

  constructor(variables: Record<string, CelType>) {
    this.#variables = variables;
    this.#environment = new Environment({
      homogeneousAggregateLiterals: false,
      limits: { maxAstNodes: 1_000, maxDepth: 40, maxListElements: 200, maxMapEntries: 200 },
    }).registerFunction('json(string): dyn', parseExactJson);
    for (const [name, type] of Object.entries(variables)) {
      const as = declared(type);
      if (typeof as === 'string') this.#environment.registerVariable(name, as);
      else this.#environment.registerVariable({ name, schema: as });
    }
  }

  compile(source: string, wanted: Wanted): { expression: Expression } | { problems: CelProblem[] } {
    let parsed: ParseResult;
    try {
      parsed = this.#environment.parse(source);
    } catch (error) {
      return { problems: [problemOf(error)] };
    }
    const touched = touchedBy(parsed.ast, this.#variables);
    if (touched.problems.length > 0) return { problems: touched.problems };
    const checked = parsed.check();
    if (!checked.valid) return { problems: [problemOf(checked.error)] };
    if (!fits(checked.type ?? 'dyn', wanted))
      return { problems: [{ at: 0, message: `is ${checked.type}, and must be ${wanted}` }] };
    return { expression: this.#expression(source, wanted, parsed, touched) };
  }

  #expression(source: string, wanted: Wanted, parsed: ParseResult, touched: Touched): Expression {
    const evaluate = (values: Record<string, Json>): Evaluated => {
      if (longestOf(values, touched.splits) ** touched.nesting > LIMITS.celStepsMax.value)
        return { ok: false, reason: 'it would take too many steps' };
      const given = Object.entries(values).map(([name, value]) => [
        name,
        toCel(value, this.#variables[name] ?? { kind: 'dyn' }),
      ]);
      try {
        return valueOf(parsed(Object.fromEntries(given)), wanted);
      } catch (error) {
        return { ok: false, reason: whyNot(error) };
      }
    };
    const { answersRead, judgedFailures, variables } = touched;
    return { source, answersRead, judgedFailures, variables, evaluate };
  }
}

/** What is known only when it runs is looked at then. */
const fits = (type: string, wanted: Wanted): boolean =>
  wanted === 'json' || type === wanted || type === 'dyn';

function valueOf(answer: unknown, wanted: Wanted): Evaluated {
  const value = fromCel(answer);
  if (value === undefined) return { ok: false, reason: 'its value can not be kept as JSON' };
  if (wanted === 'bool' && typeof value !== 'boolean')
    return { ok: false, reason: 'it is neither true nor false' };
  if (wanted === 'string' && typeof value !== 'string') return { ok: false, reason: 'it is no text' };
  return { ok: true, value };
}

/** The library's summary names fields and types; its message would quote the expression. */
function problemOf(error: unknown): CelProblem {
  const { summary, range } = (error ?? {}) as { summary?: unknown; range?: { start?: unknown } };
  return {
    at: typeof range?.start === 'number' ? range.start : 0,
    message: typeof summary === 'string' ? summary : 'it can not be evaluated',
  };
}

/** At run time the library's words may repeat a value; its code does not. */
function whyNot(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  return `${typeof code === 'string' ? code : 'it failed'} at ${problemOf(error).at}`;
}

/** Of anything a macro may go through. */
function longestOf(value: Json, splits: boolean): number {
  if (typeof value === 'string') return splits ? value.length : 1;
  if (typeof value !== 'object' || value === null) return 1;
  const members = Array.isArray(value) ? value : Object.values(value);
  return members.reduce(
    (longest: number, member) => Math.max(longest, longestOf(member, splits)),
    members.length,
  );
}
