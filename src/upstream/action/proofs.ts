/** Lookup and verification by other tools of the server. What can't be told is `unknown` and `not yet`, never a yes. */
import { applied, mismatch, notApplied, notYet, unknown, verified } from '../../contract/handlers.ts';
import type { LookContext, LookupAnswer, VerifyAnswer } from '../../contract/handlers.ts';
import { cut } from '../../contract/text.ts';
import { isJsonObject } from '../../task/json.ts';
import type { Json, JsonObject } from '../../task/json.ts';
import { lookedUpResult, shownResult } from '../answer.ts';
import { argumentsOf, askAll, judge } from './asking.ts';
import type { Judged, Values } from './asking.ts';
import type { ToolSite } from './execute.ts';
import type { ToolPromises, Verification } from './promises.ts';

const SOURCE_MAX = 200;

/** What was kept for the operation, for expressions; absent where nothing was. */
export async function valuesOf(
  site: ToolSite,
  promises: ToolPromises,
  { args, operationId, result }: { args: JsonObject; operationId: string; result?: Json },
): Promise<Values> {
  const before = promises.before.length > 0 ? await site.before.recall(operationId) : null;
  const shown = result === undefined ? null : shownResult(result);
  return {
    args,
    operationId,
    ...(before !== null && { before }),
    ...(shown !== null && { result: shown }),
  };
}

export async function lookup(
  site: ToolSite,
  promises: ToolPromises,
  args: JsonObject,
  { operationId, signal }: LookContext,
): Promise<LookupAnswer<JsonObject>> {
  const condition = promises.lookup;
  if (condition === null) return unknown();
  const values = await valuesOf(site, promises, { args, operationId });
  const read = await askAll({ upstream: site.upstream, signal }, condition.reads, values);
  const [isApplied, isNot] = [
    judge(condition.expression, read),
    condition.notApplied === null ? NO : judge(condition.notApplied, read),
  ];
  // Both at once contradict each other: nothing is known.
  if (isApplied.kind === isNot.kind)
    return unknown(isApplied.kind === 'yes' ? 'both conditions are true' : reasonOf(isApplied));
  if (isApplied.kind === 'yes') return applied(resultOf(condition, read));
  return isNot.kind === 'yes' && isApplied.kind === 'no' ? notApplied() : unknown(reasonOf(isApplied));
}

const NO: Judged = { kind: 'no' };
const reasonOf = (judged: Judged): string =>
  judged.kind === 'untold' ? judged.reason : 'neither condition is true';

/** As told by the lookup; the tool's own answer is lost. */
function resultOf(
  { result: told, expression }: NonNullable<ToolPromises['lookup']>,
  read: Values,
): JsonObject {
  if (told !== null)
    return lookedUpResult(argumentsOf({ tool: 'result', args: told }, read, expression.judgedFailures));
  const { answer } = read;
  if (!isJsonObject(answer)) return lookedUpResult({ found: true });
  const { structured, content } = answer;
  return {
    content: content as Json,
    ...(structured !== undefined && { structuredContent: structured }),
  };
}

export async function verify(
  site: ToolSite,
  verification: Verification,
  values: Values,
  signal: AbortSignal,
): Promise<VerifyAnswer> {
  const read = await askAll({ upstream: site.upstream, signal }, verification.reads, values);
  const seen = judge(verification.expression, read);
  if (seen.kind === 'yes') return verified();
  if (seen.kind === 'untold') return notYet(seen.reason);
  const later = verification.notYet === null ? NO : judge(verification.notYet, read);
  if (later.kind !== 'no') return notYet(reasonOf(later));
  return mismatch(`not true when read back: ${cut(verification.expression.source, SOURCE_MAX)}`);
}
