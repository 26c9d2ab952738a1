/**
 * What a call came to, read off the wire. Pure.
 *
 * Three wires say the same thing: the result of `tools/call` with `_meta["holdfast/task"]`, the task of the Tasks
 * extension with or without that member, and the plain result of any other server. `completed` and `failed` are said only
 * where the server said them; whatever it left open is `unknown`, `input_needed`, or a task that still works.
 */
import { TASK_META } from '../contract/wire-names.ts';
import { isJsonObject } from '../task/json.ts';
import type { Json, JsonObject } from '../task/json.ts';
import { isTerminal } from '../task/outcome.ts';
import { MCP_CLIENT_LIMITS } from './limits.ts';

/** The result of `tools/call`, as it came. */
export interface ToolResult {
  content: readonly { type: string; text?: string; [member: string]: unknown }[];
  structuredContent?: JsonObject;
  isError?: boolean;
  _meta?: JsonObject;
}

export interface CallError {
  /** Of docs/errors.md where a Holdfast gateway said it; else `tool_error`, `rpc_error`, `refused` or `no_answer`. */
  code: string;
  message: string;
  details: JsonObject;
  /** The same call may succeed later without being changed. */
  retryable: boolean;
}

/** Why an outcome is not known here. */
export type UnknownReason =
  /** The request was lost, and there is no task to ask for. */
  | 'lost'
  /** A clock of this call ran out. */
  | 'idle'
  | 'maximum'
  /** The caller's own signal. */
  | 'abandoned'
  /** There is a task, and the server refuses to tell of it. */
  | 'unreadable'
  /** The server itself does not know; a person was alerted. */
  | 'in_doubt';

export type CallOutcome =
  | { kind: 'completed'; taskId: string | null; replayed: boolean; result: ToolResult }
  /** `effect` null: the server did not say whether something was changed. */
  | {
      kind: 'failed';
      taskId: string | null;
      effect: 'none' | 'applied' | 'rolled_back' | null;
      error: CallError;
      result?: ToolResult;
    }
  /**
   * A person must answer first. `requests` by key, for `task(taskId).answer`, or for `call` with `resume` where there is
   * no task; empty: it is decided elsewhere, and `message` says by whom.
   */
  | {
      kind: 'input_needed';
      taskId: string | null;
      requests: Readonly<Record<string, JsonObject>>;
      message: string;
      requestState?: string;
    }
  /** Not done, not failed. It was not sent again and must not be; `ask` says who can be asked. */
  | {
      kind: 'unknown';
      taskId: string | null;
      key: string | null;
      reason: UnknownReason;
      ask: string;
    };

/** One authoritative reading of a task. */
export interface TaskReading {
  taskId: string;
  /** The server's word for where it stands. */
  status: string;
  statusMessage: string;
  /** Null: it still works, and nobody has to be asked. */
  outcome: CallOutcome | null;
  /** When the server thinks that looking again is worth it. */
  pollIntervalMs: number;
  /** Grows with the task's changes; 0 where the server tells no time. */
  sequence: number;
  hasEnded: boolean;
}

/** Where the server names none. */
const POLL_INTERVAL_MS = MCP_CLIENT_LIMITS.pollMs.value;

/** `_meta["holdfast/task"]`, as far as it is needed here. */
interface TaskFacts {
  taskId: string;
  status: string;
  effect: string | null;
  replayed: boolean;
}

export function factsOf(meta: unknown): TaskFacts | null {
  const facts = (meta as JsonObject | undefined)?.[TASK_META] as JsonObject | undefined;
  if (typeof facts?.taskId !== 'string' || typeof facts.status !== 'string') return null;
  const { taskId, status, effect, replayed } = facts;
  return { taskId, status, effect: typeof effect === 'string' ? effect : null, replayed: replayed === true };
}

/** The last known state of a task that no worker answers for: what it asks is not in it. */
export const isStale = ({ _meta }: JsonObject): boolean =>
  ((_meta as JsonObject | undefined)?.[TASK_META] as JsonObject | undefined)?.stale === true;

/** A task of the Tasks extension: the answer to `tasks/get`, to `tools/call` with `resultType: "task"`, or a hint. */
export function readingOfTask(task: JsonObject): TaskReading {
  const taskId = String(task.taskId);
  const facts = factsOf(task._meta);
  const status = String(task.status);
  const statusMessage = typeof task.statusMessage === 'string' ? task.statusMessage : status;
  const outcome = outcomeOfTask(task, { taskId, status, statusMessage, facts });
  return {
    taskId,
    status: facts?.status ?? status,
    statusMessage,
    outcome,
    pollIntervalMs: typeof task.pollIntervalMs === 'number' ? task.pollIntervalMs : POLL_INTERVAL_MS,
    sequence: typeof task.lastUpdatedAt === 'string' ? Date.parse(task.lastUpdatedAt) || 0 : 0,
    hasEnded: isTerminal(status),
  };
}

interface TaskWords {
  taskId: string;
  status: string;
  statusMessage: string;
  facts: TaskFacts | null;
}

function outcomeOfTask(task: JsonObject, words: TaskWords): CallOutcome | null {
  const { taskId, status, statusMessage, facts } = words;
  if (facts?.effect === 'unknown') return inDoubt(taskId);
  switch (status) {
    case 'completed':
      // Asked for with `tasks/get` only then is the result there.
      return isJsonObject(task.result)
        ? endedOutcome(task.result as unknown as ToolResult, taskId, facts)
        : null;
    case 'failed':
      return {
        kind: 'failed',
        taskId,
        effect: effectOf(facts),
        error: errorOfRpc(task.error),
      };
    case 'cancelled':
      return {
        kind: 'failed',
        taskId,
        effect: effectOf(facts),
        error: { code: 'cancelled', message: statusMessage, details: {}, retryable: false },
      };
    case 'input_required':
      return {
        kind: 'input_needed',
        taskId,
        requests: (task.inputRequests ?? {}) as Record<string, JsonObject>,
        message: statusMessage,
      };
    default:
      return openOutcome(facts, statusMessage);
  }
}

