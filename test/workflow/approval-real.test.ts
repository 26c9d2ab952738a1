/** Approvals with nothing scripted: real activities, ledger and client on the real server, and a target that counts. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { applied, defineAction, fails, holds, implementAction, notApplied } from '../../src/index.ts';
import { createTestHoldfast, openTestServer } from '../../src/testing/index.ts';
import type { TestHoldfast, TestServer } from '../../src/testing/index.ts';
import type { DecisionInput } from '../../src/client/task-client.ts';

import { deferred } from '../support/deferred.ts';

const ann = { tenant: 'local', subject: 'ann', roles: [] as string[] };
const bob = { tenant: 'local', subject: 'bob', roles: ['chief'] };
const cfo = { tenant: 'local', subject: 'cat', roles: ['chief', 'cfo'] };
const SOON = { timeout: 15_000 };
const WAIT = { timeoutMs: 30_000 };

/** Keeps what was really paid, by operation. */
const paid = new Map<string, { to: string; amount: number }>();
/** Each execution, however often. */
const executions: string[] = [];
let balance = 1_000;
/** An execution has paid somebody slow, and does not return. */
const slow = deferred();
const payments = () => [...paid.values()];

const pay = implementAction(
  defineAction({
    name: 'pay',
    version: 1,
    description: 'Pays somebody.',
    effect: 'conditional',
    input: z.object({ to: z.string(), amount: z.int() }),
    output: z.object({ paid: z.int() }),
    approval: ({ amount }) =>
      amount > 10 && {
        roles: amount > 500 ? ['cfo'] : ['chief'],
        ...(amount > 900 && { quorum: 2 }),
        expiresIn: '1h',
      },
    rollback: { kind: 'outOfBand' },
    verify: { none: 'the target is asked by lookup' },
    deadlines: { settle: 0 },
  }),
  {
    precondition: async ({ amount }) => (amount <= balance ? holds() : fails(`the balance is ${balance}`)),
    lookup: async ({ operationId }) => {
      const done = paid.get(operationId);
      return done ? applied({ paid: done.amount }) : notApplied();
    },
    execute: async ({ to, amount }, { operationId, signal }) => {
      executions.push(to);
      paid.set(operationId, { to, amount });
      if (to === 'slow') {
        slow.resolve();
        await new Promise((_, reject) =>
          signal.addEventListener('abort', () => reject(new Error('cut off'))),
        );
      }
      return { paid: amount };
    },
  },
);
const wire = implementAction(
  defineAction({
    name: 'wire',
    version: 1,
    description: 'Wires money for good.',
    effect: 'unsafe',
    input: z.object({ to: z.string(), amount: z.int() }),
    output: z.object({}),
    rollback: { kind: 'none', reason: 'a wire is final' },
    verify: { none: 'nobody to ask' },
  }),
  { execute: async (input, { operationId }) => (paid.set(operationId, input), {}) },
);

let server: TestServer;
let holdfast: TestHoldfast;
beforeAll(async () => {
  server = await openTestServer('local');
  holdfast = await createTestHoldfast({ actions: [pay, wire], server });
});
afterAll(async () => {
  await holdfast.close();
  await server.close();
});

let keys = 0;
const newKey = () => `order-${(keys += 1)}`;
async function asked(args: { to: string; amount: number }, key = newKey(), action = 'pay') {
  const { taskId } = await holdfast.client.start({ action, args, key, principal: ann });
  const waiting = await holdfast.client.wait(taskId, ann, WAIT);
  expect(waiting).toMatchObject({ status: 'awaiting_approval', effect: 'none' });
  return { taskId, key };
}
const decide = (taskId: string, by: typeof bob, input: DecisionInput) =>
  holdfast.client.decide(taskId, by, input);
const ended = (taskId: string) => holdfast.client.wait(taskId, ann, WAIT);
const auditOf = async (taskId: string) =>
  (await holdfast.client.audit(taskId, ann)).map(({ type, data }) => ({ type, data }));

