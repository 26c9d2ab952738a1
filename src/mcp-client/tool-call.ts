/**
 * One call of a tool, from its first request to one outcome.
 *
 * Invariants:
 * 1. Whether anything is sent again is decided by the retry matrix alone, from the class the tool had when the call began.
 * 2. Every sending of one call has the same arguments and the same key; only the request id is new.
 * 3. Once a task is known, the task is the truth: it is read until it ends, and the call is never sent again.
 * 4. An unsafe call that was lost is looked for under its key, and followed once it is found.
 * 5. The maximum bounds all of it. When it, or the caller's signal, ends the call, the wait is abandoned and nothing else
 *    (M5.3): the outcome is `unknown`, or for a safe call `failed` without effect.
 */
import { KEY_META } from '../contract/wire-names.ts';
import type { JsonObject } from '../task/json.ts';
import { createBackoff } from './backoff.ts';
import type { RequestOptions } from './dispatch.ts';
import {
  askForKey,
  errorOfRpc,
  errorWithoutTask,
  factsOf,
  outcomeOfResult,
  readingOfTask,
} from './outcome.ts';
import type { CallError, CallOutcome, TaskReading, ToolResult, UnknownReason } from './outcome.ts';
import { MCP_CLIENT_LIMITS } from './limits.ts';
import { attempt, waitOut } from './parts.ts';
import type { Attempted, ClientParts, Span } from './parts.ts';
import { failureOfCode, failureOfError } from './reply.ts';
import { retryVerdict } from './retry-matrix.ts';
import type { RequestFailure } from './retry-matrix.ts';
import { findTask, waitForTask } from './tasks.ts';
import type { ToolTerms } from './tool-terms.ts';

export interface Progress {
  /** Null: news of the task rather than a step of the request. */
  progress: number | null;
  message: string;
}

export interface ToolCall {
  tool: string;
  args: JsonObject;
  terms: ToolTerms;
  /** Null where the tool takes none. */
  key: string | null;
  /** Made for this call alone, so that a task under it can be no other's. Default false. */
  isOwnKey?: boolean;
  /** A call that goes on after a person was asked (`input_needed` without a task). */
  resume?: { requestState: string; inputResponses: JsonObject };
  onProgress?: (progress: Progress) => void;
}

export async function callTool(parts: ClientParts, call: ToolCall, span: Span): Promise<CallOutcome> {
  const params = callParams(call);
  const backoff = createBackoff(parts.random);
  for (let lostRequests = 0; ;) {
    const reply = await attempt(
      parts,
      span,
      (link, options) => link.request('tools/call', params, options),
      tellProgress(call),
    );
    if (reply.kind === 'over') return unanswered(call, reply.end);
    const failed = reply.kind === 'result' ? failureOfResult(call, reply.result) : failureOf(reply);
    const isAnswer = failed === null || (failed.failure === 'refused' && lostRequests === 0);
    if (reply.kind === 'result' && isAnswer) return outcomeOf(parts, call, reply.result, span);
    const { failure, error } = failed as Failed;
    const verdict = retryVerdict(
      {
        effect: call.terms.effect,
        canCarryKey: call.key !== null,
        canBeFound: keyToFind(call) !== null,
        taskId: null,
      },
      failure,
    );
    // Refused now, lost before: the earlier sending may have begun all the same.
    if (verdict === 'refused') return ifNothingSent(call, lostRequests, 'lost', error);
    if (failure === 'lost') lostRequests += 1;
    if (verdict === 'find_task') return found(parts, call, span);
    if (verdict === 'unknown' || lostRequests > MCP_CLIENT_LIMITS.lostRequestsMax.value)
      return unanswered(call, 'lost', error);
    const end = await waitOut(parts, span, backoff.next(failed?.retryAfterMs));
    if (end !== null) return ifNothingSent(call, lostRequests, end.end, error);
  }
}

/** The key goes where the tool takes it. */
export function callParams({ tool, args, terms, key, resume }: ToolCall): JsonObject {
  const inArgument = key !== null && terms.key?.in === 'argument' ? { [terms.key.name]: key } : {};
  const inMeta = key !== null && terms.key?.in === 'meta' ? { _meta: { [KEY_META]: key } } : {};
  return { name: tool, arguments: { ...args, ...inArgument }, ...inMeta, ...resume };
}

function tellProgress({ onProgress }: ToolCall): NonNullable<RequestOptions['onProgress']> {
  return ({ progress, message = '' }) => onProgress?.({ progress, message });
}

interface Failed {
  failure: RequestFailure;
  error: CallError;
  retryAfterMs?: number;
}

/** What a gateway that takes the key says of a call that has no task: it was refused, or nobody knows whether it began. */
function failureOfResult(call: ToolCall, result: JsonObject): Failed | null {
  const isOurs = keyToFind(call) !== null || (call.terms.effect === 'safe' && factsOf(result._meta) !== null);
  const error = isOurs ? errorWithoutTask(result) : null;
  return error && failedWith(error, failureOfCode(error.code));
}