/** Open, but no amount of waiting by this client moves it. */
function openOutcome(facts: TaskFacts | null, message: string): CallOutcome | null {
  if (facts?.status === 'needs_attention') return inDoubt(facts.taskId);
  if (facts?.status === 'awaiting_approval')
    return { kind: 'input_needed', taskId: facts.taskId, requests: {}, message };
  return null;
}

/** The result of `tools/call` or of `task_get`. `reading` where it is a task that goes on. */
export function outcomeOfResult(result: ToolResult): CallOutcome | { kind: 'working'; reading: TaskReading } {
  const facts = factsOf(result._meta);
  // A handle is no error: one beside an open task says that the call failed.
  if (facts === null || isTerminal(facts.status) || result.isError === true)
    return endedOutcome(result, facts?.taskId ?? null, facts);
  const statusMessage = textOf(result);
  const outcome = askedInWords(result, facts) ?? openOutcome(facts, statusMessage);
  if (outcome !== null) return outcome;
  const { taskId, status } = facts;
  const reading: TaskReading = {
    ...{ taskId, status, statusMessage, outcome: null, pollIntervalMs: POLL_INTERVAL_MS },
    ...{ sequence: 0, hasEnded: false },
  };
  return { kind: 'working', reading };
}

export const readingOfResult = (result: ToolResult, taskId: string): TaskReading => {
  const facts = factsOf(result._meta);
  const outcome = outcomeOfResult(result);
  if (outcome.kind === 'working') return outcome.reading;
  return {
    taskId: facts?.taskId ?? taskId,
    status: facts?.status ?? outcome.kind,
    statusMessage: textOf(result),
    outcome,
    pollIntervalMs: POLL_INTERVAL_MS,
    sequence: 0,
    hasEnded: facts === null || isTerminal(facts.status),
  };
};

/** M3.1: the question in the result of a client without the extension, which answers with `task_answer`. */
function askedInWords({ structuredContent }: ToolResult, { taskId, status }: TaskFacts): CallOutcome | null {
  if (status !== 'awaiting_approval' || structuredContent === undefined) return null;
  const { next, approval } = structuredContent;
  const message = JSON.stringify(approval ?? null);
  const callId =
    isJsonObject(next) && next.tool === 'task_answer' ? (next.arguments as JsonObject).callId : null;
  if (typeof callId !== 'string') return null;
  return {
    kind: 'input_needed',
    taskId,
    requests: { [callId]: { method: 'elicitation/create', params: { message } } },
    message,
  };
}

function endedOutcome(result: ToolResult, taskId: string | null, facts: TaskFacts | null): CallOutcome {
  if (facts?.effect === 'unknown') return inDoubt(facts.taskId);
  if (result.isError !== true)
    return { kind: 'completed', taskId, replayed: facts?.replayed ?? false, result };
  const error = result.structuredContent?.error;
  return { kind: 'failed', taskId, effect: effectOf(facts), error: errorOfTool(error, result), result };
}

const inDoubt = (taskId: string): CallOutcome => ({
  kind: 'unknown',
  taskId,
  key: null,
  reason: 'in_doubt',
  ask: askForTask(taskId),
});

export const askForTask = (taskId: string): string =>
  `Do not call again. Ask for task ${taskId}: read it here, or with \`holdfast task show ${taskId}\`.`;

export const askForKey = (tool: string, key: string | null): string =>
  key === null
    ? `Do not call again. No task is known; a person must look at the target itself whether ${tool} took effect.`
    : `Do not call again. No task of ${tool} was found under key ${JSON.stringify(key)} so far, and the call may still be on its way: ` +
      'ask again later (`holdfast task show --tool … --key …`), or look at the target itself.';

export function errorOfRpc(error: unknown): CallError {
  const { message = 'no message', data } = (error ?? {}) as { message?: unknown; data?: unknown };
  const named = isJsonObject(data as Json) ? (data as JsonObject) : {};
  return {
    code: typeof named.code === 'string' ? named.code : 'rpc_error',
    message: String(message),
    details: isJsonObject(named.details) ? named.details : {},
    retryable: named.retryable === true,
  };
}

/** By which a Holdfast gateway refuses a call or a read; null: it tells how a task ended, or it is a tool's own word. */
export function errorWithoutTask(result: JsonObject): CallError | null {
  // An error besides a task that is open: whether it was ever started is not known.
  if (result.isError !== true || isTerminal(factsOf(result._meta)?.status ?? '')) return null;
  const { structuredContent } = result as unknown as ToolResult;
  const error = errorOfTool(structuredContent?.error, { content: [], ...result });
  return error.code === 'tool_error' ? null : error;
}

function errorOfTool(error: Json | undefined, result: ToolResult): CallError {
  if (!isJsonObject(error) || typeof error.code !== 'string')
    return { code: 'tool_error', message: textOf(result), details: {}, retryable: false };
  return {
    code: error.code,
    message: typeof error.message === 'string' ? error.message : textOf(result),
    details: isJsonObject(error.details) ? error.details : {},
    retryable: error.retryable === true,
  };
}

function effectOf(facts: TaskFacts | null): 'none' | 'applied' | 'rolled_back' | null {
  const effect = facts?.effect;
  return effect === 'none' || effect === 'applied' || effect === 'rolled_back' ? effect : null;
}

const textOf = ({ content }: ToolResult): string => content.map(({ text }) => text ?? '').join('\n');