describe('a call that a person must approve', () => {
  test('is in the inbox with what will happen; approved, it has its effect once, and the audit says who [S4.1][S4.7][S10.4]', async () => {
    paid.clear();
    const args = { to: 'zoe', amount: 20 };
    const { taskId, key } = await asked(args);
    await expect
      .poll(() => holdfast.client.inbox(bob).then((all) => all.map((each) => each.taskId)), SOON)
      .toContain(taskId);
    expect(await holdfast.client.inbox({ ...bob, tenant: 'other' })).toEqual([]);
    const { approval } = await holdfast.client.detail(taskId, bob);
    expect(approval).toMatchObject({
      callId: 'action#1',
      roles: ['chief'],
      view: {
        arguments: args,
        requester: 'ann',
        precondition: { kind: 'holds' },
        rollback: { kind: 'outOfBand' },
      },
    });
    expect(
      await decide(taskId, bob, { kind: 'approve', ...(approval && { fingerprint: approval.fingerprint }) }),
    ).toMatchObject({
      accepted: true,
      code: 'approved',
    });
    expect(await ended(taskId)).toMatchObject({ status: 'completed', result: { paid: 20 } });
    expect(payments()).toEqual([args]);
    const audit = await auditOf(taskId);
    expect(audit.map(({ type }) => type)).toEqual([
      ...['operation.reserved', 'approval_opened', 'approval_decided', 'operation.claimed'],
      ...audit.slice(4).map(({ type }) => type),
    ]);
    expect(audit[2]?.data).toMatchObject({
      by: 'bob',
      roles: ['chief'],
      callId: 'action#1',
      decision: 'approved',
    });
    expect(audit[1]?.data).toMatchObject({ approval: { view: { arguments: args } } });
    expect((await holdfast.client.start({ action: 'pay', args, key, principal: ann })).replayed).toBe(true);
    await expect
      .poll(() => holdfast.client.inbox(bob).then((all) => all.map((each) => each.taskId)), SOON)
      .not.toContain(taskId);
  });

  test('shows a precondition that does not hold as read, and is refused by it if approved all the same [S4.7][S2.2]', async () => {
    paid.clear();
    const { taskId } = await asked({ to: 'zoe', amount: 100 });
    balance = 50;
    const second = await asked({ to: 'zoe', amount: 100 });
    const { approval } = await holdfast.client.detail(second.taskId, bob);
    expect(approval?.view).toMatchObject({ precondition: { kind: 'fails', reason: 'the balance is 50' } });
    for (const each of [taskId, second.taskId]) {
      await decide(each, bob, { kind: 'approve' });
      expect(await ended(each)).toMatchObject({
        status: 'failed',
        effect: 'none',
        cause: 'precondition_failed',
      });
    }
    balance = 1_000;
    expect(payments()).toEqual([]);
  });

  test('rejected, sends nothing; deny then approve is told that it is decided, in the audit too; the key may be called again [S4.2][S4.3][S1.6][case 18]', async () => {
    paid.clear();
    const args = { to: 'zoe', amount: 30 };
    const { taskId, key } = await asked(args);
    expect(await decide(taskId, bob, { kind: 'reject', reason: 'no', decisionId: 'd-1' })).toMatchObject({
      accepted: true,
      code: 'rejected',
    });
    expect(await ended(taskId)).toMatchObject({
      status: 'failed',
      effect: 'none',
      cause: 'approval_rejected',
      error: { message: 'Rejected by bob: no' },
    });
    expect(await decide(taskId, cfo, { kind: 'approve' })).toMatchObject({
      accepted: false,
      code: 'already_decided',
    });
    expect(await decide(taskId, bob, { kind: 'reject', decisionId: 'd-1' })).toMatchObject({
      code: 'rejected',
    });
    expect((await auditOf(taskId)).at(-1)).toMatchObject({
      type: 'decision_ignored',
      data: { by: 'cat', kind: 'approve', code: 'already_decided' },
    });
    expect(payments()).toEqual([]);
    const again = await asked(args, key);
    expect(again.taskId).not.toBe(taskId);
    await decide(again.taskId, bob, { kind: 'approve' });
    expect(await ended(again.taskId)).toMatchObject({ status: 'completed' });
    expect(payments()).toEqual([args]);
  });

  test('may be decided by nobody of another tenant, and not by its requester [S4.5]', async () => {
    const { taskId } = await asked({ to: 'zoe', amount: 40 });
    await expect(decide(taskId, { ...bob, tenant: 'other' }, { kind: 'approve' })).rejects.toMatchObject({
      code: 'task_not_found',
    });
    const requester = { ...ann, roles: ['chief'] };
    expect(await decide(taskId, requester, { kind: 'approve' })).toMatchObject({
      code: 'not_allowed',
    });
    expect(await holdfast.client.cancel(taskId, ann)).toMatchObject({ accepted: true });
    expect(await ended(taskId)).toMatchObject({ status: 'cancelled', effect: 'none' });
  });
});

