/**
 * Reading, answering and cancelling a task, over the Tasks extension where the server has it, over the tools `task_get`,
 * `task_answer` and `task_cancel` where it does not.
 *
 * All three may be repeated: a read changes nothing, a cancel is an intent (M2.4), and an answer is repeated only after
 * the task was read and still asks for it.
 */
import type { TaskId } from '@modelcontextprotocol/ext-tasks/core';
import type { JsonObject } from '../task/json.ts';
import type { RequestOptions } from './dispatch.ts';
import { MCP_CLIENT_LIMITS } from './limits.ts';
import { RequestFailed } from './link.ts';
import type { Link } from './link.ts';
import {
  askForTask,
  errorOfRpc,
  errorWithoutTask,
  isStale,
  readingOfResult,
  readingOfTask,
} from './outcome.ts';
import type { CallError, CallOutcome, TaskReading, ToolResult, UnknownReason } from './outcome.ts';
import { repeat, waitOut } from './parts.ts';
import type { ClientParts, Over, Repeated, Span } from './parts.ts';
import { lost } from './reply.ts';
import type { FailedRequest, Reply } from './reply.ts';

/** The server answered that it can't, or won't, tell or do it. */
export class TaskRequestRefused extends Error {
  readonly error: CallError;
  constructor(error: CallError) {
    super(error.message);
    this.name = 'TaskRequestRefused';
    this.error = error;
  }
}

export type Read = { kind: 'reading'; reading: TaskReading } | { kind: 'refused'; error: CallError } | Over;

export async function readTask(parts: ClientParts, taskId: string, span: Span): Promise<Read> {
  return readOf(await repeat(parts, span, (link, options) => sendRead(link, taskId, options)), taskId);
}

function readOf(reply: Repeated, taskId: string): Read {
  switch (reply.kind) {
    case 'over':
      return reply;
    case 'failure':
      return { kind: 'refused', error: refusal(reply) };
    case 'error':
      return { kind: 'refused', error: errorOfRpc(reply.error) };
    case 'result':
      return readingOf(reply.result, taskId);
  }
}

/**
 * Reads by the key of a call that was lost. A tool in any case: the extension knows tasks by id alone, and a gateway takes
 * `task_get` from its clients too.
 */
export async function findTask(
  parts: ClientParts,
  { tool, key }: { tool: string; key: string },
  span: Span,
): Promise<Read> {
  const params = { name: 'task_get', arguments: { tool, idempotencyKey: key } };
  return readOf(
    await repeat(parts, span, (link, options) => link.request('tools/call', params, options)),
    '',
  );
}

/** A result of `tasks/get`, or of the tool `task_get`. */
function readingOf(result: JsonObject, taskId: string): Read {
  if (typeof result.taskId === 'string') return { kind: 'reading', reading: readingOfTask(result) };
  const reading = readingOfResult(result as unknown as ToolResult, taskId);
  const { outcome } = reading;
  // Not the task's end: the read itself was refused.
  if (outcome?.kind === 'failed' && outcome.taskId === null) return { kind: 'refused', error: outcome.error };
  return { kind: 'reading', reading };
}

const sendRead = (link: Link, taskId: string, options: RequestOptions): Promise<Reply> =>
  link.tasks === null
    ? link.request('tools/call', { name: 'task_get', arguments: { taskId } }, options)
    : overSession(async () => {
        const view = await link.tasks?.task(taskId as TaskId).snapshot(options.signal);
        return view?.raw as unknown as JsonObject;
      }, options.signal);

/** The session throws: our own failure wrapped, the server's error, or what its schemas make of the answer. */
async function overSession(work: () => Promise<JsonObject>, signal: AbortSignal): Promise<Reply> {
  try {
    return { kind: 'result', result: await work() };
  } catch (error) {
    const { cause } = error as Error;
    const failed = error instanceof RequestFailed ? error : cause instanceof RequestFailed ? cause : null;
    if (signal.aborted) return { kind: 'cancelled' };
    if (failed !== null) return failed.reply;
    const { response } = error as { response?: { code: number; message: string } };
    if (response !== undefined) return { kind: 'error', error: response };
    return lost(error instanceof Error ? error.message : String(error));
  }
}

/**
 * Reads until the task ends, needs a person, or the span is over. Never rejects. Never more often than the server asked;
 * a task that goes on is asked ever less often, so that many who wait for slow tasks are no load.
 */
