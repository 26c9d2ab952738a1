/**
 * An open approval as MCP shows it, asks for it and reads the answer (M2.3, M7.3). Pure.
 *
 * Invariants:
 * 1. Nothing here shows the phrase of a challenge: what needs one is never decided over this channel (S4.6).
 * 2. What is decided here is only whether to *offer* the question; the task judges every decision by its own policy.
 * 3. Text of callers and handlers can't pass for text of ours: it is shown as JSON, without invisible characters.
 */
import { inputRequired, inputResponse } from '@modelcontextprotocol/server';
import type { InputRequest } from '@modelcontextprotocol/server';
import * as z from 'zod';
import type { ApprovalView, TaskAnswer } from '../client/task-client.ts';
import { APPROVAL_ACTION } from '../task/approval.ts';
import type { Json, JsonObject } from '../task/json.ts';
import type { Principal } from '../task/plan.ts';

/** Who looks at a task, and whether this very request declared that a person can be asked through it. */
export interface Onlooker {
  principal: Principal;
  canElicit: boolean;
}

export const REASON_CHARS_MAX = 1_000;
/** Of one part of the question; a dialog shows no more, and the whole is a command away. */
const PART_CHARS_MAX = 4_000;

/**
 * What people are asked just now; more than one thing where a procedure asks at several places at once. Nothing once a
 * cancel is asked for: it closes them in a moment.
 */
export function openApprovals(answer: TaskAnswer): ApprovalView[] {
  const isAsking = answer.status === 'awaiting_approval' && !answer.cancelRequested;
  return isAsking && answer.approval ? [answer.approval, ...(answer.otherApprovals ?? [])] : [];
}

/** The first of them. */
export const openApproval = (answer: TaskAnswer): ApprovalView | null => openApprovals(answer)[0] ?? null;

/** Those that this principal may decide over MCP; policy leaves the others to someone else, or elsewhere. */
export function answerableApprovals(answer: TaskAnswer, principal: Principal): ApprovalView[] {
  return openApprovals(answer).filter((approval) => {
    const { roles, approvedBy, requesterMayDecide, mayAnswerOverMcp, challenge } = approval;
    return (
      mayAnswerOverMcp &&
      challenge === null &&
      (requesterMayDecide || approval.view.requester !== principal.subject) &&
      (roles.length === 0 || roles.some((role) => principal.roles.includes(role))) &&
      !approvedBy.includes(principal.subject)
    );
  });
}

/** The first of them. */
export const answerableApproval = (answer: TaskAnswer, principal: Principal): ApprovalView | null =>
  answerableApprovals(answer, principal)[0] ?? null;

/** As `answerableApprovals`, where the client can also put the questions to a person. */
export const askableApprovals = (answer: TaskAnswer, { principal, canElicit }: Onlooker): ApprovalView[] =>
  canElicit ? answerableApprovals(answer, principal) : [];

/** The first of them: a call asks one thing at a time. */
export const askableApproval = (answer: TaskAnswer, onlooker: Onlooker): ApprovalView | null =>
  askableApprovals(answer, onlooker)[0] ?? null;

/** The question under `callId`, for `inputRequests` of a task and of a call alike (S4.7). */
export function approvalQuestion(answer: TaskAnswer, approval: ApprovalView): InputRequest {
  return inputRequired.elicit({
    message: questionText(answer, approval),
    requestedSchema: {
      type: 'object',
      properties: {
        decision: {
          type: 'string',
          title: 'Decision',
          description: decisionText(answer, approval),
          enum: ['approve', 'reject'],
        },
        reason: {
          type: 'string',
          title: 'Reason',
          description: 'Kept for the audit.',
          maxLength: REASON_CHARS_MAX,
        },
      },
      required: ['decision'],
    },
  });
}

function decisionText({ action: task }: TaskAnswer, { action }: ApprovalView): string {
  if (action === APPROVAL_ACTION)
    return `approve: ${task} goes on from here. reject: it does not, unless its code has another way.`;
  const isNot = action === task ? 'it is not, and the task ends' : `it is not, and ${task} is told`;
  return `approve: ${action} is carried out with exactly these arguments. reject: ${isNot}.`;
}