describe('a call that an approver edits', () => {
  test('is executed with the new arguments; the row keeps the request’s, and the original call is answered from it, saying so [S4.2][case 22]', async () => {
    paid.clear();
    const args = { to: 'zoe', amount: 60 };
    const { taskId, key } = await asked(args);
    const before = await holdfast.ledger.findByTask(taskId);
    const edit = { kind: 'edit' as const, arguments: { to: 'zoe', amount: 50 }, reason: 'a little less' };
    expect(await decide(taskId, bob, edit)).toMatchObject({ accepted: true, code: 'edited' });
    const editedFrom = { fingerprint: before?.fingerprint.input, by: 'bob', callId: 'action#1' };
    const answer = await ended(taskId);
    expect(answer).toMatchObject({ status: 'completed', result: { paid: 50 }, editedFrom });
    expect(answer.statusMessage).toContain('arguments that bob edited');
    expect(payments()).toEqual([{ to: 'zoe', amount: 50 }]);
    const row = await holdfast.ledger.findByTask(taskId);
    expect([row?.fingerprint, row?.arguments]).toEqual([before?.fingerprint, args]);
    expect(row?.edited?.fingerprint.input).toBe(answer.editedFrom?.executed);
    const again = await holdfast.client.start({ action: 'pay', args, key, principal: ann });
    expect(again).toMatchObject({ replayed: true, status: 'completed', result: { paid: 50 }, editedFrom });
    await expect(
      holdfast.client.start({ action: 'pay', args: edit.arguments, key, principal: ann }),
    ).rejects.toMatchObject({ code: 'idempotency_conflict' });
    expect(payments()).toHaveLength(1);
    const decided = (await auditOf(taskId)).find(({ type }) => type === 'approval_decided');
    expect(decided?.data).toMatchObject({
      ...{ decision: 'edited', by: 'bob', reason: 'a little less', needsApproval: false },
      ...{ shown: { arguments: edit.arguments }, fingerprint: row?.edited?.fingerprint },
    });
  });

  test('without a key is answered by what was done when its caller makes it again, until it names a key [case 22][S4.2]', async () => {
    paid.clear();
    const args = { to: 'zoe', amount: 65 };
    const call = (more: { key?: string; attach?: boolean } = {}, principal = ann) =>
      holdfast.client.start({ action: 'pay', args, principal, ...more });
    const first = await call();
    await holdfast.client.wait(first.taskId, ann, WAIT);
    const edit = { kind: 'edit' as const, arguments: { to: 'zoe', amount: 55 } };
    expect(await decide(first.taskId, bob, edit)).toMatchObject({ code: 'edited' });
    const { editedFrom } = await ended(first.taskId);
    const again = await call();
    expect(again).toMatchObject({ taskId: first.taskId, replayed: true, status: 'completed', editedFrom });
    expect(again.statusMessage).toContain('do not call again with the original');
    expect(payments()).toEqual([edit.arguments]);
    for (const other of [await call({ key: newKey() }), await call({ attach: false }), await call({}, cfo)])
      expect([other.replayed, other.taskId === first.taskId]).toEqual([false, false]);
    expect(payments()).toHaveLength(1);
  });

  test('into what a stricter rule asks for is approved anew, by those whom it asks [S4.2][case 21]', async () => {
    paid.clear();
    const { taskId } = await asked({ to: 'zoe', amount: 70 });
    const edit = { kind: 'edit' as const, arguments: { to: 'zoe', amount: 600 } };
    expect(await decide(taskId, bob, edit)).toMatchObject({ code: 'edited_needs_approval' });
    await expect
      .poll(() => holdfast.client.detail(taskId, bob).then(({ approval }) => approval), SOON)
      .toMatchObject({ callId: 'action#2', roles: ['cfo'], view: { arguments: edit.arguments } });
    expect(await decide(taskId, bob, { kind: 'approve' })).toMatchObject({ code: 'not_allowed' });
    expect(payments()).toEqual([]);
    expect(await decide(taskId, cfo, { kind: 'approve', callId: 'action#2' })).toMatchObject({
      code: 'approved',
    });
    expect(await ended(taskId)).toMatchObject({ status: 'completed', editedFrom: { callId: 'action#1' } });
    expect(payments()).toEqual([edit.arguments]);
  });

  test('into another tool’s arguments, or none that fit, is refused, and stays to be decided [S4.2][case 21]', async () => {
    const { taskId } = await asked({ to: 'zoe', amount: 80 });
    for (const wrong of [{ to: 'zoe', amount: 80, action: 'wire' }, { to: 'zoe', amount: 'much' }, {}])
      expect(await decide(taskId, bob, { kind: 'edit', arguments: wrong })).toMatchObject({
        code: 'invalid_edit',
      });
    expect(await decide(taskId, bob, { kind: 'reject' })).toMatchObject({ code: 'rejected' });
  });
});

