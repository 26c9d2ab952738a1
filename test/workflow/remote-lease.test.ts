/** S8.1 while another server works: the resource stays held, beyond one lease, until the remote task has ended. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { leaseIdOf } from '../../src/contract/ids.ts';
import type { LeaseState } from '../../src/task/lease.ts';
import type { TaskState } from '../../src/task/state.ts';
import { createTestHoldfast } from '../../src/testing/index.ts';
import type { TestHoldfast } from '../../src/testing/index.ts';
import { RemoteDepot } from '../support/remote-depot.ts';

const ann = { tenant: 'local', subject: 'ann', roles: [] };
const DONE = { kind: 'completed', result: { structuredContent: { files: 3 } } } as const;
const WAIT = { timeout: 60_000, interval: 100 };
/** The shortest that these deadlines allow. */
const LEASE_MS = 15_000;

const depot = new RemoteDepot();
let holdfast: TestHoldfast;
beforeAll(async () => {
  const archive = depot.action({
    resource: ({ folder }) => `folder/${String(folder)}`,
    lease: LEASE_MS,
    deadlines: { attempt: '1s', verify: '0s' },
  });
  holdfast = await createTestHoldfast({
    server: 'local',
    actions: [archive],
    remotes: (name) => (name === 'depot' ? depot : undefined),
  });
});
afterAll(() => holdfast.close());

const start = async (folder: string, key: string) =>
  (await holdfast.client.start({ action: 'archive', args: { folder }, key, principal: ann })).taskId;
const stateOf = (taskId: string) => holdfast.temporal.workflow.getHandle(taskId).query<TaskState>('task');
const phaseOf = async (taskId: string) => (await stateOf(taskId).catch(() => null))?.phase.kind;
const leaseOf = async (folder: string): Promise<LeaseState> => {
  const handle = holdfast.temporal.workflow.getHandle(leaseIdOf('local', `folder/${folder}`));
  return (await handle.query<{ state: LeaseState }>('lease')).state;
};

test('[S8.1] [S8.2] it is renewed under the same fence while another server works, and passes on once that has ended', async () => {
  const first = await start('a', 'first');
  await expect.poll(() => phaseOf(first), WAIT).toBe('remote');
  const { holder } = await leaseOf('a');
  expect(holder?.taskId).toBe(first);
  const second = await start('a', 'second');
  await expect.poll(async () => (await leaseOf('a')).queue.length, WAIT).toBe(1);
  // Beyond its first end, by the engine's clock: a renewal alone says so.
  await expect
    .poll(async () => (await leaseOf('a')).holder?.until, WAIT)
    .toBeGreaterThan((holder?.until ?? Infinity) + LEASE_MS / 2);
  const renewed = await leaseOf('a');
  expect(renewed).toMatchObject({
    holder: { taskId: first, fence: holder?.fence },
    queue: [{ taskId: second }],
  });
  expect(await phaseOf(first)).toBe('remote');
  expect(depot.asked.submit).toBe(1);
  depot.set(DONE);
  expect(await holdfast.client.wait(first, ann, { timeoutMs: 30_000 })).toMatchObject({
    status: 'completed',
  });
  await expect.poll(() => depot.asked.submit, WAIT).toBe(2);
  await expect.poll(() => phaseOf(second), WAIT).toBe('remote');
  depot.set(DONE);
  expect(await holdfast.client.wait(second, ann, { timeoutMs: 30_000 })).toMatchObject({
    status: 'completed',
  });
  await expect.poll(async () => (await leaseOf('a')).holder, WAIT).toBeNull();
});
