import { describe, expect, it } from 'vitest';
import { createConnector } from '../../../src/mcp-client/connector.ts';
import type { TaskReading } from '../../../src/mcp-client/outcome.ts';
import { watchTasks } from '../../../src/mcp-client/watch.ts';
import type { JsonObject } from '../../../src/task/json.ts';
import { HandDrivenClock } from '../../support/hand-driven-clock.ts';
import { handDrivenLink } from '../../support/hand-driven-link.ts';
import type { Answer, HandDrivenRequest } from '../../support/hand-driven-link.ts';

const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';

/** A server with tasks that the test moves, and streams that it breaks. */
function rig({ listens = 'silent' }: { listens?: Answer } = {}) {
  const tasks: Record<string, { status: string; message: string; at: number }> = {};
  const wire = (taskId: string): JsonObject => {
    const { status, message, at } = tasks[taskId] ?? { status: 'working', message: '?', at: 0 };
    const result = { resultType: 'complete', content: [] };
    return {
      ...{ taskId, status, statusMessage: message, lastUpdatedAt: new Date(at).toISOString() },
      ...(status === 'completed' && { result }),
      ...{ pollIntervalMs: 1_000 },
    };
  };
  let away: string | null = null;
  const driven = handDrivenLink(
    ({ method, params }) => {
      if (method === 'subscriptions/listen') return listens;
      if (away === null) return { kind: 'result', result: wire(String(params.taskId)) };
      return {
        kind: 'error',
        error: { code: -32_603, message: away, data: { code: away, retryable: true } },
      };
    },
    { hasTasks: true },
  );
  const told: TaskReading[] = [];
  const gone = new AbortController();
  let isOver = false;
  const watch = async (...taskIds: string[]) => {
    for await (const reading of watchTasks(driven.parts, taskIds, { signal: gone.signal, readIdleMs: 5_000 }))
      told.push(reading);
    isOver = true;
  };
  const streams = () => driven.requests.filter(({ method }) => method === 'subscriptions/listen');
  const over = (stream: HandDrivenRequest, method: string, params: JsonObject) =>
    stream.notify({
      method,
      params: { ...params, _meta: { ...(params._meta as JsonObject), [SUBSCRIPTION]: stream.id } },
    });
  return {
    away: (code: string | null) => void (away = code),
    ...{ watch, told, gone, streams, clock: driven.clock, isOver: () => isOver },
    move: (taskId: string, message: string, status = 'working') =>
      void (tasks[taskId] = { status, message, at: (tasks[taskId]?.at ?? 0) + 1_000 }),
    acknowledge: (stream: HandDrivenRequest, ...taskIds: string[]) =>
      over(stream, 'notifications/subscriptions/acknowledged', { notifications: { taskIds } }),
    hint: (stream: HandDrivenRequest, taskId: string, meta: JsonObject = {}) =>
      over(stream, 'notifications/tasks', { ...wire(taskId), _meta: meta }),
    reads: () =>
      driven.requests.filter(({ method }) => method === 'tasks/get').map(({ params }) => params.taskId),
    messages: () => told.map(({ taskId, statusMessage }) => `${taskId} ${statusMessage}`),
  };
}

/** Everything that is ready happens; no time passes. */
async function quiet() {
  for (let turns = 0; turns < 20; turns += 1) await new Promise((resolve) => setImmediate(resolve));
}