describe.each([
  ['the first before the third', [0, 2]],
  ['the third before the first', [2, 0]],
] as const)('of three calls two need an approval; %s is approved', (_order, [one, other]) => {
  test('each has its effect once, and no approval runs another call again [case 17][S4.1][S2.11]', async () => {
    paid.clear();
    executions.length = 0;
    const calls = [
      { to: 'uma', amount: 20 },
      { to: 'vic', amount: 5 },
      { to: 'wes', amount: 30 },
    ];
    const started = await Promise.all(
      calls.map((args) => holdfast.client.start({ action: 'pay', args, key: newKey(), principal: ann })),
    );
    const now = async () => {
      const tasks = await Promise.all(started.map(({ taskId }) => ended(taskId)));
      return tasks.map(({ status }) => status);
    };
    expect(await now()).toEqual(['awaiting_approval', 'completed', 'awaiting_approval']);
    expect(executions).toEqual(['vic']);
    const approve = (index: number) => decide(started[index]?.taskId ?? '', bob, { kind: 'approve' });
    expect(await approve(one)).toMatchObject({ code: 'approved' });
    await expect
      .poll(now, SOON)
      .toEqual(calls.map((_, index) => (index === other ? 'awaiting_approval' : 'completed')));
    expect(executions).toEqual(['vic', calls[one]?.to]);
    expect(await approve(other)).toMatchObject({ code: 'approved' });
    await expect.poll(now, SOON).toEqual(['completed', 'completed', 'completed']);
    expect(executions).toEqual(['vic', calls[one]?.to, calls[other]?.to]);
    expect(
      payments()
        .map(({ to }) => to)
        .sort(),
    ).toEqual(['uma', 'vic', 'wes']);
  });
});

test('a call that can not be undone is sent only once its phrase was typed back [S4.6][S6.4]', async () => {
  paid.clear();
  const { taskId } = await asked({ to: 'zoe', amount: 5 }, newKey(), 'wire');
  const { approval } = await holdfast.client.detail(taskId, bob);
  expect(approval).toMatchObject({ challenge: 'wire zoe 5', mayAnswerOverMcp: false });
  const answer = (challengeAnswer: string) => decide(taskId, bob, { kind: 'approve', challengeAnswer });
  expect(await answer('wire zoe 50')).toMatchObject({ accepted: false, code: 'wrong_challenge' });
  expect(payments()).toEqual([]);
  expect(await answer('wire zoe 5')).toMatchObject({ accepted: true, code: 'approved' });
  expect(await ended(taskId)).toMatchObject({ status: 'completed' });
  expect(payments()).toEqual([{ to: 'zoe', amount: 5 }]);
});

