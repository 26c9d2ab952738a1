/**
 * Decisions of people (S4): signals `approve`, `edit`, `reject` and update `decide`.
 *
 * Validates shape, lets the pure core judge, appends what follows. An edit is planned by an activity first, and judged
 * after that against the task as it is then (S4.3). Through a signal nobody can be answered: what changed nothing is
 * journaled as ignored, and so is a refused update, for the audit.
 */
import { setHandler } from '@temporalio/workflow';
import { decisionRecord, judgeDecision } from '../src/task/approval.ts';
import type { DecisionKind, DecisionMessage, DecisionReply } from '../src/task/approval.ts';
import type { JsonObject } from '../src/task/json.ts';
import type { Principal } from '../src/task/plan.ts';
import { statusOf } from '../src/task/view.ts';
import type { Journal } from './journal.ts';
import { approveSignal, decideUpdate, editSignal, rejectSignal } from './messages.ts';
import { ledgerActivities } from './steps.ts';
import type { TaskRun } from './task-run.ts';

const TEXT_CHARS_MAX = 1_000;
const NAME_CHARS_MAX = 255;
const ROLES_MAX = 100;
const ARGUMENT_CHARS_MAX = 1_048_576;

export function answerDecisions(journal: Journal, run: TaskRun): void {
  const bySignal = (kind: DecisionKind) => async (message: unknown) => {
    await decide(journal, run, { ...fieldsOf(message), kind });
  };
  setHandler(approveSignal, bySignal('approve'));
  setHandler(editSignal, bySignal('edit'));
  setHandler(rejectSignal, bySignal('reject'));
  setHandler(decideUpdate, (message) => decide(journal, run, message));
}

/** A decision that was held until its approval opened. */
export function judgeHeld(journal: Journal, decision: DecisionMessage): void {
  journal.append({ type: 'held_decision_taken', data: { callId: decision.callId } });
  const judgement = judgeDecision(journal.state, decision, Date.now());
  if (judgement.kind === 'answered') conclude(journal, decision, judgement);
}

async function decide(journal: Journal, run: TaskRun, message: unknown): Promise<DecisionReply> {
  const decision = decisionOf(message);
  if (decision === null) return refuse(journal, 'invalid_decision', DECISION_SHAPE);
  const known = journal.state.answers.find(({ decisionId }) => decisionId === decision.decisionId);
  if (known !== undefined) {
    const { decisionId: _id, ...answer } = known;
    return { ...answer, status: statusOf(journal.state) };
  }
  const judgement = judgeDecision(journal.state, decision, Date.now());
  return judgement.kind === 'answered'
    ? conclude(journal, decision, judgement)
    : edit(journal, run, decision);
}

/** S4.2: the same action; new arguments are validated and planned again, by an activity. */
async function edit(journal: Journal, run: TaskRun, decision: DecisionMessage): Promise<DecisionReply> {
  const { plan, taskId } = journal.state;
  if (plan === null || decision.arguments === undefined)
    return refuse(journal, 'invalid_edit', 'An edit needs `arguments`.');
  const { callId, by } = decision;
  const planned = await ledgerActivities
    .planEdit({ plan, taskId, callId, arguments: decision.arguments, by })
    .catch(() => ({
      kind: 'refused' as const,
      message: 'The new arguments could not be checked just now; decide again.',
    }));
  if (planned.kind === 'refused') {
    return conclude(journal, decision, {
      reply: { accepted: false, code: 'invalid_edit', message: planned.message },
      events: [],
    });
  }
  // Others may have decided meanwhile: asked again before anything follows from it (S3.2).
  const again = judgeDecision(journal.state, decision, Date.now());
  if (again.kind === 'answered') return conclude(journal, decision, again);
  const { needsApproval } = planned;
  run.input = planned.input;
  return conclude(journal, decision, {
    reply: { accepted: true, code: needsApproval ? 'edited_needs_approval' : 'edited' },
    events: [
      {
        type: 'approval_decided',
        data: { ...decisionRecord(decision), decision: 'edited', plan: planned.plan, needsApproval },
      },
    ],
  });
}

type Answered = Omit<Extract<ReturnType<typeof judgeDecision>, { kind: 'answered' }>, 'kind'>;

function conclude(journal: Journal, decision: DecisionMessage, { reply, events }: Answered): DecisionReply {
  for (const event of events) journal.append(event);
  if (events.length === 0) {
    const { kind } = decision;
    journal.append({
      type: 'decision_ignored',
      data: { ...decisionRecord(decision), kind, code: reply.code },
    });
  }
  return { ...reply, status: statusOf(journal.state) };
}

const DECISION_SHAPE =
  'A decision is {kind: approve|edit|reject, callId, by: {tenant, subject, roles}, decisionId?, fingerprint?, challengeAnswer?, arguments?, reason?}.';

function refuse(journal: Journal, code: DecisionReply['code'], message: string): DecisionReply {
  if (journal.state.phase.kind !== 'ended')
    journal.append({ type: 'message_ignored', data: { message: 'decide', code } });
  return { accepted: false, code, message, status: statusOf(journal.state) };
}

/** The message cut down to what a decision is; null when it is none. Anyone may signal anything. */
function decisionOf(message: unknown): DecisionMessage | null {
  const {
    kind,
    callId,
    decisionId,
    fingerprint,
    challengeAnswer,
    arguments: args,
    reason,
    channel,
    by,
  } = fieldsOf(message);
  const who = principalOf(by);
  if (kind !== 'approve' && kind !== 'edit' && kind !== 'reject') return null;
  if (typeof callId !== 'string' || who === null) return null;
  if (args !== undefined && !isArguments(args)) return null;
  return {
    kind,
    callId: callId.slice(0, NAME_CHARS_MAX),
    by: who,
    ...(typeof decisionId === 'string' && { decisionId: decisionId.slice(0, NAME_CHARS_MAX) }),
    ...(typeof fingerprint === 'string' && { fingerprint }),
    ...(typeof challengeAnswer === 'string' && { challengeAnswer: challengeAnswer.slice(0, TEXT_CHARS_MAX) }),
    ...(args !== undefined && { arguments: args }),
    ...(typeof reason === 'string' && { reason: reason.slice(0, TEXT_CHARS_MAX) }),
    ...(channel === 'mcp' && { channel }),
  };
}

function isArguments(value: unknown): value is JsonObject {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject && JSON.stringify(value).length <= ARGUMENT_CHARS_MAX;
}

function principalOf(value: unknown): Principal | null {
  const { tenant, subject, roles } = fieldsOf(value);
  if (typeof tenant !== 'string' || typeof subject !== 'string' || !Array.isArray(roles)) return null;
  const names = roles.filter((role) => typeof role === 'string');
  return { tenant, subject: subject.slice(0, NAME_CHARS_MAX), roles: names.slice(0, ROLES_MAX) };
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
