/** Workflow `remoteTask` and its task (S8.4) where control calls are lost or refused, by scripted answers on a real engine. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RemoteActivities } from '../../src/task/activity-api.ts';
import type { RemoteCallAnswer } from '../../src/task/remote.ts';
import { committed } from '../support/outcomes.ts';
import { WorkflowStage, eventsOf, planned, stateWhen } from '../support/workflow-stage.ts';
import type { ActionHandle } from '../support/workflow-stage.ts';

const WAIT = { timeout: 30_000, interval: 50 };
const LONG_MS = 600_000;
type Facts = Extract<RemoteCallAnswer, { kind: 'facts' }>;
type Answer = () => RemoteCallAnswer;

const facts =
  (more: Partial<Facts> = {}): Answer =>
  () => ({
    ...{ kind: 'facts', isEnded: false, seen: { kind: 'working' }, failures: 0, lastError: null },
    ...{ answered: [], dueInMs: 20, isCancelSent: false },
    ...more,
  });
const lost: Answer = () => {
  throw new Error('its worker died');
};
const wait =
  (why: Extract<RemoteCallAnswer, { kind: 'wait' }>['why'], waitMs = 20): Answer =>
  () => ({ kind: 'wait', why, waitMs });
const ended = facts({ isEnded: true, seen: { kind: 'completed' } });

/** The newest answer of each kind is given again. */
class Scripted implements RemoteActivities {
  readonly calls: string[] = [];
  poll: Answer[] = [facts()];
  cancel: Answer[] = [facts({ isCancelSent: true })];
  answer: Answer[] = [facts()];

  pollRemoteTask = () => this.#give('poll', this.poll);
  cancelRemoteTask = () => this.#give('cancel', this.cancel);
  answerRemoteTask = () => this.#give('answer', this.answer);

  async #give(call: string, answers: Answer[]): Promise<RemoteCallAnswer> {
    this.calls.push(call);
    const next = answers.length > 1 ? answers.shift() : answers[0];
    return Promise.resolve((next as Answer)());
  }
}

let stage: WorkflowStage;
beforeAll(async () => {
  stage = await WorkflowStage.open('local');
});
afterAll(() => stage.close());

let operations = 0;
async function watched(remote: Scripted, on = stage): Promise<ActionHandle> {
  const operationId = `op_watch_${(operations += 1)}`;
  on.remotes.set(operationId, remote);
  const ref = { server: 'depot', tool: 'archive', taskId: operationId, pollIntervalMs: 1_000, ttlMs: null };
  const { handle } = await on.start(planned({ operationId }), {
    attempt: [{ kind: 'remote', remote: ref }, committed],
  });
  await stateWhen(handle, ({ phase }) => phase.kind === 'remote' && phase.seen?.kind === 'working');
  return handle;
}

const count = (remote: Scripted, call: string) => () => remote.calls.filter((each) => each === call).length;

test('[S7.4] [S8.4] a cancel that failed is tried again though the poll after it was written unheard', async () => {
  const remote = new Scripted();
  remote.cancel = [facts({ failures: 1, lastError: 'no route' }), facts({ isCancelSent: true })];
  const handle = await watched(remote);
  // From here on the ledger wants the cancel first, whatever the watch believes.
  remote.poll = [wait('superseded')];
  await handle.signal('cancel', { by: 'ann' });
  await expect.poll(count(remote, 'cancel'), WAIT).toBe(2);
  remote.poll = [ended];
  await handle.result();
});

test('[S7.4] [S8.4] a cancel is heard while another worker has the call, after one that was lost', async () => {
  const remote = new Scripted();
  const handle = await watched(remote);
  remote.poll = [lost, wait('busy', LONG_MS)];
  await expect.poll(() => remote.poll.length, WAIT).toBe(1);
  await expect.poll(() => remote.calls.at(-1), WAIT).toBe('poll');
  const polled = count(remote, 'poll')();
  await expect.poll(count(remote, 'poll'), WAIT).toBeGreaterThan(polled);
  await handle.signal('cancel', { by: 'ann' });
  await expect.poll(count(remote, 'cancel'), WAIT).toBe(1);
  remote.poll = [ended];
  await handle.result();
});

test('[S8.4] the watch is looked after although the task itself hears of something again and again', async () => {
  const skipping = await WorkflowStage.open('time-skipping');
  try {
    const remote = new Scripted();
    remote.poll = [facts({ dueInMs: LONG_MS * 10 })];
    const handle = await watched(remote, skipping);
    for (let times = 0; times < 3; times += 1) {
      await skipping.server.env.sleep('4m');
      await handle.signal(times % 2 === 0 ? 'interrupt' : 'resume', { by: 'ann' });
      await stateWhen(handle, ({ interrupted }) => interrupted === (times % 2 === 0));
    }
    const attends = async () =>
      (await eventsOf(handle)).filter(
        ({ signalExternalWorkflowExecutionInitiatedEventAttributes: sent }) =>
          sent?.signalName === 'attendRemote',
      ).length;
    await expect.poll(attends, WAIT).toBe(1);
  } finally {
    await skipping.close();
  }
});