test('a task started by a bare client asks, hears a bare signal, and its audit has it all [S4.8][S10.4]', async () => {
  paid.clear();
  const input = { to: 'zoe', amount: 11 };
  const handle = await holdfast.temporal.workflow.start('action', {
    taskQueue: holdfast.taskQueue,
    workflowId: 'bare-approval',
    args: [{ v: 1, action: 'pay', input, key: newKey(), principal: ann }],
  });
  await handle.signal('interrupt', { by: 'eve' });
  await handle.signal('approve', { callId: 'action#1', by: bob });
  await handle.signal('resume', { by: 'eve' });
  expect(await handle.result()).toMatchObject({ status: 'completed', effect: 'applied' });
  expect(payments()).toEqual([input]);
  const types = (await auditOf('bare-approval')).map(({ type }) => type);
  for (const type of ['interrupted', 'resumed', 'approval_opened', 'approval_decided', 'operation.committed'])
    expect(types).toContain(type);
});

test('an operation whose workflow was killed after it was sent is settled before anybody is asked again [S3.8][S2.4]', async () => {
  paid.clear();
  const args = { to: 'zoe', amount: 12 };
  const { taskId, key } = await asked(args);
  const row = await holdfast.ledger.findByTask(taskId);
  if (row === null) throw new Error('no row');
  await holdfast.temporal.workflow.getHandle(taskId).terminate('by an operator');
  await holdfast.ledger.claim({
    ...{ operationId: row.operationId, taskId, ordinal: row.ordinal, attempt: 1 },
    ...{ claimMs: 1, attemptMs: 1, executing: true, notes: [] },
  });
  paid.set(row.operationId, args);
  const again = await holdfast.client.start({ action: 'pay', args, key, principal: ann });
  expect(await ended(again.taskId)).toMatchObject({ status: 'completed', result: { paid: 12 } });
  expect(payments()).toEqual([args]);
});

test('an edited call whose workflow was killed goes on as it was edited, not as it was asked for [S3.8][S4.2]', async () => {
  paid.clear();
  const { taskId } = await asked({ to: 'slow', amount: 60 });
  const edit = { kind: 'edit' as const, arguments: { to: 'slow', amount: 9 } };
  expect(await decide(taskId, bob, edit)).toMatchObject({ code: 'edited' });
  await slow.promise;
  await holdfast.temporal.workflow.getHandle(taskId).terminate('by an operator');
  const answer = await ended(taskId);
  expect(answer).toMatchObject({ status: 'completed', result: { paid: 9 }, editedFrom: { by: 'bob' } });
  expect(payments()).toEqual([{ to: 'slow', amount: 9 }]);
});

describe('a worker that has died', () => {
  test('[S4.1] the decision waits for the next one, and is made for the call that is open', async () => {
    const own = await createTestHoldfast({ actions: [pay], server });
    try {
      const call = { action: 'pay', args: { to: 'late', amount: 100 }, key: newKey(), principal: ann };
      const { taskId } = await own.client.start(call);
      expect((await own.client.wait(taskId, ann, WAIT)).status).toBe('awaiting_approval');
      await own.stopWorker();
      const decided = own.client.decide(taskId, bob, { kind: 'approve' });
      const shown = own.client.detail(taskId, bob, { awaitsWorker: true });
      await delay(1_700); // beyond the deadline of one read
      await own.startWorker();
      expect(await decided).toMatchObject({ accepted: true });
      expect((await shown).events).not.toEqual([]);
      expect((await own.client.wait(taskId, ann, WAIT)).status).toBe('completed');
    } finally {
      await own.close();
    }
  });
});