function failedWith(error: CallError, failure: RequestFailure): Failed {
  const { retryAfterMs } = error.details;
  return { failure, error, ...(typeof retryAfterMs === 'number' && { retryAfterMs }) };
}

function failureOf(reply: Exclude<Attempted, { kind: 'result' | 'over' }>): Failed {
  if (reply.kind === 'error') return failedWith(errorOfRpc(reply.error), failureOfError(reply.error));
  const { failure, message, retryAfterMs } = reply;
  const isRefused = failure === 'refused';
  return {
    failure,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    error: { code: isRefused ? 'refused' : 'no_answer', message, details: {}, retryable: !isRefused },
  };
}

async function outcomeOf(
  parts: ClientParts,
  call: ToolCall,
  result: JsonObject,
  span: Span,
): Promise<CallOutcome> {
  if (result.resultType === 'input_required') return inputNeeded(result);
  const first = result.resultType === 'task' ? readingOfTask(result) : null;
  const outcome = first ? null : outcomeOfResult(result as unknown as ToolResult);
  if (outcome !== null && outcome.kind !== 'working') return named(outcome, call);
  const reading = first ?? (outcome?.kind === 'working' ? outcome.reading : null);
  if (reading === null) return unanswered(call, 'lost');
  return follow(parts, call, reading, span);
}

async function follow(
  parts: ClientParts,
  call: ToolCall,
  reading: TaskReading,
  span: Span,
): Promise<CallOutcome> {
  // The first word of a task holds neither its questions nor its result.
  const known = { ...reading, outcome: null, pollIntervalMs: reading.outcome ? 0 : reading.pollIntervalMs };
  const { onProgress } = call;
  const onChange = ({ statusMessage }: { statusMessage: string }) =>
    onProgress?.({ progress: null, message: statusMessage });
  return named(await waitForTask(parts, reading.taskId, span, { first: known, onChange }), call);
}

/** Where the key goes into `_meta` a Holdfast gateway has published the tool, and tells what became of a key. */
const keyToFind = ({ terms, key }: ToolCall): string | null => (terms.key?.in === 'meta' ? key : null);

/** S1.6: a key whose task ended with nothing sent may be called again, and that may be what this call has yet to do. */
const mayBeEarlier = ({ outcome }: TaskReading, { isOwnKey = false }: ToolCall): boolean =>
  !isOwnKey && outcome?.kind === 'failed' && outcome.effect === 'none';

/** What was lost may have begun, or may begin yet: its task is looked for under its key, and nothing is sent again. */
async function found(parts: ClientParts, call: ToolCall, span: Span): Promise<CallOutcome> {
  const key = keyToFind(call);
  const { findMs, readIdleMs } = MCP_CLIENT_LIMITS;
  const until = parts.clock.now() + findMs.value;
  const readSpan = { ...span, idleMs: Math.min(span.idleMs, readIdleMs.value) };
  const backoff = createBackoff(parts.random);
  while (key !== null) {
    const read = await findTask(parts, { tool: call.tool, key }, readSpan);
    if (read.kind === 'over') return unanswered(call, read.end);
    if (read.kind === 'reading' && !mayBeEarlier(read.reading, call))
      return follow(parts, call, read.reading, span);
    // An older gateway knows no such read, and no waiting changes that.
    const mayComeYet = read.kind === 'reading' || read.error.code === 'task_not_found';
    if (!mayComeYet || parts.clock.now() >= until) break;
    const end = await waitOut(parts, span, backoff.next());
    if (end !== null) return unanswered(call, end.end);
  }
  return unanswered(call, 'lost');
}

const named = (outcome: CallOutcome, { key }: ToolCall): CallOutcome =>
  outcome.kind === 'unknown' ? { ...outcome, key } : outcome;

/** Asked before there is a task. */
const inputNeeded = ({ inputRequests, requestState, _meta }: JsonObject): CallOutcome => ({
  kind: 'input_needed',
  taskId: factsOf(_meta)?.taskId ?? null,
  requests: (inputRequests ?? {}) as Record<string, JsonObject>,
  message: 'a person must answer first',
  ...(typeof requestState === 'string' && { requestState }),
});

/** No answer, and nobody knows of a task. What changes nothing has failed; anything else is not known. */
function unanswered(call: ToolCall, reason: UnknownReason, error?: CallError): CallOutcome {
  if (call.terms.effect === 'safe')
    return { kind: 'failed', taskId: null, effect: 'none', error: error ?? noAnswer(reason) };
  return { kind: 'unknown', taskId: null, key: call.key, reason, ask: askForKey(call.tool, call.key) };
}

function ifNothingSent(
  call: ToolCall,
  lostRequests: number,
  reason: UnknownReason,
  error: CallError,
): CallOutcome {
  if (lostRequests > 0) return unanswered(call, reason, error);
  return { kind: 'failed', taskId: null, effect: 'none', error };
}

const noAnswer = (reason: UnknownReason): CallError => ({
  code: 'no_answer',
  message: `No answer (${reason}). Nothing was changed.`,
  details: {},
  retryable: true,
});
