/** Approvals on the real server, for what the time-skipping one has not: restarts of worker and history, and the inbox. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { TemporalEngine } from '../../src/client/temporal-engine.ts';
import { BOB, CAT, decision, ruleOf } from '../support/approvals.ts';
import { committed } from '../support/outcomes.ts';
import { WorkflowStage, isInPhase, planned, stateOf, stateWhen } from '../support/workflow-stage.ts';
import type { Played } from '../support/workflow-stage.ts';

const PARKED = 50;
/** Above what a history may hold before it continues as new. */
const FLOOD = 4_200;
/** The engine's visibility lags behind. */
const SOON = { timeout: 15_000 };

let stage: WorkflowStage;
beforeAll(async () => {
  stage = await WorkflowStage.open('local');
});
afterAll(() => stage.close());

const park = () =>
  stage.start(planned({ approval: ruleOf({ expiresInMs: 86_400_000 }) }), {
    attempt: [committed],
    close: [{ kind: 'closed' }],
  });
const executions = ({ scripted }: Played) => scripted.attempts.length;

test('50 parked approvals survive the worker; each decision, also one sent meanwhile, counts for its own task [S4.1][S3.6][case 20]', async () => {
  const parked = await Promise.all(Array.from({ length: PARKED }, park));
  await Promise.all(parked.map(({ handle }) => stateWhen(handle, isInPhase('awaiting_approval'))));
  await stage.stopWorker();
  const [approved, edited, ...others] = parked;
  if (approved === undefined || edited === undefined) throw new Error('none parked');
  const { kind: _kind, ...message } = decision();
  await approved.handle.signal('approve', message);
  await edited.handle.signal('reject', { ...message, by: CAT });
  await stage.startWorker();
  expect((await approved.handle.result()).cause).toBe('committed');
  expect((await edited.handle.result()).cause).toBe('approval_rejected');
  const states = await Promise.all(others.map(({ handle }) => stateOf(handle)));
  expect(new Set(states.map(({ phase }) => phase.kind))).toEqual(new Set(['awaiting_approval']));
  expect(parked.map(executions)).toEqual([1, ...Array<number>(PARKED - 1).fill(0)]);
  await Promise.all(
    others.map(({ handle }) => handle.executeUpdate('decide', { args: [decision({ by: BOB })] })),
  );
  const ends = await Promise.all(others.map(({ handle }) => handle.result()));
  expect(new Set(ends.map(({ cause }) => cause))).toEqual(new Set(['committed']));
  expect(parked.map(executions)).toEqual([1, 0, ...Array<number>(PARKED - 2).fill(1)]);
});

test('a flood of decisions continues as new: the approval, first answers and an early decision come along [S3.6][S4.3][case 28]', async () => {
  const { handle, scripted } = await stage.start(planned({ approval: ruleOf({ roles: ['cfo'] }) }), {
    ...{ attempt: [committed], close: [{ kind: 'closed' }], record: [] },
  });
  await stateWhen(handle, isInPhase('awaiting_approval'));
  const first = (await handle.describe()).runId;
  const refused = decision({ decisionId: 'd-1' });
  expect(await handle.executeUpdate('decide', { args: [refused] })).toMatchObject({
    code: 'not_allowed',
  });
  const { kind: _kind, ...message } = decision();
  for (let sent = 0; sent < FLOOD; sent += 100)
    await Promise.all(Array.from({ length: 100 }, () => handle.signal('approve', message)));
  while ((await handle.describe()).runId === first) await delay(50);
  expect(await handle.executeUpdate('decide', { args: [{ ...refused, by: CAT }] })).toMatchObject({
    code: 'not_allowed',
  });
  await handle.signal('approve', { ...message, by: CAT });
  expect((await handle.result()).cause).toBe('committed');
  expect(scripted.attempts).toHaveLength(1);
}, 300_000);

test('the inbox lists a tenant’s waiting tasks, longest first, and no longer once they are decided [S4.7][case 20]', async () => {
  const engine = new TemporalEngine({ temporal: stage.client, taskQueue: stage.taskQueue });
  const tenant = `o'clock "and" \\ more`;
  const principal = { tenant, subject: 'ann', roles: [] };
  const argument = planned({ approval: ruleOf(), principal });
  if (!('plan' in argument)) throw new Error('not planned');
  const ids = ['inbox-1', 'inbox-2'].map((name) => `${name}-${stage.taskQueue}`);
  for (const id of ids) {
    stage.scriptAs(id, { close: [{ kind: 'closed' }] });
    await engine.start(id, { v: 1, plan: argument.plan, input: argument.input, ordinal: 1 });
    await stateWhen(stage.client.workflow.getHandle(id), isInPhase('awaiting_approval'));
  }
  await expect
    .poll(
      () => engine.waiting(tenant, 10).then((found) => found.map(({ taskId, status }) => [taskId, status])),
      SOON,
    )
    .toEqual(ids.map((id) => [id, 'awaiting_approval']));
  expect(await engine.waiting('other', 10)).toEqual([]);
  expect(await engine.waiting(tenant, 1)).toMatchObject([{ taskId: ids[0] }]);
  const by = { tenant, subject: 'bob', roles: [] };
  const reject = { ...decision({ kind: 'reject', by }), decisionId: 'd-1' };
  expect(await engine.decide(ids[0] ?? '', reject)).toMatchObject({
    kind: 'answered',
    reply: { accepted: true },
  });
  await expect
    .poll(() => engine.waiting(tenant, 10).then((found) => found.map(({ taskId }) => taskId)), SOON)
    .toEqual(ids.slice(1));
});
