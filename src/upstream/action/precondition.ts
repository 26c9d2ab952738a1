/** S2.2 for a tool of somebody else's: asked immediately before every execution, of the tools that read. */
import { fails, holds } from '../../contract/handlers.ts';
import type { LookContext, PreconditionAnswer } from '../../contract/handlers.ts';
import type { JsonObject } from '../../task/json.ts';
import { askAll, askNamed, judge, NotTold } from './asking.ts';
import type { Values } from './asking.ts';
import type { ToolSite } from './execute.ts';
import type { ToolPromises } from './promises.ts';

/** Reads what is kept before the effect too where the condition looks at it; keeps nothing. */
export async function precondition(
  site: ToolSite,
  promises: ToolPromises,
  args: JsonObject,
  { operationId, signal }: LookContext,
): Promise<PreconditionAnswer> {
  const values: Values = { args, operationId };
  const looksBefore = promises.precondition?.expression.variables.has('before') === true;
  const before = looksBefore
    ? { before: await askNamed({ upstream: site.upstream, signal }, promises.before, values) }
    : {};
  const failure = await preconditionFailure(site, promises, { ...values, ...before }, signal);
  return failure === null ? holds() : fails(failure);
}

/** Null: it holds, or there is none. Throws where it can't be told. */
export async function preconditionFailure(
  { upstream }: ToolSite,
  { precondition: condition }: ToolPromises,
  values: Values,
  signal: AbortSignal,
): Promise<string | null> {
  if (condition === null) return null;
  const judged = judge(condition.expression, await askAll({ upstream, signal }, condition.reads, values));
  switch (judged.kind) {
    case 'yes':
      return null;
    case 'no':
      return condition.reason;
    case 'untold':
      throw new NotTold(`the precondition can not be told: ${judged.reason}`);
    default:
      return judged satisfies never;
  }
}
