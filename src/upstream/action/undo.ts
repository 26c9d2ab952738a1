/**
 * Undoing an effect by other tools of the server (S6).
 *
 * Invariants:
 * 1. Whatever shows that it is undone already is asked first, since most tools can not be called twice.
 * 2. A step whose answer was lost, or says that it failed (tools fail half-way), is sent again only where the server can tell that it is the same. Else it is read back
 *    once, and where that does not show it undone a person is asked: it may only not be seen yet.
 * 3. A lookup knows of the effect alone: it proves no way of several steps, none of which is then taken twice.
 */
import { ActionFailure } from '../../contract/handlers.ts';
import type { ExecuteContext, LookContext } from '../../contract/handlers.ts';
import { cut } from '../../contract/text.ts';
import type { Json, JsonObject } from '../../task/json.ts';
import { shownAnswer } from '../answer.ts';
import { callToEnd } from '../awaited-task.ts';
import { argumentsOf, askAll, judge, NotTold } from './asking.ts';
import type { Values } from './asking.ts';
import { failureOf } from './execute.ts';
import type { ToolSite } from './execute.ts';
import { lookup, valuesOf, verify } from './proofs.ts';
import type { ToolPromises, UndoStep, Way } from './promises.ts';

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
  const isUndone = () => isSeenUndone(site, promises, values, { ...context, operationId });
  if (await isUndone()) return {};
  const undoing = promises.rollback;
  if (undoing === null) throw ActionFailure.permanent('Nothing is configured to undo it.');
  const read = await askAll({ upstream: site.upstream, signal }, undoing.reads, values);
  const way = wayOf(undoing.ways, read);
  const judged = way.when?.judgedFailures;
  for (const [index, step] of way.steps.entries()) {
    await context.assertOwner();
    const isStuck = promises.verifyRollback === null && way.steps.slice(0, index).some(isOnce);
    const taken = await take(site, step, read, { isFirst: index === 0, judged, signal }).catch(
      (error: unknown) => {
        if (!isStuck) throw error;
        throw ActionFailure.permanent(
          `Undone in part; earlier steps can not be taken twice: ${(error as Error).message}`,
        );
      },
    );
    if (taken.kind === 'taken') continue;
    if (await isUndone().catch(() => false)) break;
    throw ActionFailure.permanent(
      `${step.tool} may have been carried out, and can not be called twice: ${taken.why}`,
    );
  }
  return remainsOf(way, read);
}

const isOnce = ({ isRepeatable }: UndoStep): boolean => !isRepeatable;

/** `context`: of the effect. */
async function isSeenUndone(
  site: ToolSite,
  promises: ToolPromises,
  values: Values,
  context: LookContext,
): Promise<boolean> {
  const { verifyRollback, rollback: undoing } = promises;
  if (verifyRollback !== null)
    return (await verify(site, verifyRollback, values, context.signal)).kind === 'verified';
  if (undoing?.ways.every(({ steps }) => steps.length === 1) !== true) return false;
  const { args } = values;
  return (await lookup(site, promises, args as JsonObject, context)).kind === 'not_applied';
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

type Taken = { kind: 'taken' } | { kind: 'in_doubt'; why: string };

async function take(
  { upstream }: ToolSite,
  step: UndoStep,
  values: Values,
  {
    isFirst,
    judged,
    signal,
  }: { isFirst: boolean; judged: ReadonlySet<string> | undefined; signal: AbortSignal },
): Promise<Taken> {
  const call = { tool: step.tool, args: argumentsOf(step, values, judged), signal };
  // An undoing that its server has begun should come to its end, whoever waits for it.
  const reply = await callToEnd(upstream, call, 'goes on');
  if (reply.kind === 'answer') {
    if (!reply.isError) return { kind: 'taken' };
    const why = `${step.tool} says that it failed: ${cut(String(shownAnswer(reply)['text']), WORDS_MAX)}`;
    if (!step.isRepeatable) return { kind: 'in_doubt', why };
    throw new Error(why);
  }
  const failure = failureOf(reply, step.isRepeatable);
  if (!(failure instanceof ActionFailure) && !step.isRepeatable)
    return { kind: 'in_doubt', why: failure.message };
  // Of a later step it is known that earlier ones were taken.
  throw isFirst ? failure : new Error(failure.message);
}

function remainsOf({ remains }: Way, values: Values): { remains?: string } {
  if (remains === null) return {};
  const told = remains.evaluate(values);
  return { remains: told.ok ? String(told.value) : 'what remains can not be told' };
}
