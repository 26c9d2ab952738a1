/** What is told of a remote task means for ours (S8.4): a part of the reducer. Pure. */
import type { Change } from './answers.ts';
import type { EventData } from './event.ts';
import type { Failure } from './failure.ts';
import type { Json, JsonObject } from './json.ts';
import { EXECUTE, SETTLE, ready } from './phase.ts';
import type { RemoteEndKind, RemoteRef } from './remote.ts';
import type { Phase, TaskState } from './state.ts';

export type RemotePhase = Extract<Phase, { kind: 'remote' }>;

/** The request is under way there: in doubt until it is known how it ended. */
export function handedOver(attempt: number, remote: RemoteRef): Change {
  return {
    settlesSpent: 0,
    phase: {
      kind: 'remote',
      ...{ remote, attempt, seen: null, failures: 0, lastError: null },
      ...{ answers: {}, answered: [], cancelPassed: false },
    },
  };
}

/** Null: what is told is about another watch than the present one. */
function watched({ phase }: TaskState, attempt: number): RemotePhase | null {
  return phase.kind === 'remote' && phase.attempt === attempt ? phase : null;
}

export function afterRemoteTold(state: TaskState, data: EventData['remote_told'], at: number): Change {
  const phase = watched(state, data.attempt);
  if (phase === null) return {};
  const { report } = data;
  if (report.kind === 'ended') return ended(report.how, report.message, at);
  const { seen, failures, lastError, answered, refused = [] } = report;
  const answers = Object.fromEntries(
    Object.entries(phase.answers).filter(([key]) => !answered.includes(key) && !refused.includes(key)),
  );
  return { phase: { ...phase, seen, failures, lastError, answered, answers } };
}

/**
 * Completed: its result is taken over, also under an interrupt. Forgotten: found out about, never sent again. Failed or
 * cancelled: nothing of it is alive, so the operation is looked at as after any failed attempt.
 */
function ended(how: RemoteEndKind, message: string | undefined, at: number): Change {
  if (how === 'completed' || how === 'not_found') return { phase: ready(SETTLE, at) };
  const failure = endFailure(how, message);
  return {
    lastFailure: failure,
    phase: { kind: 'retry_due', step: EXECUTE, failure, spendsRetry: true },
  };
}

function endFailure(how: 'failed' | 'cancelled', message: string | undefined): Failure {
  const why = message === undefined ? '' : `: ${message}`;
  return { kind: 'unknown', code: 'outcome_unknown', message: `The server says that its task ${how}${why}` };
}

export function afterRemoteLost(state: TaskState, { attempt }: EventData['remote_lost']): Change {
  if (watched(state, attempt) === null) return {};
  const message = 'Nobody watches the remote task; the operation is looked at again.';
  const failure: Failure = { kind: 'unknown', code: 'outcome_unknown', message };
  return {
    lostInARow: state.lostInARow + 1,
    phase: { kind: 'retry_due', step: SETTLE, failure, spendsRetry: false },
  };
}

export function afterRemoteCancelPassed(
  state: TaskState,
  { attempt }: EventData['remote_cancel_passed'],
): Change {
  const phase = watched(state, attempt);
  return phase === null ? {} : { phase: { ...phase, cancelPassed: true } };
}

export function afterRemoteAnswered(
  state: TaskState,
  { attempt, answers }: EventData['remote_answered'],
): Change {
  const phase = watched(state, attempt);
  return phase === null ? {} : { phase: { ...phase, answers: { ...phase.answers, ...answers } } };
}

/** A remote task as people read it. */
export interface RemoteView {
  server: string;
  taskId: string;
  message: string | null;
  /** Control calls in a row that failed. */
  failures: number;
  /** What it asks for and nobody answered, by keys that are unique for the task's life. */
  requests: JsonObject;
}

/** Null where no other server is at work for this task. */
export function remoteView(state: Pick<TaskState, 'phase' | 'stepId'>): RemoteView | null {
  const { phase } = state;
  if (phase.kind !== 'remote') return null;
  const { remote, seen, failures } = phase;
  const requests = Object.fromEntries(openRequests(state).map(({ key, request }) => [key, request]));
  return { server: remote.server, taskId: remote.taskId, message: seen?.message ?? null, failures, requests };
}

/** What the remote asks for and nobody answered, by keys that are unique for the task's life (M2.3). */
export function openRequests({ phase, stepId }: Pick<TaskState, 'phase' | 'stepId'>): {
  key: string;
  remoteKey: string;
  request: Json;
}[] {
  if (phase.kind !== 'remote' || phase.seen?.kind !== 'input_required') return [];
  const { answers, answered, attempt } = phase;
  const prefix = `${stepId === undefined ? '' : `${stepId}/`}remote-${attempt}/`;
  return Object.entries(phase.seen.requests ?? {})
    .filter(([key]) => !Object.hasOwn(answers, key) && !answered.includes(key))
    .map(([remoteKey, request]) => ({ key: prefix + remoteKey, remoteKey, request }));
}
