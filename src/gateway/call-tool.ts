/**
 * `tools/call` for actions, in the order of M1.2: the caller is authenticated before this; then validate, plan and
 * start or attach (all three in `TaskClient.start`, which answers only when the start is durable), then answer.
 *
 * How it answers:
 *
 * | action | client | answer |
 * | --- | --- | --- |
 * | `direct` | any | another server's result, at once and without a task |
 * | ended already (replay, inline) | any | the result |
 * | `safe` | any | the result, after blocking |
 * | other | declared Tasks | the result within `inlineWaitMs`, else the task (M2.1) |
 * | other | did not | the result, blocking with progress up to `blockingMs`, else the handle in words (M3.1) |
 *
 * Before all that, a call that leaves out what its contract asks a person for (`ask`) is answered with the question, where
 * its client takes forms; it comes back with the answer, and nothing was started meanwhile.
 *
 * A call that meets an open approval is answered at once, since no waiting of its own moves that (M2.3, M3.1, M7.3):
 *
 * | policy | client | answer |
 * | --- | --- | --- |
 * | any | declared Tasks | the task, `safe` or not |
 * | this principal may decide here | takes forms | the question; the same call comes back with the answer and goes on |
 * | this principal may decide here | other | the handle, with the question, in words: `task_answer` |
 * | someone else, or elsewhere | any other | the handle in words: who decides, and with which command |
 */
import type { CallToolResult } from '@modelcontextprotocol/server';
import type { ApprovalView, DecisionAnswer, StartRequest, TaskAnswer } from '../client/task-client.ts';
import { HoldfastError } from '../contract/error.ts';
import type { JsonObject } from '../task/json.ts';
import type { QuestionForm } from '../contract/asked.ts';
import { attend } from './attendance.ts';
import { askableApproval, openApproval, personsAnswer } from './approval.ts';
import type { Caller } from './caller.ts';
import { decideOverMcp } from './decide.ts';
import { callDirectly } from './direct-call.ts';
import { invalidParams, missingExtension } from './error-mapping.ts';
import { takeKey } from './idempotency-key.ts';
import type { OpenRequest } from './open-request.ts';
import { askNext } from './questions.ts';
import type { Asked } from './questions.ts';
import { callDigest } from './request-state.ts';
import type { DecisionState, RequestState } from './request-state.ts';
import { hasEnded } from './task-answer.ts';
import { TASKS_EXTENSION } from './tasks/index.ts';
import { toolResult } from './tool-result.ts';
import type { ToolSpec } from './tool-spec.ts';
import { waitForTask } from './waiting.ts';
import type { WaitParts } from './waiting.ts';
import { refuseInexact } from './wire-message.ts';

export interface CallParts extends WaitParts {
  /** Fault seam: awaited when the start is durable and the answer known, before it is sent. */
  beforeAnswer: (answer: TaskAnswer) => Promise<void>;
}

export type CallOutcome =
  | { kind: 'result'; result: CallToolResult }
  | { kind: 'task'; answer: TaskAnswer }
  /** A person is asked through the client, which then sends this call again with the answer and the state. */
  | { kind: 'input'; answer: TaskAnswer; approval: ApprovalView; state: RequestState }
  /** As before, for what the call leaves out; there is no task yet. */
  | { kind: 'question'; question: QuestionForm; state: RequestState };

interface ToolCall {
  spec: ToolSpec;
  given: JsonObject;
  request: OpenRequest;
}

/** A task as one call met it. */
interface Met {
  answer: TaskAnswer;
  /** The approval that this very call has asked about; it does not ask twice. */
  asked?: string;
  /** What became of this very call. */
  remark?: string;
}

export async function callAction(
  parts: CallParts,
  spec: ToolSpec,
  args: unknown,
  request: OpenRequest,
): Promise<CallOutcome> {
  const { caller } = request;
  if (spec.needsTasks === true && !caller.declaresTasks) throw missingExtension(TASKS_EXTENSION);
  const call: ToolCall = { spec, given: argumentsOf(args, caller), request };
  if (spec.direct)
    return { kind: 'result', result: await callDirectly(spec, spec.direct, call.given, request) };
  const state = stateOf(call);
  const asked = state?.taskId === undefined ? askNext(spec, call.given, caller, state) : null;
  if (asked?.kind === 'ask') return questionOf(call, asked);
  const met = await (state?.taskId === undefined
    ? begin(parts, { ...call, given: asked?.args ?? call.given })
    : goOn(parts, call, state));
  await parts.beforeAnswer(met.answer);
  return outcomeOf(met, call);
}

/** What the call carries from an earlier round of it; verified by signature, and here to be this call's. */
function stateOf({ spec, given, request }: ToolCall): RequestState | undefined {
  const { requestState } = request.caller;
  if (requestState !== undefined && requestState.call !== callDigest(spec.name, given, request.caller.meta))
    throw invalidParams('The requestState belongs to another call.');
  return requestState;
}

function questionOf(
  { spec, given, request }: ToolCall,
  { question, soFar }: Extract<Asked, { kind: 'ask' }>,
): CallOutcome {
  return {
    kind: 'question',
    question,
    state: { ...soFar, call: callDigest(spec.name, given, request.caller.meta) },
  };
}

