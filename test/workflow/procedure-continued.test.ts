// Procedures that outlive a history: continued as new with undo stack, approvals, timers and answers (S3.6, case 28).
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { fingerprintOf } from '../../src/contract/fingerprint.ts';
import { findTemporal } from '../../src/embedded/index.ts';
import { APPROVAL_ACTION } from '../../src/task/approval.ts';
import type { ProcedureSnapshot } from '../../workflows/procedure-run.ts';
import type { TaskState } from '../../src/task/state.ts';
import { SEARCH_ATTRIBUTE_TYPES, addSearchAttribute } from '../../worker/index.ts';
import { newBook, useBook } from '../support/book-actions.ts';
import type { Book } from '../support/book-actions.ts';
import { deferred } from '../support/deferred.ts';
import { ANN, BOSS, ProcedureStage, until } from '../support/procedure-stage.ts';

let book: Book;
beforeEach(() => {
  book = useBook(newBook());
});

const booked = (stops: number): string[] =>
  Array.from({ length: stops }, (_, index) => `book stop ${index + 1}`);

describe('on a server that wants histories of 40 events', () => {
  let stage: ProcedureStage;

  beforeAll(async () => {
    const { path } = await findTemporal();
    const extraArgs = ['--dynamic-config-value', 'limit.historyCount.suggestContinueAsNew=40'];
    const executable = { type: 'existing-path' as const, path };
    const env = await TestWorkflowEnvironment.createLocal({ server: { executable, ui: false, extraArgs } });
    for (const name of Object.keys(SEARCH_ATTRIBUTE_TYPES))
      await addSearchAttribute(env.connection, 'default', name);
    stage = await ProcedureStage.open({ server: { kind: 'local', env, close: () => env.teardown() } });
  });
  afterAll(async () => {
    await stage?.holdfast.close();
    await stage?.holdfast.env.teardown();
  });

  /** How many runs a task took. */
  async function runs(taskId: string): Promise<number> {
    let count = 0;
    for await (const _run of stage.holdfast.temporal.workflow.list({ query: `WorkflowId = '${taskId}'` }))
      count += 1;
    return count;
  }

  /** What its last run was told of the time that people took for steps that are left behind. */
  async function waitsCarried(taskId: string): Promise<number> {
    const { events } = await stage.holdfast.temporal.workflow.getHandle(taskId).fetchHistory();
    const input = events?.[0]?.workflowExecutionStartedEventAttributes?.input?.payloads?.[0]?.data ?? [];
    const { carried } = JSON.parse(Buffer.from(input).toString()) as { carried?: ProcedureSnapshot };
    return carried?.journal.state.past?.humanWaitMs ?? 0;
  }

  test('no step is done twice, and a failure at the end undoes the first run’s steps too, newest first [S3.6, S6.3, case 28]', async () => {
    const taskId = await stage.start('tour', { stops: 12, fail: true });
    await until(async () => (await stage.status(taskId)) === 'awaiting_approval');
    expect(book.log).toEqual(booked(12));
    expect(await stage.holdfast.client.decide(taskId, BOSS, { kind: 'approve' })).toMatchObject({
      code: 'approved',
    });
    const answer = await stage.ended(taskId);
    expect(answer).toMatchObject({ status: 'failed', effect: 'rolled_back', error: { code: 'sold_out' } });
    const undone = booked(12)
      .toReversed()
      .map((entry) => entry.replace('book', 'cancel'));
    expect(book.log).toEqual([...booked(12), ...undone]);
    await until(async () => (await runs(taskId)) > 3);
  });

  test('a part whose undoing is continued as new is undone once, and its failure told [S3.6, S6.3]', async () => {
    const taskId = await stage.start('long_part', { stops: 8 });
    expect(await stage.ended(taskId)).toMatchObject({ status: 'completed', result: { failed: true } });
    const undone = booked(8)
      .toReversed()
      .map((entry) => entry.replace('book', 'cancel'));
    expect(book.log).toEqual([...booked(8), ...undone, 'book train']);
    await until(async () => (await runs(taskId)) > 2);
  });

  test('what came first the first time comes first again: a race has one winner [S3.6]', async () => {
    const taskId = await stage.start('race', { turns: 8 });
    const answer = await stage.ended(taskId);
    expect(answer).toMatchObject({ status: 'completed' });
    expect(book.log).toHaveLength(8);
  });

  test('a step without an effect that ends as the history grows long is told in the next run, and not done again [S3.6]', async () => {
    const taskId = await stage.start('survey', { looks: 20 });
    expect(await stage.ended(taskId)).toMatchObject({
      status: 'completed',
      result: { looks: 20, booked: 0 },
    });
    expect(book.log).toEqual(Array.from({ length: 20 }, (_, index) => `look place ${index + 1}`));
    await until(async () => (await runs(taskId)) > 2);
  });

  test('a decision for a step that begins many runs later is held over all of them [S3.6, S4.3, case 28] approval', async () => {
    const gate = deferred();
    book.gates.set('stop 1', gate.promise);
    const taskId = await stage.start('tour', { stops: 12 });
    await until(() => stage.hasStep(taskId, 'stop', 'running'));
    const policy = { roles: ['boss'], onExpiry: 'remind', expiresIn: '1h' };
    const fingerprint = fingerprintOf('local', APPROVAL_ACTION, { view: { stops: 12 }, policy });
    const decision = { kind: 'approve', callId: 'home#1', fingerprint } as const;
    expect(await stage.holdfast.client.decide(taskId, BOSS, decision)).toMatchObject({ code: 'held' });
    gate.resolve();
    expect(await stage.ended(taskId)).toMatchObject({ status: 'completed', result: { stops: 12 } });
    await until(async () => (await runs(taskId)) > 1);
  });

  test('what a step was answered, and that its approval is closed, outlives it over many runs [S3.6, S4.3, S10.3, case 28] approval', async () => {
    const taskId = await stage.start('asked_survey', { looks: 15 });
    const { client, temporal } = stage.holdfast;
    const isAsked = async (callId: string) =>
      until(async () => (await client.detail(taskId, ANN)).approval?.callId === callId);
    const decide = (decision: object, by = BOSS) =>
      client.decide(taskId, by, { kind: 'approve', callId: 'go#1', ...decision });
    await isAsked('go#1');
    expect(await decide({ decisionId: 'click' })).toMatchObject({ code: 'approved' });
    await isAsked('home#1');
    await until(async () => (await runs(taskId)) > 1);
    const state = await temporal.workflow.getHandle(taskId).query<TaskState>('task');
    expect(state.steps?.map(({ step }) => step)).not.toContain('go');

    expect(await decide({ decisionId: 'click' })).toMatchObject({ accepted: true, code: 'approved' });
    const late = await decide({ kind: 'reject', decisionId: 'late', reason: 'no' });
    expect(late).toMatchObject({ accepted: false, code: 'already_decided' });
    expect(await decide({ callId: 'nowhere#1' })).toMatchObject({ accepted: false, code: 'not_open' });
    expect(await decide({ callId: 'home#1' })).toMatchObject({ code: 'approved' });
    expect(await stage.ended(taskId)).toMatchObject({ status: 'completed', result: { looks: 15 } });
    expect(await decide({ decisionId: 'click' })).toMatchObject({ accepted: true, code: 'approved' });

    const audit = await client.audit(taskId, ANN);
    const ignored = audit.filter(({ type }) => type === 'decision_ignored').map(({ data }) => data);
    const who = { by: 'bea', roles: ['boss'] };
    expect(ignored).toMatchObject([
      { ...who, kind: 'reject', code: 'already_decided', callId: 'go#1', decisionId: 'late', reason: 'no' },
      { ...who, kind: 'approve', code: 'not_open', callId: 'nowhere#1' },
    ]);
    expect(await waitsCarried(taskId)).toBeGreaterThan(0);
  });

  test('decisions sent while a run continues as new are not lost [S3.6, case 28] approval', async () => {
    const tasks = await Promise.all([1, 2, 3, 4].map((stops) => stage.start('tour', { stops })));
    await Promise.all(
      tasks.map(async (taskId) => {
        await until(async () => (await stage.status(taskId)) === 'awaiting_approval');
        const handle = stage.holdfast.temporal.workflow.getHandle(taskId);
        // Enough that changes nothing to fill the history, and the decision in the midst of it.
        const noise = Array.from({ length: 60 }, () =>
          handle.signal('approve', { callId: 'home#9', by: ANN }),
        );
        const decision = stage.holdfast.client.decide(taskId, BOSS, { kind: 'approve', callId: 'home#1' });
        // Some of the noise may come when all is over.
        await Promise.all([Promise.allSettled(noise), decision]);
        expect(await stage.ended(taskId)).toMatchObject({ status: 'completed' });
      }),
    );
    expect(book.log.filter((entry) => entry === 'book last')).toHaveLength(4);
  });
});
