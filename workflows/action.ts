/**
 * Workflow `action`: one durable run of one action (a task). Started with a frozen plan by HoldfastClient, or bare by
 * any Temporal client (interfaces.md "Workflow action").
 *
 * Owns the journal. Never looks at a contract, a schema or the world: it feeds messages, timers and outcomes to the
 * pure core (src/task) and carries out its verdicts.
 * Invariants:
 * 1. What a verdict announces is in the journal before its activity is scheduled (S3.1).
 * 2. After every await the reduced state is asked again; no outcome is acted on from a local variable (S3.2).
 * 3. The engine's cancellation means the same as signal `cancel` (S7.5): everything runs where it can't be cut off.
 * 4. Every wait, retry and refused message is counted against the history's bounds (S3.6).
 */
import {
  CancellationScope,
  allHandlersFinished,
  condition,
  continueAsNew,
  workflowInfo,
} from '@temporalio/workflow';
import type { BareStart } from '../src/task/activity-api.ts';
import { decide } from '../src/task/decide.ts';
import type { Verdict } from '../src/task/decide.ts';
import type { TaskOutcome } from '../src/task/outcome.ts';
import { outcomeOf } from '../src/task/view.ts';
import { refuseMisuse } from './argument.ts';
import type { ActionArgument } from './argument.ts';
import { enterInbox, leaveInbox } from './inbox.ts';
import { Journal } from './journal.ts';
import { answerDecisions } from './decisions.ts';
import { answerMessages, watchCancellation } from './requests.ts';
import { TaskRun } from './task-run.ts';

/** Above either the run continues as new; far below the engine's limits of 51,200 events and 50 MB. */
const HISTORY_EVENTS_MAX = 4_000;
const HISTORY_BYTES_MAX = 8 * 1024 * 1024;
/** So many notes that no ledger transaction carried yet are handed to the audit at once (S10.3). */
const NOTES_PENDING_MAX = 100;

/** Returns what became of the task; throws on misuse only. */
export async function action(argument: ActionArgument): Promise<TaskOutcome> {
  refuseMisuse(argument);
  const journal = journalFor(argument);
  const run = new TaskRun(journal, argument.input, 'plan' in argument ? null : argument);
  answerMessages(journal);
  answerDecisions(journal, run);
  watchCancellation(journal);
  return CancellationScope.nonCancellable(() => live(argument, journal, run));
}

function journalFor(argument: ActionArgument): Journal {
  if (argument.carried) return new Journal(argument.carried);
  const planned = 'plan' in argument ? argument : null;
  return new Journal({
    type: 'task_started',
    data: {
      taskId: workflowInfo().workflowId,
      action: planned?.plan.action ?? (argument as BareStart).action,
      ordinal: planned?.ordinal ?? 1,
      plan: planned?.plan ?? null,
    },
  });
}

async function live(argument: ActionArgument, journal: Journal, run: TaskRun): Promise<TaskOutcome> {
  // A cancel that came with the start is heard before the first step begins.
  await Promise.resolve();
  for (;;) {
    if (isHistoryLong()) await startAfresh(argument, journal, run);
    const verdict = decide(journal.state, Date.now());
    if (verdict.do === 'nothing') return lastAnswers(journal, run);
    const step = mustFlush(verdict, journal) ? run.flushNotes() : carryOut(verdict, journal, run);
    if (step !== undefined) await step;
  }
}

/** A decision that is still being checked gets its answer, and the audit its refusal, before the workflow closes. */
async function lastAnswers(journal: Journal, run: TaskRun): Promise<TaskOutcome> {
  while (!allHandlersFinished() || pendingNotes(journal) > 0) {
    if (allHandlersFinished()) await run.flushNotes();
    else await condition(allHandlersFinished);
  }
  return outcomeOf(journal.state);
}

/** Nothing to wait for: undefined. */
function carryOut(
  verdict: Exclude<Verdict, { do: 'nothing' }>,
  journal: Journal,
  run: TaskRun,
): Promise<void> | undefined {
  if (!isAside(verdict)) showInInbox(journal, isPersonAwaited(verdict));
  return verdict.do === 'wait' ? waitUntil(journal, verdict.until) : run.carryOut(verdict);
}

function isPersonAwaited(verdict: Verdict): boolean {
  return verdict.do === 'wait' && verdict.person;
}

/** What is done while the same approval stays open: a reminder is no reason to leave the inbox and to enter it again. */
function isAside(verdict: Verdict): boolean {
  if (verdict.do === 'alert' || verdict.do === 'judge_held') return true;
  if (verdict.do !== 'append' || verdict.event.type !== 'approval_expired') return false;
  return ['remind', 'escalate'].includes(verdict.event.data.outcome);
}

/** S10.3: before a task starts to wait for a person, before it ends, and when much has come together. */
function mustFlush(verdict: Verdict, journal: Journal): boolean {
  const pending = pendingNotes(journal);
  if (pending === 0) return false;
  return startsToWait(verdict, journal) || verdict.do === 'end' || pending >= NOTES_PENDING_MAX;
}

/** Each decision about an open approval, and an interrupt, start the wait anew: for the next approver, or to be resumed. */
function startsToWait(verdict: Verdict, { state, isInInbox }: Journal): boolean {
  if (verdict.do !== 'wait') return false;
  if (state.interrupted || state.phase.kind === 'awaiting_approval') return true;
  return verdict.person && !isInInbox;
}

function pendingNotes({ state, pendingCount }: Journal): number {
  return state.plan?.recorded === true ? pendingCount : 0;
}

function showInInbox(journal: Journal, isWaiting: boolean): void {
  if (journal.isInInbox === isWaiting) return;
  if (isWaiting) enterInbox(journal.state);
  else leaveInbox();
  journal.isInInbox = isWaiting;
}

/** Until the clock reads `until`, a message changed the state, or messages have filled the history. */
async function waitUntil(journal: Journal, until: number | null): Promise<void> {
  const { seq } = journal.state;
  const isOver = (): boolean => journal.state.seq !== seq || isHistoryLong();
  if (until === null) await condition(isOver);
  else await condition(isOver, Math.max(1, until - Date.now()));
}

function isHistoryLong(): boolean {
  const { historyLength, historySize, continueAsNewSuggested } = workflowInfo();
  return continueAsNewSuggested || historyLength > HISTORY_EVENTS_MAX || historySize > HISTORY_BYTES_MAX;
}

/** S3.6: nothing that was sent to this run is lost over the boundary. */
async function startAfresh(argument: ActionArgument, journal: Journal, run: TaskRun): Promise<void> {
  if (pendingNotes(journal) >= NOTES_PENDING_MAX) await run.flushNotes();
  await condition(allHandlersFinished);
  const { plan, ordinal } = journal.state;
  const start = plan === null ? argument : { v: 1 as const, plan, input: run.input, ordinal };
  await continueAsNew<typeof action>({ ...start, carried: journal.snapshot() });
}