/** What will happen, in lines. */
export function questionText(answer: TaskAnswer, approval: ApprovalView): string {
  const { taskId } = answer;
  const { action, view, expiresAt, quorum, approvedBy } = approval;
  const part = (value: Json | undefined): string => shown(value, taskId);
  return [
    `${answer.action} waits for a decision (task ${taskId}, approval ${approval.callId}). ${action === answer.action ? 'Nothing' : 'Nothing of this step'} was sent yet.`,
    `Asked by: ${part(view.requester)}`,
    `Action: ${action === APPROVAL_ACTION ? 'none; the procedure asks before it goes on' : action}`,
    `Arguments: ${part(view.arguments)}`,
    ...(view.shortened === true ? ['The arguments are too long to be shown whole: parts are left out.'] : []),
    `Precondition as read: ${part(view.precondition)}`,
    `Rollback: ${part(view.rollback)}`,
    ...(quorum > 1 ? [`Approvers: ${approvedBy.length} of ${quorum} so far`] : []),
    `Open until: ${new Date(expiresAt).toISOString()}`,
  ].join('\n');
}

/** The approval as structured content. */
export function approvalFacts(approval: ApprovalView): JsonObject {
  const { callId, action, expiresAt, quorum, approvedBy, roles, view } = approval;
  const { requester = null, arguments: args = null, precondition = null, rollback = null } = view;
  return {
    ...{ callId, action, requester, arguments: args, precondition, rollback },
    ...(view.shortened === true && { shortened: true }),
    ...{ roles, quorum, approvedBy, openUntil: new Date(expiresAt).toISOString() },
  };
}

export interface PersonsDecision {
  decision: 'approve' | 'reject';
  reason?: string;
}

export type PersonsAnswer =
  | ({ kind: 'decision' } & PersonsDecision)
  /** Declined or dismissed: nobody decided anything, and the approval stays open. */
  | { kind: 'none' }
  /** Absent, or not what was asked for. */
  | { kind: 'unusable' };

/** `confirm` is what clients send that put a plain yes-or-no box before their person, whatever the form. */
const content = z
  .object({
    decision: z.enum(['approve', 'reject']).optional(),
    confirm: z.boolean().optional(),
    reason: z.string().max(REASON_CHARS_MAX).nullish(),
  })
  .transform(({ decision, confirm, reason }, context) => {
    const confirmed = confirm === undefined ? undefined : confirm ? 'approve' : 'reject';
    const meant = decision ?? confirmed;
    if (meant !== undefined && (confirmed ?? meant) === meant) return { decision: meant, reason };
    context.addIssue({ code: 'custom', message: 'no decision, or two that differ' });
    return z.NEVER;
  });

/** The answer under `callId` among a request's `inputResponses`. */
export function personsAnswer(responses: unknown, callId: string): PersonsAnswer {
  const response = inputResponse(ownOf(responses), callId);
  if (response.kind !== 'elicit') return { kind: 'unusable' };
  if (response.action !== 'accept') return { kind: 'none' };
  const parsed = content.safeParse(response.content);
  if (!parsed.success) return { kind: 'unusable' };
  const { decision, reason } = parsed.data;
  return { kind: 'decision', decision, ...(reason && { reason }) };
}

type Responses = Parameters<typeof inputResponse>[0];

/** A client's map without what it inherits: `constructor` is no answer. */
export const ownOf = (responses: unknown): Responses =>
  typeof responses === 'object' && responses !== null
    ? (Object.assign(Object.create(null), responses) as Responses)
    : undefined;

const INVISIBLE = /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

function shown(value: Json | undefined, taskId: string): string {
  const text = JSON.stringify(value ?? null).replace(
    INVISIBLE,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  if (text.length <= PART_CHARS_MAX) return text;
  const rest = text.length - PART_CHARS_MAX;
  return `${text.slice(0, PART_CHARS_MAX)}… (${rest} characters more: read all of it with \`holdfast task show ${taskId}\` before deciding)`;
}
