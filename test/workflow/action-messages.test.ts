/** Workflow `action` spoken to while it runs: cancel in each phase and by each way, resolutions, queries, floods. */
import { setImmediate } from 'node:timers/promises';
import { Context } from '@temporalio/activity';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TaskEvent } from '../../src/task/event.ts';
import type { OperationOutcome, TaskOutcome } from '../../src/task/outcome.ts';
import type { MessageReply } from '../../workflows/messages.ts';
import { deferred } from '../support/deferred.ts';
import { attention, committed, mismatch, notYet, rateLimited, released } from '../support/outcomes.ts';
import type { PlanOverrides } from '../support/plans.ts';
import { away } from '../support/scripted-activities.ts';
import type { ActivityScript } from '../support/scripted-activities.ts';
import {
  WorkflowStage,
  eventsOf,
  historyOf,
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

const WAYS: [string, (handle: ActionHandle) => Promise<unknown>][] = [
  ['by signal', (handle) => handle.signal('cancel', { by: 'ann', reason: 'changed my mind' })],
  ['by update', (handle) => handle.executeUpdate('cancelTask', { args: [{ by: 'ann' }] })],
  ['by the engine', (handle) => handle.cancel()],
];
const CLOSED = { kind: 'closed' as const };
const CANCELLED = ['cancelled', 'none', 'cancelled', true];
const KEPT = ['completed', 'applied', 'committed', true];
const UNDONE = ['cancelled', 'rolled_back', 'cancelled_after_commit', true];

const begin = (script: ActivityScript, overrides: PlanOverrides = {}) =>
  stage.start(planned(overrides), script);
const ending = (outcome: TaskOutcome) => [
  outcome.status,
  outcome.effect,
  outcome.cause,
  outcome.cancelRequested,
];
const journalOf = (handle: ActionHandle) => handle.query<TaskEvent[]>('events');

/** An answer that is given once `open` is called, and a promise for its having been asked. */
function gated<A>(answer: A) {
  const [asked, gate] = [deferred(), deferred()];
  return {
    asked: asked.promise,
    open: () => gate.resolve(),
    answer: async () => (asked.resolve(), await gate.promise, answer),
  };
}

async function endOf({ handle, scripted }: Played): Promise<unknown[]> {
  const outcome = await handle.result();
  expect(scripted.unscripted).toEqual([]);
  return ending(outcome);
}

describe.each(WAYS)('a cancel %s', (way, cancel) => {
  test('while the task waits for its next try ends it at once, with nothing applied [S7.4][S7.5]', async () => {
    const played = await begin({ attempt: [rateLimited(600_000)], close: [CLOSED] });
    await stateWhen(played.handle, isInPhase('ready'));
    await cancel(played.handle);
    await stateWhen(played.handle, isInPhase('ended'));
    expect(await endOf(played)).toEqual(CANCELLED);
    const [note] = played.scripted.notes;
    expect(note).toMatchObject({
      type: 'cancel_requested',
      data: { by: way === 'by the engine' ? 'temporal' : 'ann' },
    });
  });

  test('while an attempt runs leaves it to finish: kept, and the task stays at work until then [S7.4][S7.5]', async () => {
    const attempt = gated(committed);
    const played = await begin({ attempt: [attempt.answer] });
    await attempt.asked;
    await cancel(played.handle);
    const state = await stateWhen(played.handle, ({ cancelRequested }) => cancelRequested);
    expect(state.phase.kind).toBe('working');
    attempt.open();
    expect(await endOf(played)).toEqual(KEPT);
    expect(await historyOf(played.handle)).not.toContain('ACTIVITY_TASK_CANCEL_REQUESTED');
  });

  test('while an attempt runs, with the effect to be undone, runs the rollback where nothing cuts it off [S7.4][S7.5][case 27]', async () => {
    const [attempt, rollback] = [gated(committed), gated({ kind: 'rolledBack' as const })];
    const played = await begin(
      { attempt: [attempt.answer], rollback: [rollback.answer] },
      { onCancel: 'rollback' },
    );
    await attempt.asked;
    await cancel(played.handle);
    attempt.open();
    await rollback.asked;
    await cancel(played.handle).catch(() => undefined);
    rollback.open();
    expect(await endOf(played)).toEqual(UNDONE);
  });

  test('aborts a running attempt where the contract allows, and settles what it did [S7.4][S7.5][case 26]', async () => {
    const asked = deferred();
    const untilCancelled = async (): Promise<OperationOutcome> => {
      const context = Context.current();
      asked.resolve();
      const beat = setInterval(() => context.heartbeat(), 50);
      return context.cancelled.finally(() => clearInterval(beat));
    };
    const played = await begin(
      { attempt: [untilCancelled, released], close: [CLOSED] },
      { cancelAttempt: 'abort' },
    );
    await asked.promise;
    const askedAt = Date.now();
    await cancel(played.handle);
    await stateWhen(played.handle, isInPhase('ended'));
    expect(Date.now() - askedAt).toBeLessThan(5_000);
    expect(await endOf(played)).toEqual(CANCELLED);
    expect(played.scripted.attempts.map(({ purpose }) => purpose)).toEqual(['execute', 'settle']);
    expect(played.scripted.notes.map(({ type }) => type)).toEqual([
      'cancel_requested',
      'attempt_abort_requested',
      'step_lost',
    ]);
  });

  test('while the effect is not visible yet waits for the proof, then keeps it [S7.4][S2.6]', async () => {
    const played = await begin({ attempt: [notYet, committed] }, { deadlines: { verifyMs: 3_600_000 } });
    await stateWhen(played.handle, isInPhase('verifying'));
    await cancel(played.handle);
    expect(await endOf(played)).toEqual(KEPT);
  });

  test('while a person is waited for is recorded; their answer decides [S7.4][S3.5]', async () => {
    const played = await begin({ attempt: [attention], resolve: [({ end }) => ({ end })], close: [CLOSED] });
    await stateWhen(played.handle, isInPhase('needs_attention'));
    await cancel(played.handle);
    const state = await stateWhen(played.handle, ({ cancelRequested }) => cancelRequested);
    expect(state.phase.kind).toBe('needs_attention');
    await played.handle.signal('resolve', { as: 'not_applied', by: 'eve' });
    expect(await endOf(played)).toEqual(CANCELLED);
  });

  test('while the rollback of a failed verification runs changes nothing [S7.4][case 27]', async () => {
    const rollback = gated({ kind: 'rolledBack' as const });
    const played = await begin({ attempt: [mismatch], rollback: [rollback.answer] });
    await rollback.asked;
    await cancel(played.handle);
    rollback.open();
    expect(await endOf(played)).toEqual(['failed', 'rolled_back', 'verify_failed', true]);
  });

  test('while the end is being recorded comes too late for that end [S7.4]', async () => {
    const close = gated(CLOSED);
    const played = await begin(
      { attempt: [released], close: [close.answer] },
      { retry: { maximumRetries: 0 } },
    );
    await close.asked;
    await cancel(played.handle);
    close.open();
    expect((await endOf(played)).slice(0, 3)).toEqual(['failed', 'none', 'retries_exhausted']);
  });
});

describe('a cancel', () => {
  test('that comes with the start begins nothing [S7.4]', async () => {
    const { workflowId, scripted } = stage.scriptFor({ close: [CLOSED] });
    const handle = await stage.client.workflow.signalWithStart('action', {
      taskQueue: stage.taskQueue,
      workflowId,
      args: [planned({ inline: true })],
      signal: 'cancel',
      signalArgs: [{ by: 'ann' }],
    });
    expect(ending((await handle.result()) as TaskOutcome)).toEqual(CANCELLED);
    expect(scripted.names).toEqual(['closeOperation']);
  });

  test('is acknowledged as requested, again as requested before, and after the end not at all [S7.4] [mode 14]', async () => {
    const attempt = gated(committed);
    const { handle } = await begin({ attempt: [attempt.answer] });
    await attempt.asked;
    const cancel = () =>
      handle.executeUpdate<MessageReply, [object]>('cancelTask', { args: [{ by: 'ann' }] });
    expect(await cancel()).toEqual({ accepted: true, code: 'requested', status: 'running' });
    expect(await cancel()).toEqual({ accepted: true, code: 'already_requested', status: 'running' });
    attempt.open();
    await handle.result();
    await expect(cancel()).rejects.toThrow();
    expect((await journalOf(handle)).filter(({ type }) => type === 'cancel_requested')).toHaveLength(1);
  });

  test('without any content, or with anything as content, is a cancel all the same [S4.8]', async () => {
    for (const content of [[], [null], ['stop'], [{ by: { deep: true }, reason: 7 }]]) {
      const played = await begin({ attempt: [rateLimited(600_000)], close: [CLOSED] });
      await stateWhen(played.handle, isInPhase('ready'));
      await played.handle.signal('cancel', ...content);
      expect(await endOf(played)).toEqual(CANCELLED);
      expect(played.scripted.notes[0]?.data).toMatchObject({ by: 'unknown' });
    }
  });
});

describe('a resolution', () => {
  const asked = (script: ActivityScript) => begin({ attempt: [attention], ...script });

  test.each([
    [
      'by signal',
      (handle: ActionHandle, as: string) => handle.signal('resolve', { as, by: 'eve', note: 'looked' }),
    ],
    [
      'by update',
      (handle: ActionHandle, as: string) =>
        handle.executeUpdate('resolveTask', { args: [{ as, by: 'eve', note: 'looked' }] }),
    ],
  ])('%s, each of the three [S3.5]', async (_name, resolve) => {
    const expected = {
      applied: ['completed', 'applied', 'committed', false],
      not_applied: ['completed', 'applied', 'committed', false],
      abandoned: ['failed', 'unknown', 'abandoned', false],
    };
    for (const [as, end] of Object.entries(expected)) {
      const played = await asked({
        attempt: [attention, committed],
        resolve: [(request) => ({ end: request.end })],
      });
      await stateWhen(played.handle, isInPhase('needs_attention'));
      await resolve(played.handle, as);
      expect(await played.handle.result().then(ending)).toEqual(end);
      const second = played.scripted.attempts[1];
      expect(second?.purpose).toBe({ applied: 'settle', not_applied: 'execute', abandoned: undefined }[as]);
      const request = played.scripted.calls.find(({ name }) => name === 'resolveOperation')?.request;
      expect(request).toMatchObject({
        about: 'effect',
        attempt: 2,
        resolution: { as, by: 'eve', note: 'looked' },
      });
    }
  });

  test('is carried through however long the ledger is away [S3.5]', async () => {
    const played = await asked({ resolve: [away, away, away, ({ end }) => ({ end })] });
    await stateWhen(played.handle, isInPhase('needs_attention'));
    await played.handle.signal('resolve', { as: 'abandoned', by: 'eve' });
    expect(await endOf(played)).toEqual(['failed', 'unknown', 'abandoned', false]);
  });

  test('that is none, or that nobody asked for, is journaled as ignored and changes nothing [S3.5][S4.3]', async () => {
    const attempt = gated(attention);
    const played = await begin({ attempt: [attempt.answer], resolve: [({ end }) => ({ end })] });
    await attempt.asked;
    const resolve = (message: unknown) =>
      played.handle.executeUpdate<MessageReply, [unknown]>('resolveTask', { args: [message] });
    expect(await resolve({ as: 'abandoned', by: 'eve' })).toEqual({
      accepted: false,
      code: 'not_in_attention',
      status: 'running',
    });
    attempt.open();
    await stateWhen(played.handle, isInPhase('needs_attention'));
    const nonsense = [
      null,
      7,
      [],
      'abandoned',
      { as: 'maybe' },
      { as: 'applied', result: 'plain' },
      { as: 'applied', result: { kind: 'inline' } },
      { as: 'applied', result: { kind: 'inline', value: { text: 'half \ud83d' } } },
      { as: 'applied', result: { kind: 'inline', value: JSON.parse('['.repeat(200) + ']'.repeat(200)) } },
    ];
    for (const message of nonsense)
      expect(await resolve(message)).toEqual({
        accepted: false,
        code: 'invalid_resolution',
        status: 'needs_attention',
      });
    await played.handle.signal('resolve', { as: 'nobody knows' });
    await played.handle.signal('resolve', { as: 'abandoned', by: 'eve' });
    expect(await endOf(played)).toEqual(['failed', 'unknown', 'abandoned', false]);
    const ignored = (await journalOf(played.handle)).filter(({ type }) => type === 'message_ignored');
    expect(ignored).toHaveLength(nonsense.length + 2);
  });

  test('its half characters are replaced: the audit could never hold them, and the task never end [S10.3][S3.5]', async () => {
    const played = await asked({ resolve: [({ end }) => ({ end })] });
    await stateWhen(played.handle, isInPhase('needs_attention'));
    await played.handle.signal('cancel', { by: 'ann', reason: `${'x'.repeat(998)}😀 and more` });
    await played.handle.signal('resolve', { as: 'abandoned', by: 'eve\ud800', note: 'a\udc00b' });
    await played.handle.result();
    const journal = await journalOf(played.handle);
    const said = (type: string) => journal.find((event) => event.type === type)?.data;
    expect(said('cancel_requested')).toEqual({ by: 'ann', reason: `${'x'.repeat(998)}…` });
    expect(said('resolve_requested')).toMatchObject({
      resolution: { as: 'abandoned', by: 'eve\ufffd', note: 'a\ufffdb' },
    });
  });

  test('holds what a person may say and nothing more [S3.5][S2.10]', async () => {
    const played = await asked({ resolve: [({ end }) => ({ end })], attempt: [attention, committed] });
    await stateWhen(played.handle, isInPhase('needs_attention'));
    const result = { kind: 'inline', value: { reservationId: 'r-9' } };
    await played.handle.signal('resolve', {
      as: 'applied',
      by: 'e'.repeat(999),
      note: 'n'.repeat(9_999),
      result,
      extra: 'x',
    });
    await played.handle.result();
    const request = played.scripted.calls.find(({ name }) => name === 'resolveOperation')?.request;
    expect(request).toMatchObject({
      resolution: { as: 'applied', by: `${'e'.repeat(254)}…`, note: `${'n'.repeat(999)}…`, result },
    });
    expect(JSON.stringify(request)).not.toContain('extra');
  });
});

describe('the audit’s notes', () => {
  test('are with the audit before a person is waited for, even if the ledger is away for days [S10.3][S3.6]', async () => {
    const attempt = gated(attention);
    const record = Array<() => void>(2_000).fill(away);
    const played = await begin({ attempt: [attempt.answer], record, resolve: [({ end }) => ({ end })] });
    await attempt.asked;
    await played.handle.signal('resolve', { as: 'abandoned', by: 'too early' });
    attempt.open();
    await stateWhen(played.handle, isInPhase('needs_attention'));
    const inbox = async () => (await played.handle.describe()).typedSearchAttributes.getAll();
    await stage.server.env.sleep('12 hours');
    expect(await inbox()).toEqual([]);
    expect((await eventsOf(played.handle)).length).toBeLessThan(4_100);
    record.length = 0;
    await stage.server.env.sleep('2 minutes');
    await stateWhen(played.handle, () => played.scripted.notes.length > 0);
    expect(played.scripted.notes.map(({ type }) => type)).toEqual(['message_ignored']);
    while ((await inbox()).length === 0) await stateOf(played.handle);
    await played.handle.signal('resolve', { as: 'abandoned', by: 'eve' });
    expect(await endOf(played)).toEqual(['failed', 'unknown', 'abandoned', false]);
  });

  test('are with the audit before the task ends [S10.3]', async () => {
    const attempt = gated(committed);
    const played = await begin({ attempt: [attempt.answer] });
    await attempt.asked;
    await played.handle.signal('cancel', { by: 'ann' });
    await stateWhen(played.handle, ({ cancelRequested }) => cancelRequested);
    attempt.open();
    expect(await endOf(played)).toEqual(KEPT);
    expect(played.scripted.names).toEqual(['attemptOperation', 'recordNotes']);
    expect(played.scripted.notes.map(({ type }) => type)).toEqual(['cancel_requested']);
  });
});

describe('a query', () => {
  test('while an attempt runs answers, and neither repeats nor disturbs it [S3.1][case 6]', async () => {
    const attempt = gated(committed);
    const played = await begin({ attempt: [attempt.answer] });
    await attempt.asked;
    for (let count = 0; count < 20; count += 1) {
      await played.handle.signal('resolve', { as: 'abandoned', by: 'someone else' });
      expect((await stateOf(played.handle)).phase).toMatchObject({ kind: 'working', attempt: 1 });
    }
    attempt.open();
    expect((await endOf(played))[0]).toBe('completed');
    expect(played.scripted.attempts).toHaveLength(1);
  });

  test('writes no history [S3.1]', async () => {
    const { handle } = await stage.play(planned(), { attempt: [committed] });
    const before = (await eventsOf(handle)).length;
    await stateOf(handle);
    await journalOf(handle);
    expect((await eventsOf(handle)).length).toBe(before);
  });
});

describe('a flood of messages while a person is waited for', () => {
  const FLOOD = 4_200;
  const waiting = async () => {
    const played = await begin({ attempt: [attention], resolve: [({ end }) => ({ end })], close: [CLOSED] });
    await stateWhen(played.handle, isInPhase('needs_attention'));
    return played;
  };
  const flood = async (send: () => Promise<void>) => {
    for (let sent = 0; sent < FLOOD; sent += 100) await Promise.all(Array.from({ length: 100 }, send));
  };
  /** Not by query: this test server loses one that meets the continue-as-new. */
  const continued = async (handle: ActionHandle, first: string) => {
    while ((await handle.describe()).runId === first) await setImmediate();
  };
  /** Of ours: the engine's own names the patches that the run went by. */
  const shownIn = async (handle: ActionHandle) =>
    (await handle.describe()).typedSearchAttributes
      .getAll()
      .filter(({ key }) => key.name !== 'TemporalChangeVersion');

  test('fills no history: it continues as new, and nothing is lost [S3.6][case 28]', async () => {
    const { handle, scripted } = await waiting();
    const first = (await handle.describe()).runId;
    await flood(() => handle.signal('resolve', { as: 'nonsense' }));
    await continued(handle, first);
    const state = await stateWhen(handle, ({ seq }) => seq >= FLOOD);
    expect(state.phase.kind).toBe('needs_attention');
    await handle.signal('resolve', { as: 'abandoned', by: 'eve' });
    expect(ending(await handle.result())).toEqual(['failed', 'unknown', 'abandoned', false]);
    const { seq } = await stateOf(handle);
    expect(seq).toBe(3 + FLOOD + 4);
    const noted = new Set(scripted.notes.map(({ data }) => data['seq']));
    expect(noted.size).toBe(scripted.notes.length);
    expect(scripted.notes.map(({ type }) => type)).toContain('resolve_requested');
    expect(noted.size).toBeGreaterThanOrEqual(1_000);
    expect((await eventsOf(handle)).length).toBeLessThan(4_500);
    expect(await shownIn(handle)).toEqual([]);
  }, 180_000);

  test('that change nothing continues as new all the same [S3.6][case 28]', async () => {
    const { handle } = await waiting();
    const first = (await handle.describe()).runId;
    await flood(() => handle.signal('cancel', { by: 'ann' }));
    await continued(handle, first);
    await handle.signal('resolve', { as: 'not_applied', by: 'eve' });
    expect(ending(await handle.result())).toEqual(CANCELLED);
    expect((await eventsOf(handle)).length).toBeLessThan(4_000);
  }, 180_000);
});
