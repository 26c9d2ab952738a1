/** Workflow `action` on the real server, for what the time-skipping one has not: restarts, limits, search attributes. */
import { setTimeout as delay } from 'node:timers/promises';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findTemporal } from '../../src/embedded/index.ts';
import { addSearchAttribute } from '../../worker/index.ts';
import { attention, committed, notYet, rateLimited, released } from '../support/outcomes.ts';
import { decision, ruleOf } from '../support/approvals.ts';
import type { TaskEvent } from '../../src/task/event.ts';
import type { OperationOutcome } from '../../src/task/outcome.ts';
import { WorkflowStage, eventsOf, isInPhase, planned, stateWhen } from '../support/workflow-stage.ts';

/** temporal.api.enums.v1.WorkflowTaskFailedCause */
const BAD_SEARCH_ATTRIBUTES = 23;

let stage: WorkflowStage;
beforeAll(async () => {
  stage = await WorkflowStage.open('local');
});
afterAll(() => stage.close());

describe('a worker that restarts with a cold cache', () => {
  test('goes on from the journal: waiting for a person, backing off, verifying [S3.1][S3.3][case 15]', async () => {
    const waiting = await stage.start(planned(), { attempt: [attention], resolve: [({ end }) => ({ end })] });
    const backing = await stage.start(
      planned({ retry: { initialIntervalMs: 4_000, maximumIntervalMs: 4_000 } }),
      { attempt: [released, committed] },
    );
    const polling = await stage.start(planned({ deadlines: { verifyMs: 86_400_000 } }), {
      attempt: [notYet, committed],
    });
    await stateWhen(waiting.handle, isInPhase('needs_attention'));
    await stateWhen(backing.handle, ({ attempts }) => attempts[0]?.outcome === 'released');
    await stateWhen(polling.handle, ({ attempts }) => attempts.length >= 1);
    const journals = () =>
      Promise.all([waiting, backing, polling].map(({ handle }) => handle.query<TaskEvent[]>('events')));
    const before = await journals();
    await stage.stopWorker();
    await stage.startWorker();
    const after = await journals();
    expect(after.map((events, index) => events.slice(0, before[index]?.length))).toEqual(before);
    await waiting.handle.signal('resolve', { as: 'abandoned', by: 'eve' });
    expect((await waiting.handle.result()).cause).toBe('abandoned');
    expect((await backing.handle.result()).status).toBe('completed');
    expect((await polling.handle.result()).status).toBe('completed');
    for (const { scripted } of [waiting, backing, polling]) expect(scripted.unscripted).toEqual([]);
  });
});

describe('what the engine is told', () => {
  test('one try an activity, no schedule-to-start timeout, no run or execution timeout [S3.8][S5.2]', async () => {
    const { handle } = await stage.play(planned(), { attempt: [committed] });
    const events = await eventsOf(handle);
    const started = events[0]?.workflowExecutionStartedEventAttributes;
    const scheduled = events.find(
      ({ activityTaskScheduledEventAttributes: given }) => given,
    )?.activityTaskScheduledEventAttributes;
    const seconds = (duration: { seconds?: unknown } | null | undefined) => Number(duration?.seconds ?? 0);
    expect([
      seconds(started?.workflowExecutionTimeout),
      seconds(started?.workflowRunTimeout),
      started?.retryPolicy ?? null,
    ]).toEqual([0, 0, null]);
    expect(scheduled?.retryPolicy?.maximumAttempts).toBe(1);
    // The server fills in what was left out with the longest a task may take.
    expect(scheduled?.scheduleToStartTimeout).toEqual(scheduled?.scheduleToCloseTimeout);
  });

  test('an input of 1 MiB and many attempts stay below the engine’s 50 MB: size, too, continues as new [S3.6][case 14][case 28]', async () => {
    const input = { text: 'x'.repeat(1024 * 1024) };
    const attempt = [...Array<OperationOutcome>(12).fill(rateLimited(1)), committed];
    const argument = { ...planned({ retry: { maximumRetries: 20 } }), input };
    const { outcome, handle } = await stage.play(argument, { attempt });
    expect(outcome.status).toBe('completed');
    const { historySize } = (await handle.describe()) as unknown as { historySize: number };
    expect(historySize).toBeLessThan(10 * 1024 * 1024);
    const [first] = await eventsOf(handle);
    expect(first?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId).not.toBe('');
  });
});

