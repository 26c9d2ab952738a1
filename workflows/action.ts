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
import type { TaskOutcome } from '../src/task/outcome.ts';
import { outcomeOf, statusOf } from '../src/task/view.ts';
import { refuseMisuse } from './argument.ts';
import type { ActionArgument } from './argument.ts';
import { enterInbox, leaveInbox } from './inbox.ts';
import { Journal } from './journal.ts';
import { answerDecisions, ignoreOf } from './decisions.ts';
import { answerGrants } from './leases.ts';
import { answerRemoteMessages, ignoreAnswerOf } from './remote-messages.ts';
import { answerMessages, requestCancel, watchCancellation } from './requests.ts';
import { NOTES_PENDING_MAX, TaskLoop, pendingNotes } from './task-loop.ts';
import { TaskRun } from './task-run.ts';

/** Returns what became of the task; throws on misuse only. */
export async function action(argument: ActionArgument): Promise<TaskOutcome> {
  refuseMisuse(argument);
  const journal = journalFor(argument);
  const run = new TaskRun(journal, argument.input, { bare: 'plan' in argument ? null : argument });
  answerMessages(journal);
  const own = { journal, run };
  answerDecisions({ taskOf: () => own, status: () => statusOf(journal.state), ignore: ignoreOf(journal) });
  answerGrants((step) => (step === undefined ? journal : null));
  answerRemoteMessages({
    journals: () => [journal],
    state: () => journal.state,
    ignore: ignoreAnswerOf(journal),
  });
  watchCancellation((message) => requestCancel(journal, message));
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
  const loop = new TaskLoop(journal, run, { showInInbox });
  if ((await loop.untilOver()) === 'rest') await startAfresh(argument, journal, run);
  return lastAnswers(journal, run);
}

/** A decision that is still being checked gets its answer, and the audit its refusal, before the workflow closes. */
async function lastAnswers(journal: Journal, run: TaskRun): Promise<TaskOutcome> {
  while (!allHandlersFinished() || pendingNotes(journal) > 0) {
    if (allHandlersFinished()) await run.flushNotes();
    else await condition(allHandlersFinished);
  }
  return outcomeOf(journal.state);
}

function showInInbox(journal: Journal, isWaiting: boolean): void {
  if (journal.isInInbox === isWaiting) return;
  if (isWaiting) enterInbox(journal.state);
  else leaveInbox();
  journal.isInInbox = isWaiting;
}

/** S3.6: nothing that was sent to this run is lost over the boundary. */
async function startAfresh(argument: ActionArgument, journal: Journal, run: TaskRun): Promise<void> {
  if (pendingNotes(journal) >= NOTES_PENDING_MAX) await run.flushNotes();
  await condition(allHandlersFinished);
  const { plan, ordinal } = journal.state;
  const start = plan === null ? argument : { v: 1 as const, plan, input: run.input, ordinal };
  await continueAsNew<typeof action>({ ...start, carried: journal.snapshot() });
}
