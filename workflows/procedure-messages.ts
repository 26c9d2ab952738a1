/** How a procedure answers messages: those about all of it here, those about one step by that step's own journal. */
import { patched } from '@temporalio/workflow';
import { stepOfCallId } from '../src/task/approval.ts';
import type { DecisionCode, DecisionMessage } from '../src/task/approval.ts';
import { judgeEarlyDecision } from '../src/task/early-decision.ts';
import type { EarlyAnswer } from '../src/task/early-decision.ts';
import { judgePast } from '../src/task/past-steps.ts';
import { isOver } from '../src/task/phase.ts';
import { statusOf } from '../src/task/view.ts';
import { answerDecisions, ignoredAs } from './decisions.ts';
import { answerGrants } from './leases.ts';
import type { MessageReply } from './messages.ts';
import type { ProcedureRun } from './procedure-run.ts';
import type { ProcedureStep } from './procedure-step.ts';
import { answerRemoteMessages } from './remote-messages.ts';
import {
  answerRequests,
  fieldsOf,
  isTaken,
  nameOf,
  replyWith,
  requestResolve,
  whoAndWhy,
} from './requests.ts';

export function answerProcedureMessages(run: ProcedureRun): void {
  answerRequests({
    state: () => run.view(),
    events: () => run.journal.events,
    cancel: (message) => requestCancel(run, message),
    resolve: (message) => requestStepResolve(run, message),
    interrupt: (message) => requestInterrupt(run, message),
    resume: (message) => requestResume(run, message),
  });
  answerGrants((step) => (step === undefined ? null : (run.steps.get(step)?.journal ?? null)));
  answerRemoteMessages({
    journals: () => [...run.steps.values()].map(({ journal }) => journal),
    state: () => run.view(),
    ignore: (code) => {
      if (!isOver(run.state))
        run.journal.append({ type: 'message_ignored', data: { message: 'answer', code } });
    },
  });
  answerDecisions({
    taskOf: (callId) => run.steps.get(stepOfCallId(callId)) ?? null,
    absent: (decision) => decideAbsent(run, decision),
    status: () => statusOf(run.view()),
    ignore: (code, decision) => ignore(run, code, decision),
  });
}

/** S4.3: a step that was left behind answers as it did. */
function decideAbsent(run: ProcedureRun, decision: DecisionMessage): EarlyAnswer['reply'] | null {
  const past = judgePast(run.state, decision);
  if (past === null) return decideEarly(run, decision);
  if (!past.isFirst) ignore(run, past.reply.code, decision);
  return past.reply;
}

/** S4.3: a step that has not begun may still be asked about. Runs that refused one go on as they began. */
function decideEarly(run: ProcedureRun, decision: DecisionMessage): EarlyAnswer['reply'] | null {
  const early = judgeEarlyDecision(run.state, decision);
  if (early === null || !patched('decisions-before-steps')) return null;
  if (early.isHeld) run.journal.append({ type: 'decision_held', data: { decision } });
  else if (!early.reply.accepted) ignore(run, early.reply.code, decision);
  return early.reply;
}

function ignore(run: ProcedureRun, code: DecisionCode, decision: DecisionMessage | null): void {
  if (!isOver(run.state)) run.journal.append(ignoredAs(code, decision));
}

/** S7.4, S6.3: what is under way ends before its effect or is undone. A second cancel changes nothing. */
export function requestCancel(run: ProcedureRun, message: unknown): MessageReply {
  const { state } = run;
  if (isOver(state)) return reply(run, 'already_ended');
  if (state.cancelRequested) return reply(run, 'already_requested');
  const data = whoAndWhy(message);
  run.journal.append({ type: 'cancel_requested', data });
  if (state.failure === null) run.stop(data.by);
  return reply(run, 'requested');
}

function requestInterrupt(run: ProcedureRun, message: unknown): MessageReply {
  if (isOver(run.state)) return reply(run, 'already_ended');
  if (run.state.interrupted) return reply(run, 'already_requested');
  const data = whoAndWhy(message);
  run.journal.append({ type: 'interrupted', data });
  for (const step of openSteps(run)) step.journal.append({ type: 'interrupted', data });
  return reply(run, 'requested');
}

function requestResume(run: ProcedureRun, message: unknown): MessageReply {
  if (isOver(run.state)) return reply(run, 'already_ended');
  if (!run.state.interrupted) return reply(run, 'not_interrupted');
  const data = { by: nameOf(fieldsOf(message)['by']) };
  run.journal.append({ type: 'resumed', data });
  for (const step of run.steps.values())
    if (step.state.interrupted) step.journal.append({ type: 'resumed', data });
  run.items.tell();
  return reply(run, 'requested');
}

/** S3.5: the step the message names, else the one that needs a person. Where several do nobody knows which was meant. */
function requestStepResolve(run: ProcedureRun, message: unknown): MessageReply {
  if (isOver(run.state)) return reply(run, 'already_ended');
  if (isTaken(run.stepStates, message)) return reply(run, 'requested');
  const { step: named } = fieldsOf(message);
  const [waiting, another] = openSteps(run).filter(
    (step) => step.state.phase.kind === 'needs_attention' && (named === undefined || step.name === named),
  );
  // Runs that took the first of them go on as they began.
  const isUnclear = another !== undefined && patched('resolutions-name-steps');
  if (waiting === undefined || isUnclear) {
    const code = isUnclear ? 'step_not_named' : 'not_in_attention';
    run.journal.append({ type: 'message_ignored', data: { message: 'resolve', code } });
    return reply(run, code);
  }
  const { code } = requestResolve(waiting.journal, message);
  return reply(run, code);
}

const openSteps = (run: ProcedureRun): ProcedureStep[] =>
  [...run.steps.values()].filter((step) => !step.isFinished);

function reply(run: ProcedureRun, code: MessageReply['code']): MessageReply {
  return replyWith(code, run.view());
}
