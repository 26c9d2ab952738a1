/**
 * Undoing an effect by other tools of the server (S6). Whatever shows that it is undone already is asked first, since most
 * tools can not be called twice.
 */
import { ActionFailure } from '../../contract/handlers.ts';
import type { ExecuteContext } from '../../contract/handlers.ts';
import { cut } from '../../contract/text.ts';
import type { Json, JsonObject } from '../../task/json.ts';
import { shownAnswer } from '../answer.ts';
import { argumentsOf, askAll, judge, NotTold } from './asking.ts';
import type { CompiledCall, Values } from './asking.ts';
import { failureOf } from './execute.ts';
import type { ToolSite } from './execute.ts';
import { valuesOf, verify } from './proofs.ts';
import type { ToolPromises, Way } from './promises.ts';

type UndoContext = ExecuteContext & { originalOperationId: string };
const WORDS_MAX = 1_000;

export async function rollback(
  site: ToolSite,
  promises: ToolPromises,
  args: JsonObject,
  result: Json,
  context: UndoContext,
): Promise<{ remains?: string }> {
  const { originalOperationId: operationId, operationId: rollbackId, signal } = context;
  const values: Values = {
    ...(await valuesOf(site, promises, { args, operationId, result })),
    rollbackId,
  };
  const { verifyRollback } = promises;
  if (verifyRollback !== null && (await verify(site, verifyRollback, values, signal)).kind === 'verified')
    return {};
  const undoing = promises.rollback;
  if (undoing === null) throw ActionFailure.permanent('Nothing is configured to undo it.');
  const read = await askAll({ upstream: site.upstream, signal }, undoing.reads, values);
  const way = wayOf(undoing.ways, read);
  for (const [index, step] of way.steps.entries()) {
    await context.assertOwner();
    await take(site, step, read, { isFirst: index === 0, signal });
  }
  return remainsOf(way, read);
}

/** The first whose condition is true; one that can't be told ends the search, since a later one may be wrong. */
function wayOf(ways: Way[], values: Values): Way {
  for (const way of ways) {
    if (way.when === null) return way;
    const judged = judge(way.when, values);
    if (judged.kind === 'untold') throw new NotTold(`which way undoes it can not be told: ${judged.reason}`);
    if (judged.kind === 'yes') return way;
  }
  throw ActionFailure.permanent('None of the configured ways to undo it applies.');
}

async function take(
  { upstream }: ToolSite,
  step: CompiledCall,
  values: Values,
  { isFirst, signal }: { isFirst: boolean; signal: AbortSignal },
): Promise<void> {
  const reply = await upstream.call({ tool: step.tool, args: argumentsOf(step, values), signal });
  if (reply.kind === 'answer') {
    if (!reply.isError) return;
    throw new Error(
      `${step.tool} says that it failed: ${cut(String(shownAnswer(reply)['text']), WORDS_MAX)}`,
    );
  }
  const failure = failureOf(reply);
  // Of a later step it is known that earlier ones were taken.
  throw isFirst ? failure : new Error(failure.message);
}

function remainsOf({ remains }: Way, values: Values): { remains?: string } {
  if (remains === null) return {};
  const told = remains.evaluate(values);
  return { remains: told.ok ? String(told.value) : 'what remains can not be told' };
}
