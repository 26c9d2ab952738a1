/**
 * How a task answers messages: signals, updates, queries and the engine's own cancellation, which means the same as
 * `cancel` (S7.5). Handlers only journal; what follows is the decider's to say.
 */
import { CancellationScope, isCancellation, setHandler } from '@temporalio/workflow';
import type { Resolution } from '../src/task/event.ts';
import type { StoredResult } from '../src/task/outcome.ts';
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

export function answerMessages(journal: Journal): void {
  setHandler(taskQuery, () => journal.state);
  setHandler(eventsQuery, () => journal.events);
  setHandler(cancelSignal, (message) => void requestCancel(journal, message));
  setHandler(cancelUpdate, (message) => requestCancel(journal, message));
  setHandler(resolveSignal, (resolution) => void requestResolve(journal, resolution));
  setHandler(resolveUpdate, (resolution) => requestResolve(journal, resolution));
  setHandler(interruptSignal, (message) => void requestInterrupt(journal, message));
  setHandler(interruptUpdate, (message) => requestInterrupt(journal, message));
  setHandler(resumeSignal, (message) => void requestResume(journal, message));
  setHandler(resumeUpdate, (message) => requestResume(journal, message));
}

export function watchCancellation(journal: Journal): void {
  CancellationScope.current().cancelRequested.catch((error: unknown) => {
    if (!isCancellation(error)) throw error;
    requestCancel(journal, { by: 'temporal' });
  });
}

/** S7.4: intent is recorded and acknowledged as such; a second or a late one changes nothing. */
function requestCancel(journal: Journal, message: unknown): MessageReply {
  const { state } = journal;
  if (state.phase.kind === 'ended' || state.phase.kind === 'finished') return reply(journal, 'already_ended');
  if (state.cancelRequested) return reply(journal, 'already_requested');
  journal.append({ type: 'cancel_requested', data: whoAndWhy(message) });
  return reply(journal, 'requested');
}

/** S7.1: an overlay over whatever the task is doing; a second one changes nothing. */
function requestInterrupt(journal: Journal, message: unknown): MessageReply {
  const { state } = journal;
  if (state.phase.kind === 'ended' || state.phase.kind === 'finished') return reply(journal, 'already_ended');
  if (state.interrupted) return reply(journal, 'already_requested');
  journal.append({ type: 'interrupted', data: whoAndWhy(message) });
  return reply(journal, 'requested');
}

/** S7.1: back to what is underneath. */
function requestResume(journal: Journal, message: unknown): MessageReply {
  const { state } = journal;
  if (state.phase.kind === 'ended' || state.phase.kind === 'finished') return reply(journal, 'already_ended');
  if (!state.interrupted) return reply(journal, 'not_interrupted');
  journal.append({ type: 'resumed', data: { by: nameOf(fieldsOf(message)['by']) } });
  return reply(journal, 'requested');
}

/** S3.5: only a task in `needs_attention` takes a resolution; anything else is journaled as ignored. */
export function requestResolve(journal: Journal, message: unknown): MessageReply {
  const { phase } = journal.state;
  if (phase.kind === 'ended' || phase.kind === 'finished') return reply(journal, 'already_ended');
  const resolution = resolutionOf(message);
  // An approval that nobody gave can't have been applied.
  const isSense = !(
    phase.kind === 'needs_attention' &&
    phase.about === 'approval' &&
    resolution?.as === 'applied'
  );
  if (resolution !== null && isSense && phase.kind === 'needs_attention') {
    journal.append({ type: 'resolve_requested', data: { resolution } });
    return reply(journal, 'requested');
  }
  const code = resolution === null || !isSense ? 'invalid_resolution' : 'not_in_attention';
  journal.append({ type: 'message_ignored', data: { message: 'resolve', code } });
  return reply(journal, code);
}

/** Of a message that may give a name and a reason. */
export function whoAndWhy(message: unknown): { by: string; reason?: string } {
  const { by, reason } = fieldsOf(message);
  return {
    by: nameOf(by),
    ...(typeof reason === 'string' && { reason: reason.slice(0, TEXT_CHARS_MAX) }),
  };
}

/** The message cut down to what a resolution is; null when it is none. Anyone may signal anything. */
function resolutionOf(message: unknown): Resolution | null {
  const { as, by, note, result } = fieldsOf(message);
  const who = {
    by: nameOf(by),
    ...(typeof note === 'string' && { note: note.slice(0, TEXT_CHARS_MAX) }),
  };
  if (as === 'not_applied' || as === 'abandoned') return { as, ...who };
  if (as !== 'applied') return null;
  if (result === undefined || result === null) return { as, ...who };
  return isStoredResult(result) ? { as, ...who, result } : null;
}

function isStoredResult(value: unknown): value is StoredResult {
  const { kind, value: inline, sha256, bytes } = fieldsOf(value);
  if (kind === 'inline') return inline !== undefined;
  return (
    (kind === 'reference' || kind === 'dropped') && typeof sha256 === 'string' && typeof bytes === 'number'
  );
}

export function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

export function nameOf(value: unknown): string {
  return typeof value === 'string' && value !== '' ? value.slice(0, NAME_CHARS_MAX) : 'unknown';
}

function reply(journal: Journal, code: MessageReply['code']): MessageReply {
  return {
    accepted: code === 'requested' || code === 'already_requested',
    code,
    status: statusOf(journal.state),
  };
}
