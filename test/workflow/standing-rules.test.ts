/** Standing rules with nothing scripted (S4.5): real ledger, worker and client on the real server, a target that counts. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAction, implementAction } from '../../src/index.ts';
import { createTestHoldfast, openTestServer } from '../../src/testing/index.ts';
import type { TestHoldfast, TestServer } from '../../src/testing/index.ts';
import type { Comparison, RuleInput } from '../../src/client/index.ts';

const person = (subject: string, ...roles: string[]) => ({ tenant: 'local', subject, roles });
const [ann, bob, cat, dan] = [person('ann'), person('bob', 'chief'), person('cat', 'chief'), person('dan')];
const WAIT = { timeoutMs: 30_000 };

const paid: { to: string; amount: number }[] = [];
const input = z.object({ to: z.string(), amount: z.int() });
const common = {
  ...{ version: 1, description: 'Pays.', input, output: z.object({}) },
  effect: 'unsafe',
  verify: { none: 'a test' },
} as const;
const execute = (args: z.output<typeof input>) => {
  paid.push(args);
  return Promise.resolve({});
};
const pay = implementAction(
  defineAction({
    ...common,
    name: 'pay',
    rollback: { kind: 'outOfBand' },
    approval: ({ amount }) =>
      amount > 1 && { roles: ['chief'], quorum: amount > 900 ? 2 : 1, requesterMayDecide: amount === 2 },
  }),
  { execute },
);
const wire = implementAction(
  defineAction({ ...common, name: 'wire', rollback: { kind: 'none', reason: 'a wire is final' } }),
  { execute },
);

let server: TestServer;
let holdfast: TestHoldfast;
beforeAll(async () => {
  server = await openTestServer('local');
  holdfast = await createTestHoldfast({ actions: [pay, wire], server });
});
beforeEach(() => {
  paid.length = 0;
});
afterAll(async () => {
  await holdfast.close();
  await server.close();
});

let keys = 0;
async function called(args: z.output<typeof input>, principal = ann, action = 'pay') {
  const { client } = holdfast;
  const { taskId } = await client.start({ action, args, key: `rule-${(keys += 1)}`, principal });
  return client.wait(taskId, principal, WAIT);
}
const to = (value: string): Comparison => ({ at: '/to', is: '=', value });
const upTo = (to_: string, value: number): RuleInput => ({
  action: 'pay',
  covers: { kind: 'matching', when: [to(to_), { at: '/amount', is: '<=', value }] },
});
const typesOf = async (id: string) => (await holdfast.client.audit(id, ann)).map(({ type }) => type);

test('a rule made from an approval of 5 lets the next call of 5 go; no queued call rides on it, nor one of 5,000 [S4.5][case 25]', async () => {
  const { client } = holdfast;
  const queued = await Promise.all([5, 5_000].map((amount) => called({ to: 'zoe', amount })));
  const asked = await called({ to: 'zoe', amount: 5 });
  expect(asked.status).toBe('awaiting_approval');
  expect(await client.decide(asked.taskId, bob, { kind: 'approve' })).toMatchObject({ code: 'approved' });
  const { fingerprint } = (await holdfast.ledger.findByTask(asked.taskId))!;
  const rule = await client.allow(bob, {
    action: 'pay',
    covers: { kind: 'call', fingerprint: fingerprint.input },
    taskId: asked.taskId,
  });
  const rode = await called({ to: 'zoe', amount: 5 });
  expect(rode).toMatchObject({ status: 'completed', effect: 'applied' });
  for (const other of [
    { to: 'zoe', amount: 5_000 },
    { to: 'eve', amount: 5 },
  ])
    expect(await called(other)).toMatchObject({ status: 'awaiting_approval', effect: 'none' });
  for (const { taskId } of queued)
    expect(await client.get(taskId, ann)).toMatchObject({ status: 'awaiting_approval', effect: 'none' });
  expect(paid).toEqual([
    { to: 'zoe', amount: 5 },
    { to: 'zoe', amount: 5 },
  ]);
  const used = (await client.audit(rode.taskId, ann)).find(({ type }) => type === 'standing_rules_used');
  expect(used?.data).toMatchObject({ rules: [{ id: rule.id, by: 'bob' }] });
  expect(await typesOf(asked.taskId)).not.toContain('standing_rules_used');
  expect(await typesOf(rule.id)).toEqual(['standing_rule_made']);
});

test('a predicate covers what it matches alone; revoked, the rule lets nothing through that is planned after it [S4.5][case 25]', async () => {
  const { client } = holdfast;
  const rule = await client.allow(bob, upTo('yan', 50));
  expect(await called({ to: 'yan', amount: 50 })).toMatchObject({ status: 'completed' });
  expect(await called({ to: 'yan', amount: 51 })).toMatchObject({ status: 'awaiting_approval' });
  await client.revokeRule(rule.id, dan, 'no more');
  expect(await called({ to: 'yan', amount: 50 })).toMatchObject({ status: 'awaiting_approval' });
  expect(await client.rules(ann, { action: 'pay' })).not.toContainEqual(
    expect.objectContaining({ id: rule.id }),
  );
  expect(await typesOf(rule.id)).toEqual(['standing_rule_made', 'standing_rule_revoked']);
  expect(paid).toHaveLength(1);
});

test('a rule of the requester, of somebody without the role or of one person where two are asked lets nothing through [S4.5]', async () => {
  const { client } = holdfast;
  const chief = person('ann', 'chief');
  await client.allow(chief, upTo('xia', 5_000));
  await client.allow(dan, upTo('xia', 5_000));
  expect(await called({ to: 'xia', amount: 20 }, chief)).toMatchObject({ status: 'awaiting_approval' });
  expect(await called({ to: 'xia', amount: 2 }, chief)).toMatchObject({ status: 'completed' });
  await client.allow(bob, upTo('xia', 5_000));
  await client.allow(bob, upTo('xia', 6_000));
  expect(await called({ to: 'xia', amount: 1_000 }, dan)).toMatchObject({ status: 'completed' });
  expect(await called({ to: 'xia', amount: 1_001 }, chief)).toMatchObject({ status: 'awaiting_approval' });
  await client.allow(cat, upTo('xia', 1_001));
  expect(await called({ to: 'xia', amount: 1_001 }, chief)).toMatchObject({ status: 'completed' });
  expect(paid.map(({ amount }) => amount)).toEqual([2, 1_000, 1_001]);
});

test('no rule answers the challenge of a call that can not be undone [S4.5][S4.6][S6.4]', async () => {
  const { covers } = upTo('zoe', 100);
  await holdfast.client.allow(bob, { action: 'wire', covers });
  expect(await called({ to: 'zoe', amount: 5 }, ann, 'wire')).toMatchObject({ status: 'awaiting_approval' });
  expect(paid).toEqual([]);
});

test('a task that a bare client started rides on a rule as well; an edit is judged by policy without it [S4.5][S4.2]', async () => {
  const { client } = holdfast;
  await client.allow(bob, upTo('wim', 100));
  const args = { taskQueue: holdfast.taskQueue, workflowId: 'bare-ruled' };
  const start = { v: 1, action: 'pay', input: { to: 'wim', amount: 60 }, key: 'bare-ruled', principal: ann };
  const handle = await holdfast.temporal.workflow.start('action', { ...args, args: [start] });
  expect(await handle.result()).toMatchObject({ status: 'completed' });
  expect(await typesOf('bare-ruled')).toContain('standing_rules_used');
  const { taskId } = await called({ to: 'wim', amount: 800 });
  const edit = { kind: 'edit', arguments: { to: 'wim', amount: 950 } } as const;
  expect(await client.decide(taskId, bob, edit)).toMatchObject({ code: 'edited_needs_approval' });
});
