/**
 * Decisions of people (S4): signals `approve`, `edit`, `reject` and update `decide`.
 *
 * Validates shape, lets the pure core judge, appends what follows. An edit is planned by an activity first, and judged
 * after that against the task as it is then (S4.3). Through a signal nobody can be answered: what changed nothing is
 * journaled as ignored, and so is a refused update, for the audit.
 */
import { patched, setHandler } from '@temporalio/workflow';
import type { PlanEditResult } from '../src/task/activity-api.ts';
import type { DecisionCode, DecisionKind, DecisionMessage, DecisionReply } from '../src/task/approval.ts';
import {
  editRefused,
  edited,
  eventsAfter,
  firstAnswer,
  ignored,
  judgeDecision,
} from '../src/task/judge-decision.ts';
import type { Answered } from '../src/task/judge-decision.ts';
import type { JsonObject } from '../src/task/json.ts';
import type { Principal } from '../src/task/plan.ts';
import type { TaskState } from '../src/task/state.ts';
import { isKeepable, keptText } from '../src/task/text.ts';
import { statusOf } from '../src/task/view.ts';
import type { Journal } from './journal.ts';
import { bytesOf } from './json-bytes.ts';
import { approveSignal, decideUpdate, editSignal, rejectSignal } from './messages.ts';
import { ledgerActivities } from './steps.ts';
import type { TaskRun } from './task-run.ts';

const TEXT_CHARS_MAX = 1_000;
const NAME_CHARS_MAX = 255;
const ROLES_MAX = 100;
const ARGUMENT_BYTES_MAX = 1_048_576;
const EDITS_UNDER_WAY_MAX = 10;

/** Whom decisions are about: the one task of workflow `action`, or the step that the callId names. */
export interface DecisionRoute {
  /** Null: nothing of that name is there. */
  taskOf(callId: string): { journal: Journal; run: TaskRun } | null;
  /** Of a step that was left behind or has not begun; null where there is none of that name. Absent: there is but the one task. */
  absent?(decision: DecisionMessage): Omit<DecisionReply, 'status'> | null;
  status(): string;
  /** Journals a message that is about nothing that is there. */
  ignore(code: DecisionCode, decision: DecisionMessage | null): void;
}

/** For a task of its own. */
export function ignoreOf(journal: Journal): DecisionRoute['ignore'] {
  return (code, decision) => {
    if (journal.state.phase.kind !== 'ended') journal.append(ignoredAs(code, decision));
  };
}

/** Who is known of what is a decision at all. */
export function ignoredAs(code: DecisionCode, decision: DecisionMessage | null) {
  if (decision !== null) return ignored(decision, code);
  return { type: 'message_ignored', data: { message: 'decide', code } } as const;
}

export function answerDecisions(route: DecisionRoute): void {
  // No promise where none is waited for: thousands may have come while no worker was there, all judged in one go.
  const bySignal =
    (kind: DecisionKind) =>
    (message: unknown): void | Promise<void> => {
      const reply = decide(route, { ...fieldsOf(message), kind });
      if (reply instanceof Promise) return reply.then(() => undefined);
    };
  setHandler(approveSignal, bySignal('approve'));
  setHandler(editSignal, bySignal('edit'));
  setHandler(rejectSignal, bySignal('reject'));
  setHandler(decideUpdate, (message) => decide(route, message));
}

/** A decision that came before its step began (S4.3). */
export function handOver(journal: Journal, decision: DecisionMessage): void {
  const judgement = judgeDecision(journal.state, decision, Date.now());
  if (judgement.kind === 'answered') conclude(journal, decision, judgement);
}

/** A decision that was held until its approval opened. */
export function judgeHeld(journal: Journal, decision: DecisionMessage): void {
  journal.append({ type: 'held_decision_taken', data: { callId: decision.callId } });
  const judgement = judgeDecision(journal.state, decision, Date.now());
  if (judgement.kind === 'answered') conclude(journal, decision, judgement);
}

function decide(route: DecisionRoute, message: unknown): DecisionReply | Promise<DecisionReply> {
  const decision = decisionOf(message);
  if (decision === null) return refuse(route, null, 'invalid_decision', DECISION_SHAPE);
  const task = route.taskOf(decision.callId);
  if (task === null) {
    const reply = route.absent?.(decision) ?? null;
    if (reply !== null) return { ...reply, status: route.status() };
    return refuse(route, decision, 'not_open', 'No approval of that id belongs to this task.');
  }
  const { journal, run } = task;
  const first = firstAnswer(journal.state, decision);
  if (first !== null) return { ...first, status: statusOf(journal.state) };
  const judgement = judgeDecision(journal.state, decision, Date.now());
  if (judgement.kind === 'answered') return conclude(journal, decision, judgement);
  if (run.editsUnderWay >= EDITS_UNDER_WAY_MAX)
    return conclude(journal, decision, editRefused('Other edits are being checked just now; decide again.'));
  return edit(journal, run, decision);
}