test('an answer among thousands of messages, all heard by a new worker at once, counts, and the inbox is left [S3.6][S4.8]', async () => {
  const { handle } = await stage.start(planned(), {
    attempt: [attention],
    resolve: [({ end }) => ({ end })],
  });
  await stateWhen(handle, isInPhase('needs_attention'));
  await stage.stopWorker();
  for (let sent = 0; sent < 4_100; sent += 100)
    await Promise.all(Array.from({ length: 100 }, () => handle.signal('resolve', { as: 'nonsense' })));
  await handle.signal('resolve', { as: 'abandoned', by: 'eve' });
  await stage.startWorker();
  expect((await handle.result()).cause).toBe('abandoned');
  const [first] = await eventsOf(handle);
  expect(first?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId).not.toBe('');
  const shown = (await handle.describe()).typedSearchAttributes.getAll().map(({ key }) => key.name);
  expect(shown.filter((name) => name.startsWith('Holdfast'))).toEqual([]);
}, 180_000);

test('ten edits of 700 KB, all heard by a new worker at once, are each checked, and the approval after them counts [S4.2][case 14]', async () => {
  const refused = { kind: 'refused' as const, message: 'no' };
  const played = await stage.start(planned({ approval: ruleOf({}) }), {
    attempt: [committed],
    edit: Array<typeof refused>(10).fill(refused),
  });
  const { handle, scripted } = played;
  await stateWhen(handle, isInPhase('awaiting_approval'));
  await stage.stopWorker();
  for (let sent = 0; sent < 10; sent += 1)
    await handle.signal('edit', decision({ kind: 'edit', arguments: { sku: '語'.repeat(233_000), sent } }));
  await stage.startWorker();
  while (scripted.names.filter((name) => name === 'planEdit').length < 10) await delay(50);
  await handle.signal('approve', decision({ kind: 'approve' }));
  expect((await handle.result()).status).toBe('completed');
  expect(scripted.unscripted).toEqual([]);
}, 60_000);

describe('on a server without the search attributes', () => {
  test('a task that needs a person stands still at that point, loses nothing, and goes on by itself once they are registered [S3.5]', async () => {
    const plain = await WorkflowStage.open(await plainServer());
    const attempt = [attention];
    const { handle, scripted } = await plain.start(
      planned(),
      { attempt, resolve: [({ end }) => ({ end })] },
      { workflowTaskTimeout: '2s' },
    );
    const refused = async () =>
      (await eventsOf(handle)).find(({ workflowTaskFailedEventAttributes: failed }) => failed)
        ?.workflowTaskFailedEventAttributes;
    while ((await refused()) === undefined) await delay(50);
    expect((await refused())?.cause).toBe(BAD_SEARCH_ATTRIBUTES);
    const namespace = plain.server.env.namespace ?? 'default';
    for (const name of ['HoldfastStatus', 'HoldfastWaitingSince'])
      await addSearchAttribute(plain.server.env.connection, namespace, name);
    await stateWhen(handle, isInPhase('needs_attention'));
    await handle.signal('resolve', { as: 'abandoned', by: 'eve' });
    expect((await handle.result()).cause).toBe('abandoned');
    expect(scripted.attempts).toHaveLength(1);
    await plain.close();
  });
});

async function plainServer() {
  const { path } = await findTemporal();
  const env = await TestWorkflowEnvironment.createLocal({
    server: { executable: { type: 'existing-path', path }, ui: false },
  });
  return { kind: 'local' as const, env, close: () => env.teardown() };
}
