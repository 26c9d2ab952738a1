/**
 * A task as the result of `tools/call`: the same for the blocking call, for `task_get` and `task_wait`, and for the
 * `result` inside a completed task of the Tasks extension.
 *
 * - Ended `completed`: the first content block is the action's result (JSON, or the string itself), structured when it
 *   is an object; further blocks say what is special about it.
 * - Ended `failed` or `cancelled`: `isError`, with `{error, task}` structured.
 * - Not ended: the task's handle. Not an error: nothing has failed, and agents repeat errors. Where a person must
 *   approve first, it says what will happen, and how the decision is made.
 */
import type { CallToolResult } from '@modelcontextprotocol/server';
import type { TaskAnswer } from '../client/task-client.ts';
import { tryExactJson } from '../contract/canonical.ts';
import { TASK_META } from '../contract/wire-names.ts';
import { UPSTREAM_META } from '../contract/wire-names.ts';
import { isJsonObject } from '../task/json.ts';
import type { Json, JsonObject } from '../task/json.ts';
import { endError, errorText, shownError } from './error-mapping.ts';
import type { Principal } from '../task/plan.ts';
import { answerableApproval, approvalFacts, openApproval } from './approval.ts';
import { hasEnded, isOutcomeUnknown, taskMeta } from './task-answer.ts';
import { approvalWords, completionNotes, endWords, handleWords } from './words.ts';

/** `remark`: what became of this very call, for a task that has not ended. */
export function toolResult(answer: TaskAnswer, principal: Principal, remark = ''): CallToolResult {
  const meta = { [TASK_META]: taskMeta(answer) };
  if (openApproval(answer) !== null) return { ...approvalResult(answer, principal, remark), _meta: meta };
  if (!hasEnded(answer)) return { ...handleResult(answer, remark), _meta: meta };
  return answer.status === 'completed'
    ? { ...completedResult(answer), _meta: meta }
    : { ...endResult(answer), _meta: meta };
}

function completedResult(answer: TaskAnswer): CallToolResult {
  const exact = tryExactJson(answer.result);
  // M1.6: an inexact number is withheld, never rounded; the effect stands all the same.
  const result: Json = exact.ok ? exact.value : null;
  const notes = completionNotes(answer, exact.ok ? null : exact.issue.path);
  if (isForeignAnswer(result)) return passedOn(result, notes);
  const shown = exact.ok && answer.resultDropped === undefined ? [resultText(result)] : [];
  return {
    content: [...shown, ...notes].map((text) => ({ type: 'text', text })),
    ...(isJsonObject(result) && { structuredContent: result }),
  };
}

/** The own answer of another server's tool, marked where it was kept (M8.1). */
type ForeignAnswer = JsonObject & { content: Json[] };

const isForeignAnswer = (result: Json): result is ForeignAnswer =>
  isJsonObject(result) &&
  Array.isArray(result['content']) &&
  isJsonObject(result['_meta']) &&
  typeof result['_meta'][UPSTREAM_META] === 'string';

function passedOn({ content, structuredContent }: ForeignAnswer, notes: string[]): CallToolResult {
  return {
    content: [...content, ...notes.map((text) => ({ type: 'text', text }))] as CallToolResult['content'],
    ...(isJsonObject(structuredContent) && { structuredContent }),
  };
}

function endResult(answer: TaskAnswer): CallToolResult {
  const error = shownError(endError(answer));
  return {
    content: [{ type: 'text', text: `${endWords(answer)}\n${errorText(error)}` }],
    structuredContent: { error, task: taskMeta(answer) },
    isError: true,
  };
}

/** The task waits for a person, who answers over this connection where policy allows it, or elsewhere. */
function approvalResult(answer: TaskAnswer, principal: Principal, remark: string): CallToolResult {
  const { taskId } = answer;
  const open = openApproval(answer);
  const answerable = answerableApproval(answer, principal);
  return {
    content: [{ type: 'text', text: approvalWords(answer, answerable, remark) }],
    structuredContent: {
      code: 'awaiting_approval',
      done: false,
      failed: false,
      callAgain: false,
      task: taskMeta(answer),
      ...(open !== null && { approval: approvalFacts(open) }),
      next: answerable
        ? { tool: 'task_answer', arguments: { taskId, callId: answerable.callId } }
        : { tool: 'task_get', arguments: { taskId } },
    },
  };
}

/** The task goes on without this request. */
function handleResult(answer: TaskAnswer, remark: string): CallToolResult {
  const code = isOutcomeUnknown(answer) ? 'outcome_unknown' : 'operation_in_progress';
  return {
    content: [{ type: 'text', text: handleWords(answer, remark) }],
    structuredContent: {
      code,
      done: false,
      failed: false,
      callAgain: false,
      task: taskMeta(answer),
      next: { tool: 'task_wait', arguments: { taskId: answer.taskId } },
    },
  };
}

const resultText = (result: Json): string => (typeof result === 'string' ? result : JSON.stringify(result));