/** S4.2: the same action; new arguments are validated and planned again, by an activity. */
async function edit(journal: Journal, run: TaskRun, decision: DecisionMessage): Promise<DecisionReply> {
  run.editsUnderWay += 1;
  const planned = await planWhenAdmitted(journal, run, decision).finally(() => (run.editsUnderWay -= 1));
  // Others may have decided meanwhile: asked again before anything follows from it (S3.2).
  const first = firstAnswer(journal.state, decision);
  if (first !== null) return { ...first, status: statusOf(journal.state) };
  const again = judgeDecision(journal.state, decision, Date.now());
  if (again.kind === 'answered') return conclude(journal, decision, again);
  if (planned.kind === 'refused') return conclude(journal, decision, editRefused(planned.message));
  run.input = planned.input;
  return conclude(journal, decision, edited(decision, planned));
}

function planWhenAdmitted(
  journal: Journal,
  run: TaskRun,
  decision: DecisionMessage,
): Promise<PlanEditResult> {
  const later = run.admission.ask(bytesOf(journal.state.plan) + bytesOf(decision.arguments));
  if (later === undefined) return planEdit(journal.state, decision);
  return later.then(() => planWhenAdmitted(journal, run, decision));
}

function planEdit(
  { plan, taskId }: TaskState,
  { callId, by, arguments: args }: DecisionMessage,
): Promise<PlanEditResult> {
  if (plan === null || args === undefined) throw new Error('an edit without a plan or arguments');
  return ledgerActivities.planEdit({ plan, taskId, callId, arguments: args, by }).catch(() => ({
    kind: 'refused',
    message: 'The new arguments could not be checked just now; decide again, under another decisionId.',
  }));
}

function conclude(journal: Journal, decision: DecisionMessage, answered: Answered): DecisionReply {
  for (const event of eventsAfter(decision, answered)) journal.append(event);
  return { ...answered.reply, status: statusOf(journal.state) };
}

const DECISION_SHAPE =
  'A decision is {kind: approve|edit|reject, callId, by: {tenant, subject, roles}, decisionId?, fingerprint?, challengeAnswer?, action?, arguments? (of an edit alone), reason?}.';

function refuse(
  route: DecisionRoute,
  decision: DecisionMessage | null,
  code: DecisionCode,
  message: string,
): DecisionReply {
  route.ignore(code, decision);
  return { accepted: false, code, message, status: route.status() };
}

/**
 * The message cut down to what a decision is; null when it is none. Anyone may signal anything. Names are never cut:
 * one that is too long would then be somebody else's.
 */
function decisionOf(message: unknown): DecisionMessage | null {
  const { kind, callId, decisionId, fingerprint, challengeAnswer, reason, channel, by, ...more } =
    fieldsOf(message);
  const who = principalOf(by);
  if (kind !== 'approve' && kind !== 'edit' && kind !== 'reject') return null;
  if (!isName(callId) || who === null || (decisionId !== undefined && !isName(decisionId))) return null;
  const args = kind === 'edit' ? more['arguments'] : undefined;
  if (args !== undefined && !isArguments(args)) return null;
  const named = [more['action'], more['tool']].filter(isSaid);
  const isMore = named.length > 0 || (kind !== 'edit' && isSaid(more['arguments']));
  // Cut down to its kind it would be a yes to what was not meant. Runs that did so go on as they began.
  const isStrict = isMore && patched('decision-says-more');
  const [action] = named;
  if (isStrict && kind !== 'edit' && isSaid(more['arguments'])) return null;
  if (isStrict && !named.every((name) => isName(name) && name === action)) return null;
  return {
    kind,
    callId,
    by: who,
    ...(isStrict && isName(action) && { action }),
    ...(decisionId !== undefined && { decisionId }),
    ...(typeof fingerprint === 'string' && { fingerprint: keptText(fingerprint, NAME_CHARS_MAX) }),
    ...(typeof challengeAnswer === 'string' && {
      challengeAnswer: keptText(challengeAnswer, TEXT_CHARS_MAX),
    }),
    ...(args !== undefined && { arguments: args }),
    ...(typeof reason === 'string' && { reason: keptText(reason, TEXT_CHARS_MAX) }),
    ...(channel === 'mcp' && { channel }),
  };
}

const isSaid = (value: unknown): boolean => value !== undefined && value !== null;

function isArguments(value: unknown): value is JsonObject {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isObject || !isKeepable(value)) return false;
  const bytes = bytesOf(value);
  if (bytes <= ARGUMENT_BYTES_MAX) return true;
  // Runs that counted characters go on as they began.
  return JSON.stringify(value).length <= ARGUMENT_BYTES_MAX && !patched('edit-bytes');
}

function principalOf(value: unknown): Principal | null {
  const { tenant, subject, roles } = fieldsOf(value);
  if (!isName(tenant) || !isName(subject) || !Array.isArray(roles)) return null;
  return { tenant, subject, roles: roles.filter(isName).slice(0, ROLES_MAX) };
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= NAME_CHARS_MAX && isKeepable(value);
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
