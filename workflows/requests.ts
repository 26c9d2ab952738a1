/**
 * How a task answers messages: signals, updates, queries and the engine's own cancellation, which means the same as
 * `cancel` (S7.5). Handlers only journal; what follows is the decider's to say.
 */
import { CancellationScope, isCancellation, patched, setHandler } from '@temporalio/workflow';
import type { Resolution } from '../src/task/event.ts';
import type { StoredResult } from '../src/task/outcome.ts';
import { isOver } from '../src/task/phase.ts';
import type { JournalEntry } from '../src/task/procedure-event.ts';
import type { TaskState } from '../src/task/state.ts';
import { isKeepable, keptText } from '../src/task/text.ts';
import { statusOf } from '../src/task/view.ts';
import type { Journal } from './journal.ts';
import {
  cancelSignal,
  cancelUpdate,
  eventsQuery,
  interruptSignal,
  interruptUpdate,
  resolveSignal,
  resolveUpdate,
  resumeSignal,
  resumeUpdate,
  taskQuery,
} from './messages.ts';
import type { MessageReply } from './messages.ts';

const NAME_CHARS_MAX = 255;
const TEXT_CHARS_MAX = 1_000;

/** What the messages are about: the one task of workflow `action`, or a procedure. */
export interface RequestRoute {
  state(): TaskState;
  events(): JournalEntry[];
  cancel(message: unknown): MessageReply;
  resolve(message: unknown): MessageReply;
  interrupt(message: unknown): MessageReply;
  resume(message: unknown): MessageReply;
}

export function answerRequests(route: RequestRoute): void {
  setHandler(taskQuery, () => route.state());
  setHandler(eventsQuery, () => route.events());
  setHandler(cancelSignal, (message) => void route.cancel(message));
  setHandler(cancelUpdate, (message) => route.cancel(message));
  setHandler(resolveSignal, (message) => void route.resolve(message));
  setHandler(resolveUpdate, (message) => route.resolve(message));
  setHandler(interruptSignal, (message) => void route.interrupt(message));
  setHandler(interruptUpdate, (message) => route.interrupt(message));
  setHandler(resumeSignal, (message) => void route.resume(message));
  setHandler(resumeUpdate, (message) => route.resume(message));
}

export function answerMessages(journal: Journal): void {
  answerRequests({
    state: () => journal.state,
    events: () => journal.events,
    cancel: (message) => requestCancel(journal, message),
    resolve: (message) => requestResolve(journal, message),
    interrupt: (message) => requestInterrupt(journal, message),
    resume: (message) => requestResume(journal, message),
  });
}

/** The engine's own cancellation, as a message from it. */
export function watchCancellation(cancel: (message: { by: string }) => unknown): void {
  CancellationScope.current().cancelRequested.catch((error: unknown) => {
    if (!isCancellation(error)) throw error;
    cancel({ by: 'temporal' });
  });
}

/** S7.4: intent is recorded and acknowledged as such; a second or a late one changes nothing. */
export function requestCancel(journal: Journal, message: unknown): MessageReply {
  const { state } = journal;
  if (isOver(state)) return reply(journal, 'already_ended');
  if (state.cancelRequested) return reply(journal, 'already_requested');
  journal.append({ type: 'cancel_requested', data: whoAndWhy(message) });
  return reply(journal, 'requested');
}

/** S7.1: an overlay over whatever the task is doing; a second one changes nothing. */
function requestInterrupt(journal: Journal, message: unknown): MessageReply {
  const { state } = journal;
  if (isOver(state)) return reply(journal, 'already_ended');
  if (state.interrupted) return reply(journal, 'already_requested');
  journal.append({ type: 'interrupted', data: whoAndWhy(message) });
  return reply(journal, 'requested');
}

/** S7.1: back to what is underneath. */
function requestResume(journal: Journal, message: unknown): MessageReply {
  const { state } = journal;
  if (isOver(state)) return reply(journal, 'already_ended');
  if (!state.interrupted) return reply(journal, 'not_interrupted');
  journal.append({ type: 'resumed', data: { by: nameOf(fieldsOf(message)['by']) } });
  return reply(journal, 'requested');
}

/** S3.5: only a task in `needs_attention` takes a resolution; anything else is journaled as ignored. */
export function requestResolve(journal: Journal, message: unknown): MessageReply {
  const { phase } = journal.state;
  if (isOver(journal.state)) return reply(journal, 'already_ended');
  if (isTaken([journal.state], message)) return reply(journal, 'requested');
  const resolution = resolutionOf(message);
  // An approval that nobody gave can't have been applied.
  const isSense = !(
    phase.kind === 'needs_attention' &&
    phase.about === 'approval' &&
    resolution?.as === 'applied'
  );
  if (resolution !== null && isSense && phase.kind === 'needs_attention') {
    // Runs that did not count it go on as they began.
    const waitedMs = Math.max(0, Date.now() - phase.since);
    const isCounted = patched('attention-off-the-clock');
    const id = idOf(message);
    const more = { ...(isCounted && { waitedMs }), ...(id !== undefined && { id }) };
    journal.append({ type: 'resolve_requested', data: { resolution, ...more } });
    return reply(journal, 'requested');
  }
  const code = resolution === null || !isSense ? 'invalid_resolution' : 'not_in_attention';
  journal.append({ type: 'message_ignored', data: { message: 'resolve', code } });
  return reply(journal, code);
}

/** An update whose answer was lost and the signal sent instead are one. Runs that took both go on as they began. */
export function isTaken(states: readonly TaskState[], message: unknown): boolean {
  const id = idOf(message);
  if (id === undefined || !states.some(({ resolutionIds = [] }) => resolutionIds.includes(id))) return false;
  return patched('resolutions-once');
}

function idOf(message: unknown): string | undefined {
  const { id } = fieldsOf(message);
  return typeof id === 'string' && id.length <= NAME_CHARS_MAX ? id : undefined;
}

/** Of a message that may give a name and a reason. */
export function whoAndWhy(message: unknown): { by: string; reason?: string } {
  const { by, reason } = fieldsOf(message);
  return {
    by: nameOf(by),
    ...(typeof reason === 'string' && { reason: keptText(reason, TEXT_CHARS_MAX) }),
  };
}

/** The message cut down to what a resolution is; null when it is none. Anyone may signal anything. */
function resolutionOf(message: unknown): Resolution | null {
  const { as, by, note, result } = fieldsOf(message);
  const who = {
    by: nameOf(by),
    ...(typeof note === 'string' && { note: keptText(note, TEXT_CHARS_MAX) }),
  };
  if (as === 'not_applied' || as === 'abandoned') return { as, ...who };
  if (as !== 'applied') return null;
  if (result === undefined || result === null) return { as, ...who };
  return isStoredResult(result) ? { as, ...who, result } : null;
}

function isStoredResult(value: unknown): value is StoredResult {
  const { kind, value: inline, sha256, bytes } = fieldsOf(value);
  if (kind === 'inline') return inline !== undefined && isKeepable(inline);
  return (
    (kind === 'reference' || kind === 'dropped') && typeof sha256 === 'string' && typeof bytes === 'number'
  );
}

export function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

export function nameOf(value: unknown): string {
  return typeof value === 'string' && value !== '' ? keptText(value, NAME_CHARS_MAX) : 'unknown';
}

function reply(journal: Journal, code: MessageReply['code']): MessageReply {
  return replyWith(code, journal.state);
}

export function replyWith(code: MessageReply['code'], state: TaskState): MessageReply {
  return {
    accepted: code === 'requested' || code === 'already_requested',
    code,
    status: statusOf(state),
  };
}
