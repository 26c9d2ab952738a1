/**
 * An action whose request another server goes on with, and the workflow `remoteTask` that watches it: each path is recorded
 * as the task's history and, under the name of its watch, as the watch's own.
 */
import type { WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { openRequests } from '../../src/task/remote-state.ts';
import type { RemoteActivities } from '../../src/task/activity-api.ts';
import type { RemoteCallAnswer, RemoteSeen } from '../../src/task/remote.ts';
import { committed, released } from '../support/outcomes.ts';
import type { ActivityScript } from '../support/scripted-activities.ts';
import { planned, stateWhen } from '../support/workflow-stage.ts';
import type { ActionHandle, WorkflowStage } from '../support/workflow-stage.ts';
import { CLOSED, SOON } from './path-kinds.ts';
import type { Path } from './path-kinds.ts';

type Facts = Extract<RemoteCallAnswer, { kind: 'facts' }>;

/** The ledger's facts about one remote task, as its control calls change them. */
class ScriptedRemote implements RemoteActivities {
  readonly #facts: Facts = {
    ...{ kind: 'facts', isEnded: false, seen: null, failures: 0, lastError: null },
    ...{ answered: [], dueInMs: 50, isCancelSent: false },
  };
  #seen: RemoteSeen = { kind: 'working' };
  /** Of each call that fails: the next of its kind does not. */
  readonly #failing: Set<'poll' | 'cancel'>;

  constructor(failing: readonly ('poll' | 'cancel')[] = []) {
    this.#failing = new Set(failing);
  }

  set(seen: RemoteSeen): void {
    this.#seen = seen;
  }

  pollRemoteTask(): Promise<RemoteCallAnswer> {
    if (this.#failing.delete('poll')) throw ApplicationFailure.nonRetryable('The ledger is away.');
    const isEnded = ['completed', 'cancelled'].includes(this.#seen.kind);
    Object.assign(this.#facts, { isEnded, seen: this.#seen, failures: 0, lastError: null });
    return this.#answer();
  }

  cancelRemoteTask(): Promise<RemoteCallAnswer> {
    if (this.#failing.delete('cancel'))
      Object.assign(this.#facts, { failures: 1, lastError: 'the server did not answer' });
    else Object.assign(this.#facts, { failures: 0, lastError: null, isCancelSent: true });
    if (this.#facts.isCancelSent) this.#seen = { kind: 'cancelled' };
    return this.#answer();
  }

  answerRemoteTask({ responses }: { responses: object }): Promise<RemoteCallAnswer> {
    this.#facts.answered.push(...Object.keys(responses));
    this.#seen = { kind: 'completed' };
    return this.#answer();
  }

  #answer(): Promise<RemoteCallAnswer> {
    return Promise.resolve({ ...this.#facts, answered: [...this.#facts.answered] });
  }
}

/** One operation a path: the stage finds the remote task by it. */
function remotely(
  name: string,
  script: () => ActivityScript,
  remote: () => ScriptedRemote,
  during: (handle: ActionHandle, remote: ScriptedRemote) => Promise<unknown>,
): Path {
  return async (stage) => {
    const operationId = `op_${name}`;
    const answering = remote();
    stage.remotes.set(operationId, answering);
    const handedOver = { kind: 'remote' as const, remote: refOf(name) };
    const { attempt = [], ...rest } = script();
    const full = { ...rest, attempt: [handedOver, ...attempt] };
    const { handle } = await stage.play(planned({ ...SOON, operationId }), full, async (played) => {
      await stateWhen(played, ({ phase }) => phase.kind === 'remote' && phase.seen?.kind === 'working');
      await during(played, answering);
    });
    await watchOf(stage, name, handle).result();
    return handle;
  };
}

const refOf = (name: string) => ({
  ...{ server: 'depot', tool: 'archive', taskId: `depot-${name}`, pollIntervalMs: 1_000, ttlMs: null },
});

async function answersShelf(handle: ActionHandle, remote: ScriptedRemote): Promise<void> {
  remote.set({
    kind: 'input_required',
    requests: { shelf: { method: 'elicitation/create', params: { message: 'Which shelf?' } } },
  });
  const state = await stateWhen(handle, (now) => openRequests(now).length === 1);
  const [open] = openRequests(state);
  const answers = { [open?.key ?? '']: { action: 'accept', content: { shelf: 'B4' } }, other: 1 };
  await handle.executeUpdate('answerTask', { args: [{ by: 'ann', answers }] });
}

const cancels = (handle: ActionHandle) => handle.signal('cancel', { by: 'ann' });
const CANCELLED = (): ActivityScript => ({ attempt: [released], close: [CLOSED] });

export const REMOTE_PATHS: Readonly<Record<string, Path>> = {
  'remote-completed': remotely(
    'remote-completed',
    () => ({ attempt: [committed] }),
    () => new ScriptedRemote(['poll']),
    (_handle, remote) => Promise.resolve(remote.set({ kind: 'completed' })),
  ),
  'remote-cancelled': remotely('remote-cancelled', CANCELLED, () => new ScriptedRemote(), cancels),
  'remote-cancel-repeated': remotely(
    'remote-cancel-repeated',
    CANCELLED,
    () => new ScriptedRemote(['cancel']),
    cancels,
  ),
  'remote-answered': remotely(
    'remote-answered',
    () => ({ attempt: [committed] }),
    () => new ScriptedRemote(),
    answersShelf,
  ),
};

/** The history of a path's workflow `remoteTask`. */
export const watchNameOf = (path: string): string => `${path}-watch`;
export const REMOTE_WATCHES = Object.keys(REMOTE_PATHS).map(watchNameOf);

export const watchOf = (stage: WorkflowStage, path: string, task: ActionHandle): WorkflowHandle =>
  stage.client.workflow.getHandle(`${task.workflowId}:remote:op_${path}:1`);