describe('a watch that is pushed to', () => {
  it('reads each task once the stream stands and after each hint, and tells what the read says [M6.3]', async () => {
    const { watch, streams, acknowledge, hint, move, reads, messages, clock, isOver } = rig();
    move('T', 'one');
    move('U', 'one');
    void watch('T', 'U');
    await quiet();
    expect(messages()).toEqual(['T one', 'U one']);
    const [stream] = streams() as [HandDrivenRequest];
    move('T', 'before the stream stood');
    acknowledge(stream, 'T', 'U');
    await quiet();
    expect(messages().at(-1)).toBe('T before the stream stood');
    const before = reads().length;
    clock.pass(29_000);
    await quiet();
    expect(reads().length).toBe(before); // nothing was said, nothing is polled
    move('U', 'two');
    hint(stream, 'U');
    move('U', 'three, while the hint was on its way');
    await quiet();
    hint(stream, 'U');
    await quiet();
    expect(messages().slice(3)).toEqual(['U three, while the hint was on its way']);
    for (const taskId of ['T', 'U']) {
      move(taskId, 'done', 'completed');
      hint(stream, taskId);
      await quiet();
    }
    expect([isOver(), messages().slice(-2), stream.signal.aborted]).toEqual([
      true,
      ['T done', 'U done'],
      true,
    ]);
  });

  it('restores its stream under a new id with what is still open, and a hint over the old one is dropped [M6.3]', async () => {
    const { watch, streams, acknowledge, hint, move, reads, messages, clock } = rig();
    move('T', 'one');
    move('U', 'one');
    void watch('T', 'U');
    await quiet();
    const [old] = streams() as [HandDrivenRequest];
    acknowledge(old, 'T', 'U');
    move('T', 'done', 'completed');
    hint(old, 'T');
    await quiet();
    old.end({ kind: 'failure', failure: 'lost', message: 'cut' });
    move('U', 'while no stream stood');
    await quiet();
    expect(messages().at(-1)).toBe('U while no stream stood');
    clock.pass(250);
    await quiet();
    const [, fresh] = streams() as [HandDrivenRequest, HandDrivenRequest];
    expect(fresh.params).toEqual({ notifications: { taskIds: ['U'] } });
    expect(fresh.id).not.toBe(old.id);
    acknowledge(fresh, 'U');
    await quiet();
    const before = reads().length;
    move('U', 'two');
    hint(old, 'U');
    await quiet();
    expect(reads().length).toBe(before);
    hint(fresh, 'U');
    await quiet();
    expect(messages().at(-1)).toBe('U two');
  });

  it('reads everything when the stream says that something was dropped, and each task now and then when it says nothing [M6.1] [M6.3]', async () => {
    const { watch, streams, acknowledge, hint, move, messages, clock } = rig();
    for (const taskId of ['T', 'U']) move(taskId, 'one');
    void watch('T', 'U');
    await quiet();
    const [stream] = streams() as [HandDrivenRequest];
    acknowledge(stream, 'T', 'U');
    await quiet();
    for (const taskId of ['T', 'U']) move(taskId, 'two');
    hint(stream, 'T', { 'holdfast/refetch': { dropped: 1 } });
    await quiet();
    expect(messages().slice(2)).toEqual(['T two', 'U two']);
    move('U', 'three, and nobody said so');
    clock.pass(30_000);
    await quiet();
    expect(messages().at(-1)).toBe('U three, and nobody said so');
  });
});

describe('a watch of a server that does not push', () => {
  it.each([
    ['has no such method', { kind: 'error', error: { code: -32_601, message: 'no such method' } }],
    ['ends the stream and honours nothing', { kind: 'result', result: {} }],
  ] as [string, Answer][])(
    'because it %s: it polls at the server’s interval and does not ask again [M6.3]',
    async (_why, listens) => {
      const { watch, streams, move, messages, reads, clock, isOver, gone } = rig({ listens });
      move('T', 'one');
      void watch('T');
      await quiet();
      clock.pass(999);
      await quiet();
      const before = reads().length;
      move('T', 'two');
      clock.pass(1_001);
      await quiet();
      expect([reads().length - before, messages().at(-1)]).toEqual([1, 'T two']);
      for (let polls = 0; polls < 20; polls += 1) {
        clock.pass(1_000);
        await quiet();
      }
      expect(messages()).toEqual(['T one', 'T two']);
      expect(streams()).toHaveLength(1);
      gone.abort();
      await quiet();
      expect(isOver()).toBe(true);
    },
  );

  it.each([
    ['is in trouble', undefined],
    ['has as many streams as it gives one caller', { code: 'too_many_listens' }],
  ])('because it %s: it polls, and asks again ever less often [M6.3]', async (_why, data) => {
    const { watch, streams, move, clock } = rig({
      listens: { kind: 'error', error: { code: -32_603, message: 'm', data } },
    });
    move('T', 'one');
    void watch('T');
    for (let seconds = 0; seconds < 60; seconds += 1) {
      await quiet();
      clock.pass(1_000);
    }
    expect(streams().length).toBeGreaterThan(4);
    expect(streams().length).toBeLessThan(20);
  });

  it('a read that meets a store or an engine that is away is repeated, and ends no watch [M6.3]', async () => {
    const { watch, move, messages, clock, away } = rig({ listens: { kind: 'result', result: {} } });
    move('T', 'one');
    void watch('T');
    await quiet();
    away('ledger_unavailable');
    for (let seconds = 0; seconds < 20; seconds += 1) {
      await quiet();
      clock.pass(1_000);
    }
    away(null);
    move('T', 'two');
    for (let seconds = 0; seconds < 20; seconds += 1) {
      await quiet();
      clock.pass(1_000);
    }
    expect(messages()).toEqual(['T one', 'T two']);
  });
});

it('a watch that is given up ends at once, in the midst of a handshake too [M6.3]', async () => {
  const connector = createConnector(() => new Promise(() => undefined));
  const parts = { connector, clock: new HandDrivenClock(), random: () => 0.5 };
  const gone = new AbortController();
  const first = watchTasks(parts, ['T'], { signal: gone.signal, readIdleMs: 5_000 }).next();
  await quiet();
  gone.abort();
  expect(await first).toEqual({ done: true, value: undefined });
});