export async function waitForTask(
  parts: ClientParts,
  taskId: string,
  span: Span,
  { first, onChange }: { first?: TaskReading; onChange?: (reading: TaskReading) => void } = {},
): Promise<CallOutcome> {
  let told = '';
  const from = parts.clock.now();
  for (let reading = first; ;) {
    if (reading?.outcome) return reading.outcome;
    if (reading !== undefined && reading.statusMessage !== told) {
      told = reading.statusMessage;
      onChange?.(reading);
    }
    const patientMs = Math.min(MCP_CLIENT_LIMITS.patientPollMs.value, (parts.clock.now() - from) / 10);
    const end = reading && (await waitOut(parts, span, Math.max(reading.pollIntervalMs, patientMs)));
    if (end) return unknownTask(taskId, end.end);
    const read = await readTask(parts, taskId, span);
    if (read.kind === 'over') return unknownTask(taskId, read.end);
    // That it may not be read says nothing about how it ended.
    if (read.kind === 'refused') return unknownTask(taskId, 'unreadable');
    ({ reading } = read);
  }
}

const unknownTask = (taskId: string, reason: UnknownReason): CallOutcome => ({
  kind: 'unknown',
  taskId,
  key: null,
  reason,
  ask: askForTask(taskId),
});

/** Acknowledged as an intent; how the task ends is read from the task. Throws `TaskRequestRefused`. */
export async function cancelTask(parts: ClientParts, taskId: string, span: Span): Promise<boolean> {
  const reply = await repeat(parts, span, (link, options) =>
    link.tasks === null
      ? link.request('tools/call', { name: 'task_cancel', arguments: { taskId } }, options)
      : overSession(async () => {
          await link.tasks?.task(taskId as TaskId).cancel(options.signal);
          return {};
        }, options.signal),
  );
  return acknowledged(reply);
}

/** Answers by key, each as MCP's elicitation result. Throws `TaskRequestRefused`. */
export async function answerTask(
  parts: ClientParts,
  taskId: string,
  responses: Readonly<Record<string, JsonObject>>,
  span: Span,
): Promise<boolean> {
  let isFirst = true;
  const reply = await repeat(parts, span, async (link, options) => {
    if (!isFirst) {
      const known = await sendRead(link, taskId, options);
      if (known.kind !== 'result' || errorWithoutTask(known.result) !== null) return known;
      if (isStale(known.result)) return lost('nobody can say just now whether the answer was taken');
      const read = readingOf(known.result, taskId);
      if (read.kind !== 'reading' || !asksFor(read.reading, Object.keys(responses)))
        return { kind: 'result', result: {} }; // taken before, or nobody asks any more
    }
    isFirst = false;
    return sendAnswer(link, taskId, responses, options);
  });
  return acknowledged(reply);
}

const asksFor = ({ outcome }: TaskReading, keys: string[]): boolean =>
  outcome?.kind === 'input_needed' && keys.some((key) => Object.hasOwn(outcome.requests, key));

async function sendAnswer(
  link: Link,
  taskId: string,
  responses: Readonly<Record<string, JsonObject>>,
  options: RequestOptions,
): Promise<Reply> {
  if (link.tasks !== null)
    return overSession(async () => {
      await link.tasks?.task(taskId as TaskId).updateJson(responses, options.signal);
      return {};
    }, options.signal);
  let reply: Reply = { kind: 'result', result: {} };
  for (const [callId, { action, content }] of Object.entries(responses)) {
    if (action !== 'accept') continue; // nobody decided
    const args = { taskId, callId, ...(content as JsonObject) };
    reply = await link.request('tools/call', { name: 'task_answer', arguments: args }, options);
    if (reply.kind !== 'result') break;
  }
  return reply;
}

/** False: the span was over first, and it may or may not have been taken. */
function acknowledged(reply: Repeated): boolean {
  switch (reply.kind) {
    case 'over':
      return false;
    case 'failure':
      throw new TaskRequestRefused(refusal(reply));
    case 'error':
      throw new TaskRequestRefused(errorOfRpc(reply.error));
    case 'result': {
      const outcome = readingOfResult({ content: [], ...reply.result }, '').outcome;
      if (outcome?.kind === 'failed') throw new TaskRequestRefused(outcome.error);
      return true;
    }
  }
}

/** As an error of the call's own, where it was the transport that was refused. */
export const refusal = ({ message }: FailedRequest): CallError => ({
  code: 'refused',
  message,
  details: {},
  retryable: false,
});
