/** Workflow `action` asking people (S4), on the time-skipping server: by each way, early, late, at once, and over restarts. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PlanEditResult } from '../../src/task/activity-api.ts';
import type { DecisionMessage, DecisionReply } from '../../src/task/approval.ts';
import type { TaskEvent } from '../../src/task/event.ts';
import type { TaskOutcome } from '../../src/task/outcome.ts';
import type { PlanApproval } from '../../src/task/plan.ts';
import { ANN, BOB, CAT, HOUR_MS, asking, decision, editedPlan, ruleOf } from '../support/approvals.ts';
import { deferred } from '../support/deferred.ts';
import { RESULT, committed } from '../support/outcomes.ts';
import type { PlanOverrides } from '../support/plans.ts';
import type { ActivityScript } from '../support/scripted-activities.ts';
import {
  WorkflowStage,
  eventsOf,
  isInPhase,
  planned,
  stateOf,
  stateWhen,
} from '../support/workflow-stage.ts';
import type { ActionHandle, Played } from '../support/workflow-stage.ts';

let stage: WorkflowStage;
beforeAll(async () => {
  stage = await WorkflowStage.open('time-skipping');
});
afterAll(() => stage.close());

const CLOSED = { kind: 'closed' as const };
const DONE = ['completed', 'applied', 'committed'];
const REJECTED = ['failed', 'none', 'approval_rejected'];
const EXPIRED = ['failed', 'none', 'approval_expired'];
const runs = (): ActivityScript => ({ attempt: [committed], close: [CLOSED] });

const begin = (approval: Partial<PlanApproval> = {}, script = runs(), overrides: PlanOverrides = {}) =>
  stage.start(planned({ approval: ruleOf(approval), ...overrides }), script);

async function opened(...given: Parameters<typeof begin>): Promise<Played> {
  const played = await begin(...given);
  await stateWhen(played.handle, isInPhase('awaiting_approval'));
  return played;
}

const decide = (handle: ActionHandle, message: Partial<DecisionMessage> = {}) =>
  handle.executeUpdate<DecisionReply, [DecisionMessage]>('decide', { args: [decision(message)] });
const endOf = async ({ handle }: Played) => {
  const { status, effect, cause } = await handle.result();
  return [status, effect, cause];
};
const executions = ({ scripted }: Played) =>
  scripted.attempts.filter(({ purpose }) => purpose === 'execute').length;
const journalOf = ({ handle }: Played) => handle.query<TaskEvent[]>('events');
const codesOf = async (played: Played) =>
  (await journalOf(played)).flatMap((event) => (event.type === 'decision_ignored' ? [event.data.code] : []));
const inbox = async ({ handle }: Played) =>
  Object.fromEntries(
    (await handle.describe()).typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value]),
  );

describe('a decision', () => {
  const WAYS: [string, (handle: ActionHandle, message: Partial<DecisionMessage>) => Promise<unknown>][] = [
    ['by update', decide],
    [
      'by signal',
      (handle, message) => {
        const { kind, ...rest } = decision(message);
        return handle.signal(kind, rest);
      },
    ],
  ];

  test.each(WAYS)('%s approves: the effect follows, once [S4.2][S4.8]', async (_way, send) => {
    const played = await opened();
    await send(played.handle, {});
    expect(await endOf(played)).toEqual(DONE);
    expect(executions(played)).toBe(1);
  });

  test.each(WAYS)(
    '%s rejects: nothing is sent, and the row is closed with that [S4.2][S4.8]',
    async (_way, send) => {
      const played = await opened();
      await send(played.handle, { kind: 'reject', reason: 'no' });
      expect(await endOf(played)).toEqual(REJECTED);
      expect(played.scripted.names).not.toContain('attemptOperation');
      expect(played.scripted.names.at(-1)).toBe('closeOperation');
    },
  );

  test('by update is answered; a later one, a wrong callId and one of the requester are refused with why [S4.3][S4.5]', async () => {
    const played = await opened({ quorum: 2 });
    expect(await decide(played.handle, { by: ANN })).toMatchObject({ accepted: false, code: 'not_allowed' });
    expect(await decide(played.handle, { callId: 'action#9' })).toMatchObject({ code: 'not_open' });
    expect(await decide(played.handle)).toMatchObject({
      accepted: true,
      code: 'approval_recorded',
      status: 'awaiting_approval',
    });
    expect(await decide(played.handle, { by: CAT })).toMatchObject({ accepted: true, code: 'approved' });
    expect(await decide(played.handle, { kind: 'reject', by: CAT }).catch(() => null)).toSatisfy(
      (reply: DecisionReply | null) => reply === null || reply.code === 'already_decided',
    );
    expect(await endOf(played)).toEqual(DONE);
  });

  test('by signal that changes nothing is journaled as ignored, and audited [S4.3][S10.3]', async () => {
    const played = await opened({ roles: ['cfo'] });
    const { kind: _kind, ...message } = decision();
    await played.handle.signal('approve', message);
    await played.handle.signal('approve', 'yes, please');
    await stateWhen(played.handle, ({ seq }) => seq === 5);
    expect(await codesOf(played)).toEqual(['not_allowed']);
    await expect
      .poll(() => played.scripted.notes.map(({ type }) => type))
      .toEqual([...['approval_opened', 'decision_ignored', 'message_ignored']]);
    await decide(played.handle, { by: CAT });
    expect(await endOf(played)).toEqual(DONE);
  });

  test('that comes with the start, before anything else, is honoured [S4.3][S4.8]', async () => {
    const { workflowId, scripted } = stage.scriptFor(runs());
    const handle = await stage.client.workflow.signalWithStart('action', {
      taskQueue: stage.taskQueue,
      workflowId,
      args: [planned({ approval: ruleOf() })],
      signal: 'approve',
      signalArgs: [{ callId: 'action#1', by: BOB, fingerprint: 'input-hash' }],
    });
    expect(((await handle.result()) as TaskOutcome).cause).toBe('committed');
    expect(scripted.names).toEqual(['previewOperation', 'attemptOperation']);
  });

  test('twice at the same moment is one transition, and the same answer under the same decisionId [S4.3][case 19]', async () => {
    const played = await opened();
    const replies = await Promise.all(
      Array.from({ length: 5 }, () => decide(played.handle, { decisionId: 'd-1' })),
    );
    expect(replies.map(({ code }) => code)).toEqual(Array(5).fill('approved'));
    expect(await endOf(played)).toEqual(DONE);
    expect((await journalOf(played)).filter(({ type }) => type === 'approval_decided')).toHaveLength(1);
    expect(executions(played)).toBe(1);
  });

  test('deny and, at the same moment, approve: the first wins, and the other is told [S4.3][case 18]', async () => {
    const played = await opened();
    await played.handle.signal('reject', { callId: 'action#1', by: BOB });
    await played.handle.signal('approve', { callId: 'action#1', by: CAT });
    expect(await endOf(played)).toEqual(REJECTED);
    expect(executions(played)).toBe(0);
    expect(await codesOf(played)).toEqual(['already_decided']);
    const types = played.scripted.notes.map(({ type }) => type);
    expect(types).toEqual(['approval_opened', 'approval_decided', 'decision_ignored']);
  });

  test('of any shape never harms the task [S4.8]', async () => {
    const played = await opened();
    const nonsense = [null, 7, [], 'approve', {}, { callId: 'action#1' }, { callId: 'action#1', by: 'bob' }];
    for (const message of nonsense) {
      for (const name of ['approve', 'edit', 'reject']) await played.handle.signal(name, message);
      expect(await played.handle.executeUpdate('decide', { args: [message] })).toMatchObject({
        accepted: false,
        code: 'invalid_decision',
      });
    }
    const long = { ...BOB, subject: 'b'.repeat(256) };
    const half = { ...BOB, subject: 'b\ud800' };
    for (const by of [long, half])
      expect(await decide(played.handle, { by })).toMatchObject({ code: 'invalid_decision' });
    const deep: unknown = JSON.parse(`${'{"a":'.repeat(200)}1${'}'.repeat(200)}`);
    await played.handle.signal('edit', { callId: 'action#1', by: BOB, arguments: deep });
    expect(await decide(played.handle)).toMatchObject({ code: 'approved' });
    expect(await endOf(played)).toEqual(DONE);
  });
});

describe('expiry', () => {
  test('deny: by durable timer, with nothing sent [S4.4][case 24]', async () => {
    const played = await begin({ expiresInMs: 72 * HOUR_MS });
    expect(await endOf(played)).toEqual(EXPIRED);
    expect(executions(played)).toBe(0);
    const { startedAt, updatedAt } = await stateOf(played.handle);
    expect(updatedAt - startedAt).toBeGreaterThanOrEqual(72 * HOUR_MS);
  });

  test('halt: a person is alerted and asked; asked anew, approved, done [S4.4][case 24]', async () => {
    const played = await opened({ onExpiry: 'halt' });
    await stage.server.env.sleep(HOUR_MS);
    await stateWhen(played.handle, isInPhase('needs_attention'));
    await expect.poll(() => inbox(played)).toMatchObject({ HoldfastStatus: 'needs_attention' });
    const alerts = played.scripted.calls.flatMap(
      ({ request }) => (request as { alert?: unknown }).alert ?? [],
    );
    expect(alerts).toMatchObject([{ type: 'approval_expired', callId: 'action#1' }]);
    const resolve = (as: string) => played.handle.executeUpdate('resolveTask', { args: [{ as, by: 'eve' }] });
    expect(await resolve('applied')).toMatchObject({ code: 'invalid_resolution' });
    expect(await resolve('not_applied')).toMatchObject({ accepted: true });
    await stateWhen(played.handle, isInPhase('awaiting_approval'));
    expect(await decide(played.handle)).toMatchObject({ code: 'already_decided' });
    expect(await decide(played.handle, { callId: 'action#2' })).toMatchObject({ code: 'approved' });
    expect(await endOf(played)).toEqual(DONE);
  });

  test('remind: alerts each term, never leaves the inbox meanwhile, and stays open [S4.4]', async () => {
    const played = await opened({ onExpiry: 'remind' });
    await expect.poll(() => inbox(played)).toMatchObject({ HoldfastStatus: 'awaiting_approval' });
    await stage.server.env.sleep(5 * HOUR_MS + 60_000);
    await stateWhen(played.handle, ({ alertsDue }) => alertsDue.length === 0);
    const types = (await journalOf(played)).map(({ type }) => type);
    expect(types.filter((type) => type === 'alert_recorded')).toHaveLength(5);
    await decide(played.handle);
    expect(await endOf(played)).toEqual(DONE);
    const upserts = (await eventsOf(played.handle)).filter(
      ({ upsertWorkflowSearchAttributesEventAttributes: upsert }) => upsert,
    );
    expect(upserts).toHaveLength(2);
  });

  test('escalate: other roles may decide too, once, then it is denied [S4.4]', async () => {
    const escalates = { onExpiry: 'escalate', roles: ['buyer'], escalateTo: ['cfo'] } as const;
    const rule = { ...escalates, roles: ['buyer'], escalateTo: ['cfo'] };
    const played = await opened(rule);
    expect(await decide(played.handle, { by: CAT })).toMatchObject({ code: 'not_allowed' });
    await stage.server.env.sleep(HOUR_MS);
    await stateWhen(
      played.handle,
      ({ phase }) => phase.kind === 'awaiting_approval' && phase.approval.hasEscalated,
    );
    expect(await decide(played.handle, { by: CAT })).toMatchObject({ code: 'approved' });
    expect(await endOf(played)).toEqual(DONE);
    expect(await endOf(await begin(rule))).toEqual(EXPIRED);
  });
});

describe('an edit', () => {
  const edit = { kind: 'edit' as const, arguments: { sku: 'A-1', quantity: 2 } };
  const replanned = (approval: Partial<PlanApproval> | null, needsApproval: boolean): PlanEditResult => ({
    kind: 'planned',
    plan: editedPlan(asking(), approval),
    input: edit.arguments,
    needsApproval,
    shown: { arguments: edit.arguments },
  });

  test('is planned again and executed with its own arguments, which the outcome says [S4.2][case 22]', async () => {
    const played = await opened({}, { ...runs(), edit: [replanned(null, false)] });
    expect(await decide(played.handle, edit)).toMatchObject({ accepted: true, code: 'edited' });
    const outcome = await played.handle.result();
    expect(outcome).toMatchObject({
      cause: 'committed',
      editedFrom: { fingerprint: 'input-hash', executed: 'edited-input', by: 'bob', callId: 'action#1' },
    });
    expect(played.scripted.attempts[0]).toMatchObject({
      input: edit.arguments,
      plan: { fingerprint: { input: 'input-hash' }, edited: { by: 'bob' } },
    });
  });

  test('that trips a stricter rule opens a new approval for what it says [S4.2][case 21]', async () => {
    const script = { ...runs(), edit: [replanned({ roles: ['cfo'] }, true)] };
    const played = await opened({}, script);
    expect(await decide(played.handle, edit)).toMatchObject({ code: 'edited_needs_approval' });
    const { phase } = await stateWhen(
      played.handle,
      ({ phase: now }) => now.kind === 'awaiting_approval' && now.approval.callId === 'action#2',
    );
    expect(phase).toMatchObject({
      approval: { fingerprint: 'edited-input', view: { arguments: edit.arguments } },
    });
    expect(await decide(played.handle, { callId: 'action#2' })).toMatchObject({ code: 'not_allowed' });
    expect(await decide(played.handle, { callId: 'action#2', by: CAT })).toMatchObject({ code: 'approved' });
    expect(await endOf(played)).toEqual(DONE);
    expect(played.scripted.attempts[0]?.input).toEqual(edit.arguments);
  });

  test('with another tool’s argument is refused, and the approval stays open [S4.2][case 21]', async () => {
    const message = 'The value at /tool is none of the arguments.';
    const played = await opened({}, { ...runs(), edit: [{ kind: 'refused', message }] });
    const extra = { ...edit, arguments: { sku: 'A-1', tool: 'wire' } };
    expect(await decide(played.handle, extra)).toMatchObject({ code: 'invalid_edit', message });
    expect(await decide(played.handle, { kind: 'edit' })).toMatchObject({ code: 'invalid_edit' });
    expect(await decide(played.handle)).toMatchObject({ code: 'approved' });
    expect(await endOf(played)).toEqual(DONE);
    expect(played.scripted.attempts[0]?.input).toEqual({ sku: 'A-1', quantity: 1 });
  });

  test('that names another action, and an approval with arguments of its own, are refused; nothing is done [S4.2][case 21]', async () => {
    const played = await opened();
    const foreign = { action: 'wire', code: 'invalid_edit' };
    const both = { action: 'reserve_inventory', tool: 'wire', code: 'invalid_decision' };
    for (const { code, ...named } of [foreign, { tool: 'wire', code: 'invalid_edit' }, both])
      expect(await decide(played.handle, { ...edit, ...named })).toMatchObject({ accepted: false, code });
    for (const more of [{ arguments: edit.arguments }, { action: 'wire' }, { tool: { name: 'wire' } }]) {
      await played.handle.signal('approve', { ...decision(), ...more });
      expect(await decide(played.handle, more as never)).toMatchObject({ code: 'invalid_decision' });
    }
    expect(played.scripted.names).not.toContain('planEdit');
    expect(await stateOf(played.handle)).toMatchObject({ phase: { kind: 'awaiting_approval' } });
    const own = { action: 'reserve_inventory', tool: null, arguments: null };
    expect(await decide(played.handle, own as never)).toMatchObject({ code: 'approved' });
    expect(await endOf(played)).toEqual(DONE);
    expect(executions(played)).toBe(1);
  });

  test('that others forestall while it is planned changes nothing, neither plan nor arguments [S4.3][S3.2]', async () => {
    const [asked, gate] = [deferred(), deferred()];
    const slow = async () => (asked.resolve(), await gate.promise, replanned(null, false));
    const played = await opened({}, { ...runs(), edit: [slow] });
    const late = decide(played.handle, edit);
    await asked.promise;
    expect(await decide(played.handle, { by: CAT })).toMatchObject({ code: 'approved' });
    gate.resolve();
    expect(await late).toMatchObject({ accepted: false, code: 'already_decided' });
    const outcome = await played.handle.result();
    expect(outcome.editedFrom).toBeUndefined();
    expect(played.scripted.attempts[0]?.input).toEqual({ sku: 'A-1', quantity: 1 });
    expect(played.scripted.notes.map(({ type }) => type)).toContain('decision_ignored');
  });

  test('sent twice at the same moment under one decisionId is planned, decided and answered as one [S4.3]', async () => {
    const gate = deferred();
    const slow = async () => (await gate.promise, replanned(null, false));
    const played = await opened({}, { ...runs(), edit: [slow, slow] });
    const both = [1, 2].map(() => decide(played.handle, { ...edit, decisionId: 'd-1' }));
    await stateWhen(
      played.handle,
      () => played.scripted.names.filter((name) => name === 'planEdit').length === 2,
    );
    gate.resolve();
    expect((await Promise.all(both)).map(({ code }) => code)).toEqual(['edited', 'edited']);
    expect(await endOf(played)).toEqual(DONE);
    expect((await journalOf(played)).filter(({ type }) => type === 'approval_decided')).toHaveLength(1);
  });
});

describe('while a person is waited for', () => {
  test('none of the tool’s budgets runs: after 54 minutes it has its full deadlines [S5.3][case 23]', async () => {
    const played = await opened({}, runs(), { deadlines: { attemptMs: 5_000, runMs: 5_000 } });
    await stage.server.env.sleep('54 minutes');
    await decide(played.handle);
    expect(await endOf(played)).toEqual(DONE);
    const scheduled = (await eventsOf(played.handle)).flatMap(
      ({ activityTaskScheduledEventAttributes: given }) => given ?? [],
    );
    const attempt = scheduled.find(({ activityType }) => activityType?.name === 'attemptOperation');
    expect(Number(attempt?.startToCloseTimeout?.seconds)).toBeGreaterThanOrEqual(15);
  });

  test('the task is in the inbox, and leaves it with the decision [S4.7]', async () => {
    const played = await opened();
    const { phase } = await stateOf(played.handle);
    await expect
      .poll(() => inbox(played))
      .toEqual({
        HoldfastStatus: 'awaiting_approval',
        HoldfastWaitingSince: new Date(phase.kind === 'awaiting_approval' ? phase.approval.openedAt : 0),
      });
    await decide(played.handle);
    expect(await endOf(played)).toEqual(DONE);
    expect(await inbox(played)).toEqual({});
  });

  test('a cancel ends the task at once, with nothing sent [S7.4]', async () => {
    const played = await opened();
    await played.handle.executeUpdate('cancelTask', { args: [{ by: 'ann' }] });
    await stateWhen(played.handle, isInPhase('ended'));
    expect(await endOf(played)).toEqual(['cancelled', 'none', 'cancelled']);
  });
});

describe('an interrupt', () => {
  const WAYS: [string, (handle: ActionHandle, name: 'interrupt' | 'resume') => Promise<unknown>][] = [
    ['by signal', (handle, name) => handle.signal(name, { by: 'eve', reason: 'look first' })],
    ['by update', (handle, name) => handle.executeUpdate(`${name}Task`, { args: [{ by: 'eve' }] })],
  ];

  test.each(WAYS)(
    '%s lets an attempt under way finish, and nothing begin until the resume [S7.1][S7.2]',
    async (_way, send) => {
      const [asked, gate] = [deferred(), deferred()];
      const failing = async () => (
        asked.resolve(),
        await gate.promise,
        { kind: 'released' as const, failure: { kind: 'notApplied' as const, code: 'x', message: 'x' } }
      );
      const played = await stage.start(planned({ retry: { initialIntervalMs: 1, maximumIntervalMs: 1 } }), {
        attempt: [failing, committed],
      });
      await asked.promise;
      await send(played.handle, 'interrupt');
      await stateWhen(played.handle, ({ interrupted }) => interrupted);
      gate.resolve();
      const state = await stateWhen(played.handle, isInPhase('ready'));
      expect([state.interrupted, state.retriesSpent, state.attempts[0]?.outcome]).toEqual([
        true,
        1,
        'released',
      ]);
      await stage.server.env.sleep('10 minutes');
      expect(played.scripted.attempts).toHaveLength(1);
      await expect.poll(() => played.scripted.notes.map(({ type }) => type)).toEqual(['interrupted']);
      await send(played.handle, 'resume');
      expect(await endOf(played)).toEqual(DONE);
      expect(played.scripted.attempts).toHaveLength(2);
    },
  );

  test('is answered, a second one too, and neither changes anything after the end [S7.1]', async () => {
    const played = await opened();
    const update = (name: string) => played.handle.executeUpdate(name, { args: [{ by: 'eve' }] });
    expect(await update('interruptTask')).toMatchObject({ accepted: true, code: 'requested' });
    expect(await update('interruptTask')).toMatchObject({ accepted: true, code: 'already_requested' });
    expect(await decide(played.handle)).toMatchObject({ code: 'approved', status: 'running' });
    expect(played.scripted.attempts).toHaveLength(0);
    expect(await update('resumeTask')).toMatchObject({ accepted: true, code: 'requested' });
    expect(await endOf(played)).toEqual(DONE);
    const types = (await journalOf(played)).map(({ type }) => type);
    expect(types.filter((type) => type === 'interrupted')).toHaveLength(1);
    await expect(update('interruptTask')).rejects.toThrow();
  });
});

test('the result of an approved call is the attempt’s own [S4.1]', async () => {
  const played = await opened();
  await decide(played.handle);
  expect((await played.handle.result()).result).toEqual(RESULT);
});
