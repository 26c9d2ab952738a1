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
 */
import {
  ApplicationFailure,
  CancellationScope,
  allHandlersFinished,
  condition,
  continueAsNew,
  isCancellation,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { SearchAttributeType, defineSearchAttributeKey } from '@temporalio/common';
import type { BareStart } from '../src/task/activity-api.ts';
import { decide } from '../src/task/decide.ts';
import type { Resolution } from '../src/task/event.ts';
import type { Json } from '../src/task/json.ts';
import type { TaskOutcome } from '../src/task/outcome.ts';
import type { Plan } from '../src/task/plan.ts';
import { outcomeOf, statusOf } from '../src/task/view.ts';
import { Journal } from './journal.ts';
import type { JournalSnapshot } from './journal.ts';
import {
  SEARCH_ATTRIBUTES,
  cancelSignal,
  cancelUpdate,
  eventsQuery,
  resolveSignal,
  resolveUpdate,
  taskQuery,
} from './messages.ts';
import type { CancelMessage, MessageReply } from './messages.ts';
import { TaskRun } from './task-run.ts';

/** The workflow's one argument. `carried` is set by its own continue-as-new alone. */
export type ActionArgument =
  { v: 1; plan: Plan; input: Json; ordinal: number; carried?: JournalSnapshot } | BareStart;

/** Above this the run continues as new; far below the engine's limits of 51,200 events and 50 MB. */
const HISTORY_EVENTS_MAXIMUM = 8_000;

/** Returns what became of the task; throws on misuse only. */
export async function action(argument: ActionArgument): Promise<TaskOutcome> {
  refuseMisuse(argument);
  const journal = journalFor(argument);
  answerMessages(journal);
  watchCancellation(journal);
  return CancellationScope.nonCancellable(() => live(argument, journal));
}

function refuseMisuse(argument: ActionArgument): void {
  if (workflowInfo().retryPolicy !== undefined) {
    throw ApplicationFailure.nonRetryable(
      'workflow action refuses a retry policy on the workflow: retries belong to the task (start it without `retry`)',
      'invalid_arguments',
    );
  }
  const isPlanned = 'plan' in argument && typeof argument.ordinal === 'number';
  const isBare =
    'action' in argument && typeof argument.action === 'string' && isPrincipal(argument.principal);
  if (argument.v !== 1 || (!isPlanned && !isBare)) {
    throw ApplicationFailure.nonRetryable(
      'workflow action takes {v: 1, plan, input, ordinal} or {v: 1, action, input, key?, principal: {tenant, subject, roles}}',
      'invalid_arguments',
    );
  }
}

function isPrincipal(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { tenant, subject, roles } = value as Record<string, unknown>;
  return typeof tenant === 'string' && typeof subject === 'string' && Array.isArray(roles);
}

function journalFor(argument: ActionArgument): Journal {
  if ('plan' in argument && argument.carried) return new Journal(argument.carried);
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

function answerMessages(journal: Journal): void {
  setHandler(taskQuery, () => journal.state);
  setHandler(eventsQuery, () => journal.events);
  setHandler(cancelSignal, (message) => void requestCancel(journal, message));
  setHandler(cancelUpdate, (message) => requestCancel(journal, message));
  setHandler(resolveSignal, (resolution) => void requestResolve(journal, resolution));
  setHandler(resolveUpdate, (resolution) => requestResolve(journal, resolution));
}

/** S7.4: intent is recorded and acknowledged as such; a second or a late one changes nothing. */
function requestCancel(journal: Journal, message: CancelMessage | undefined): MessageReply {
  const { state } = journal;
  if (state.phase.kind === 'ended' || state.phase.kind === 'finished') return reply(journal, 'already_ended');
  if (state.cancelRequested) return reply(journal, 'already_requested');
  const reason = typeof message?.reason === 'string' ? message.reason.slice(0, 1_000) : undefined;
  const by = typeof message?.by === 'string' ? message.by.slice(0, 255) : 'unknown';
  journal.append({ type: 'cancel_requested', data: { by, ...(reason !== undefined && { reason }) } });
  return reply(journal, 'requested');
}

/** S3.5: only a task in `needs_attention` takes a resolution; anything else is journaled as ignored. */
function requestResolve(journal: Journal, resolution: Resolution): MessageReply {
  const isValid =
    typeof resolution === 'object' &&
    resolution !== null &&
    ['applied', 'not_applied', 'abandoned'].includes(resolution.as);
  if (!isValid || journal.state.phase.kind !== 'needs_attention') {
    const code = isValid ? 'not_in_attention' : 'invalid_resolution';
    if (journal.state.phase.kind !== 'ended')
      journal.append({ type: 'message_ignored', data: { message: 'resolve', code } });
    return reply(journal, 'not_in_attention');
  }
  journal.append({ type: 'resolve_requested', data: { resolution } });
  return reply(journal, 'requested');
}

function reply(journal: Journal, code: MessageReply['code']): MessageReply {
  return {
    accepted: code === 'requested' || code === 'already_requested',
    code,
    status: statusOf(journal.state),
  };
}

function watchCancellation(journal: Journal): void {
  CancellationScope.current().cancelRequested.catch((error: unknown) => {
    if (!isCancellation(error)) throw error;
    requestCancel(journal, { by: 'temporal' });
  });
}

async function live(argument: ActionArgument, journal: Journal): Promise<TaskOutcome> {
  const run = new TaskRun(journal, argument.input, 'plan' in argument ? null : argument);
  let isWaitShown = false;
  for (;;) {
    const verdict = decide(journal.state, Date.now());
    if (verdict.do === 'nothing') return outcomeOf(journal.state);
    const isPersonAwaited = verdict.do === 'wait' && verdict.person;
    if (isPersonAwaited !== isWaitShown) {
      if (isPersonAwaited) await run.flushNotes();
      showInInbox(journal, isPersonAwaited);
      isWaitShown = isPersonAwaited;
    }
    if (verdict.do === 'wait') await waitUntil(journal, verdict.until);
    else await run.carryOut(verdict);
    if (workflowInfo().historyLength > HISTORY_EVENTS_MAXIMUM) await startAfresh(journal, run);
  }
}

/** Until the clock reads `until`, or a message changed the state. */
async function waitUntil(journal: Journal, until: number | null): Promise<void> {
  const { seq } = journal.state;
  const changed = (): boolean => journal.state.seq !== seq;
  if (until === null) await condition(changed);
  else await condition(changed, Math.max(1, until - Date.now()));
}

/** The inbox is the engine's visibility, touched only when a human wait begins or ends (architecture.md, idea 6). */
function showInInbox(journal: Journal, isWaiting: boolean): void {
  upsertSearchAttributes([
    {
      key: defineSearchAttributeKey(SEARCH_ATTRIBUTES.status, SearchAttributeType.KEYWORD),
      value: isWaiting ? statusOf(journal.state) : null,
    },
    {
      key: defineSearchAttributeKey(SEARCH_ATTRIBUTES.waitingSince, SearchAttributeType.DATETIME),
      value: isWaiting ? new Date(Date.now()) : null,
    },
  ]);
}

/** S3.6: nothing that was sent to this run is lost over the boundary. */
async function startAfresh(journal: Journal, run: TaskRun): Promise<void> {
  const { plan, ordinal, phase } = journal.state;
  if (plan === null || phase.kind === 'ended' || phase.kind === 'working') return;
  await condition(allHandlersFinished);
  await continueAsNew<typeof action>({ v: 1, plan, input: run.input, ordinal, carried: journal.snapshot() });
}
