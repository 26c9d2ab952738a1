/**
 * Sending the effect to its server, and what its answer proves.
 *
 * Invariants:
 * 1. What is read before the effect is durable before the effect is sent. It is read anew only while nothing can have
 *    been applied, by who still owns the operation; from then on the first reading stands.
 * 2. Only what proves that the tool did not run is a failure; an answer that says it failed, and none, are an unknown
 *    outcome: tools fail half-way.
 */
import { ActionFailure, remoteTask } from '../../contract/handlers.ts';
import type { ExecuteContext, RemoteTaskStarted } from '../../contract/handlers.ts';
import { canonicalText } from '../../contract/canonical.ts';
import { LIMITS } from '../../contract/limits.ts';
import { cut } from '../../contract/text.ts';
import type { JsonObject } from '../../task/json.ts';
import { isJsonObject } from '../../task/json.ts';
import { shownAnswer } from '../answer.ts';
import type { ToolAnswer } from '../answer.ts';
import type { BeforeStore } from '../before-store.ts';
import type { UpstreamCall, UpstreamLine, UpstreamReply } from '../upstream.ts';
import { askNamed, whyUnanswered } from './asking.ts';
import type { Values } from './asking.ts';
import { preconditionFailure } from './precondition.ts';
import type { ToolPromises } from './promises.ts';

export interface ToolSite {
  upstream: UpstreamLine;
  before: BeforeStore;
}

/** JSON-RPC: parse error, invalid request, method not found: the tool did not run. */
const PROVES_NOT_RUN = new Set([-32_700, -32_600, -32_601]);
/** Invalid params: a tool may throw it itself, and a server where a result does not fit `outputSchema`. */
const INVALID_PARAMS = -32_602;
/** 2026-07-28: a header lacks or differs from its argument, judged before the tool; the list is read again meanwhile. */
const HEADER_MISMATCH = -32_020;
const WORDS_MAX = 1_000;

export async function execute(
  site: ToolSite,
  promises: ToolPromises,
  args: JsonObject,
  context: ExecuteContext,
): Promise<JsonObject | RemoteTaskStarted> {
  const { operationId } = context;
  if (promises.before.length > 0) await readBefore(site, promises, { args, operationId }, context);
  const reply = await site.upstream.call(callOf(promises, args, context));
  if (reply.kind === 'answer') return taken(site, promises, args, reply, context);
  if (reply.kind === 'task') return remoteTask(reply.task);
  const failure = failureOf(reply, promises.paramsAreJudgedFirst);
  if (failure instanceof ActionFailure) await forgetUnsent(site, promises, context);
  throw failure;
}

type Sender = Pick<ExecuteContext, 'operationId' | 'isFirstSend' | 'assertOwner'>;

/** An earlier execution that is still in doubt may have to be undone to what was read before it. */
async function forgetUnsent(
  { before }: ToolSite,
  promises: ToolPromises,
  { operationId, isFirstSend, assertOwner }: Sender,
): Promise<void> {
  if (!isFirstSend || promises.before.length === 0) return;
  await assertOwner();
  await before.forget(operationId);
}

function callOf({ tool, key }: ToolPromises, args: JsonObject, context: ExecuteContext): UpstreamCall {
  const { operationId, signal, heartbeat } = context;
  const call = { tool, args, signal, onProgress: () => heartbeat() };
  switch (key?.kind) {
    case undefined:
      return call;
    case 'argument':
      return { ...call, args: { ...args, [key.name]: operationId } };
    case 'header':
      return { ...call, headers: { [key.name]: operationId } };
    case 'meta':
      return { ...call, meta: { [key.name]: operationId } };
    default:
      return key satisfies never;
  }
}

async function readBefore(
  site: ToolSite,
  promises: ToolPromises,
  values: Values,
  context: ExecuteContext,
): Promise<void> {
  const { operationId, principal, signal } = context;
  await forgetUnsent(site, promises, context);
  const before = await askNamed({ upstream: site.upstream, signal }, promises.before, values).catch(
    (error: unknown) => {
      throw ActionFailure.notSent(
        `What is to be kept for undoing could not be read: ${(error as Error).message}`,
      );
    },
  );
  const failed = promises.beforeMustSucceed.find((name) => isFailure(before[name]));
  if (failed !== undefined)
    throw ActionFailure.notSent(`before.${failed} is an error, and no condition looks at its isError`);
  const bytes = Buffer.byteLength(canonicalText(before));
  const bytesMax = LIMITS.upstreamBeforeBytesMax.value;
  if (bytes > bytesMax)
    throw ActionFailure.permanent(
      `What is to be kept for undoing is ${bytes} bytes; at most ${bytesMax} are kept. Nothing was sent.`,
      'payload_too_large',
    );
  const kept = await site.before.keep(operationId, principal.tenant, before);
  const sees = { ...values, before: kept };
  const failure = await preconditionFailure(site, promises, sees, signal).catch(
    (error: unknown) => (error as Error).message,
  );
  if (failure !== null) {
    await forgetUnsent(site, promises, context);
    throw ActionFailure.notSent(failure);
  }
  await context.assertOwner();
}

const isFailure = (answer: JsonObject[string] | undefined): boolean =>
  isJsonObject(answer) && answer['isError'] === true;

/** What an answer proves, whether it came at once or from a task that the server kept. */
export async function taken(
  site: ToolSite,
  promises: ToolPromises,
  args: JsonObject,
  answer: ToolAnswer,
  context: Sender,
): Promise<JsonObject> {
  if (!answer.isError) return answer.raw;
  const { refused, isSafe, hidesResult } = promises;
  const shown = shownAnswer(answer);
  const words = hidesResult ? 'its words are sensitive' : cut(String(shown['text']), WORDS_MAX);
  // That it failed is what is judged, so the condition need not look at it.
  const isRefusal = refused?.evaluate({ args, result: shown });
  if (!isSafe && !(isRefusal?.ok === true && isRefusal.value === true))
    throw new Error(`The tool says that it failed, which says nothing of what it did: ${words}`);
  await forgetUnsent(site, promises, context);
  throw ActionFailure.permanent(`The tool refused: ${words}`);
}

/** What an unanswered call stands for (S5). Any error that is no `ActionFailure`, which proves it not done, is an unknown outcome. */
export function failureOf(
  reply: Exclude<UpstreamReply, { kind: 'answer' | 'task' }>,
  paramsAreJudgedFirst: boolean,
): Error {
  const why = whyUnanswered(reply);
  switch (reply.kind) {
    case 'not_sent':
      return reply.retryAfterMs === undefined
        ? ActionFailure.notSent(why)
        : ActionFailure.rateLimited(why, reply.retryAfterMs);
    case 'refused':
      if (reply.code === HEADER_MISMATCH) return ActionFailure.notSent(why);
      return PROVES_NOT_RUN.has(reply.code) || (reply.code === INVALID_PARAMS && paramsAreJudgedFirst)
        ? ActionFailure.permanent(why)
        : new Error(why);
    case 'in_doubt':
      return new Error(why);
    default:
      return reply satisfies never;
  }
}