/** Only a call that did not end is answered with anything but its result. */
function outcomeOf({ answer, asked, remark }: Met, { spec, given, request }: ToolCall): CallOutcome {
  const { caller } = request;
  const takesTask = caller.declaresTasks && (spec.effect !== 'safe' || openApproval(answer) !== null);
  if (takesTask && !hasEnded(answer)) return { kind: 'task', answer };
  const approval = askableApproval(answer, caller);
  if (approval === null || approval.callId === asked)
    return { kind: 'result', result: toolResult(answer, caller.principal, remark) };
  const { callId, fingerprint } = approval;
  const state = {
    taskId: answer.taskId,
    callId,
    fingerprint,
    call: callDigest(spec.name, given, caller.meta),
  };
  return { kind: 'input', answer, approval, state };
}

async function begin(parts: CallParts, { spec, given, request }: ToolCall): Promise<Met> {
  const { caller } = request;
  const isSafe = spec.effect === 'safe';
  const takesTask = caller.declaresTasks && !isSafe;
  const { args: own, key } = takeKey(given, caller.meta, !isSafe, spec.keyArgument);
  const start: StartRequest = {
    action: spec.action ?? spec.name,
    args: own,
    principal: caller.principal,
    // Keyless safe calls never share a task, so that one can be aborted when its caller leaves (M5.3).
    ...(key === undefined ? { attach: !isSafe && (spec.attach ?? true) } : { key }),
  };
  // A task tells where it stands in its own words: no progress beside them.
  const wait = (known: TaskAnswer, windowMs?: number) =>
    waitForTask(parts, known, request, { isSilent: takesTask, ...(windowMs !== undefined && { windowMs }) });
  const started = await startOrMeet(parts, start, request, wait);
  const isKeyless = key === undefined && !hasEnded(started);
  if (isKeyless && isSafe) request.onCancel(() => abandonSafeCall(parts, started, caller));
  const isAbandonable = isKeyless && !isSafe && spec.onAbandon === 'cancel';
  const attendance = isAbandonable ? await attend(parts, started.taskId, request) : null;
  const answer = await wait(started, takesTask ? parts.limits.inlineWaitMs : undefined);
  await attendance?.end(answer);
  return { answer };
}

/** A call that comes back after a person was asked. It starts nothing: its state names the task (M3.1). */
async function goOn(parts: CallParts, { request }: ToolCall, state: DecisionState): Promise<Met> {
  const { caller } = request;
  const { taskId, callId } = state;
  const { principal } = caller;
  const read = () => parts.client.get(taskId, principal);
  const wait = async () => waitForTask(parts, await read(), request);
  const person = personsAnswer(caller.inputResponses, callId);
  switch (person.kind) {
    case 'decision': {
      const remark = refusalWords(await decideOverMcp(parts, principal, state, person));
      return { answer: await wait(), asked: callId, remark };
    }
    case 'none':
      return { answer: await read(), asked: callId, remark: 'The question was dismissed: nobody decided.' };
    case 'unusable':
      return { answer: await wait() }; // asked again, if it is still open
    default:
      return person satisfies never;
  }
}

const refusalWords = ({ accepted, code, message }: DecisionAnswer): string =>
  accepted ? '' : `The decision given here changed nothing (${code}): ${message ?? 'the task refused it.'}`;

/** A task that is cancelled each time it is started anew is somebody's will. */
const ROUNDS_MAX = 3;

/** M1.4: a call that meets a task asked to cancel waits for its end, and starts anew where nothing was sent (S1.6). */
async function startOrMeet(
  { client }: CallParts,
  start: StartRequest,
  { over }: OpenRequest,
  wait: (met: TaskAnswer) => Promise<TaskAnswer>,
): Promise<TaskAnswer> {
  for (let round = 1; ; round += 1) {
    const met = await client.start(start);
    if (hasEnded(met) || !met.cancelRequested) return met;
    const answer = await wait(met);
    const isUndone = answer.status === 'cancelled' && answer.effect === 'none';
    if (!isUndone || round === ROUNDS_MAX || over.aborted) return answer;
  }
}

/** The arguments of a message that `readMessage` let pass. Throws `invalid_arguments` for what it marked (M1.6). */
export function argumentsOf(args: unknown, caller: Caller): JsonObject {
  refuseInexact(caller.meta);
  if (args === undefined) return {};
  if (typeof args === 'object' && args !== null && !Array.isArray(args)) return args as JsonObject;
  throw new HoldfastError('invalid_arguments', 'The arguments must be an object.', {
    details: { issues: [{ path: '', message: 'is no object', expected: 'an object' }] },
  });
}

/** M5.3: a safe call is aborted with its request. */
function abandonSafeCall({ client, log }: CallParts, started: TaskAnswer, caller: Caller): void {
  client.cancel(started.taskId, caller.principal, 'the request was cancelled').catch((error: unknown) => {
    log.warn({ taskId: started.taskId, err: error }, 'an abandoned safe call could not be cancelled');
  });
}
