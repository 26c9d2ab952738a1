/** Listens over a client, a clock and a reader that are driven by hand. */
import { getEventListeners } from 'node:events';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { TaskAnswer } from '../../src/client/task-client.ts';
import { HoldfastError } from '../../src/contract/error.ts';
import { FIXED_GATEWAY_LIMITS } from '../../src/contract/gateway-limits.ts';
import { DEFAULT_LIMITS } from '../../src/gateway/limits.ts';
import type { GatewayLimits } from '../../src/gateway/limits.ts';
import { TaskListens } from '../../src/gateway/tasks/listens.ts';
import type { WireTask } from '../../src/gateway/tasks/task-outbox.ts';
import { detailedTask } from '../../src/gateway/tasks/wire-task.ts';
import { deferred } from '../support/deferred.ts';
import { drivenClient, LOCAL, openApproval } from '../support/driven-gateway.ts';
import { HandDrivenClock } from '../support/hand-driven-clock.ts';
import { keepSeed, sampled } from '../support/property.ts';

const POLL = DEFAULT_LIMITS.listenPollMs;
/** Between two reads that hints lead to. */
const INTERVAL = 50;
const FOREIGN = { tenant: 'other', subject: 'eve', roles: [] };

function setUp(limits: Partial<GatewayLimits> = {}) {
  const client = drivenClient();
  const clock = new HandDrivenClock();
  const shutdown = new AbortController();
  const warnings: string[] = [];
  const log = { info: vi.fn(), warn: (_fields: object, text: string) => warnings.push(text), error: vi.fn() };
  const listens = new TaskListens({
    client,
    clock,
    log,
    limits: { ...DEFAULT_LIMITS, ...limits },
    shutdown: shutdown.signal,
  });
  const start = async (to: string, principal = LOCAL) =>
    (await client.start({ action: 'transfer', args: { to, amount: 1 }, principal })).taskId;
  return {
    client,
    clock,
    shutdown,
    warnings,
    listens,
    start,
    listen: (...ids: string[]) => reader(listens, ids),
  };
}

/** One listen, and who reads it: at once, or only as often as `reads` allows. */
function reader(listens: TaskListens, taskIds: string[], principal = LOCAL) {
  const said: ({ acknowledged: string[] } | WireTask)[] = [];
  const leave = new AbortController();
  let held: ReturnType<typeof deferred<void>> | null = null;
  let sending = 0;
  const over = listens.serve(
    taskIds,
    { principal, canElicit: true, signal: leave.signal },
    {
      acknowledge: async (acknowledged) => void said.push({ acknowledged }),
      async send(task) {
        sending += 1;
        expect(sending).toBe(1);
        await held?.promise;
        said.push(task);
        sending -= 1;
      },
    },
  );
  over.catch(() => undefined);
  const told = () => said.filter((each): each is WireTask => 'status' in each);
  return {
    said,
    over,
    leave: () => leave.abort(),
    /** What was said of each task, in order, as its status messages. */
    told,
    last: (taskId: string) => told().findLast((task) => task['taskId'] === taskId),
    stall: () => (held ??= deferred<void>()),
    goOn() {
      held?.resolve();
      held = null;
    },
    acknowledged: () => vi.waitFor(() => expect(said[0]).toHaveProperty('acknowledged')),
  };
}
const turns = async (count = 20) => {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};
const messages = (tasks: WireTask[]) => tasks.map((task) => task['statusMessage']);

describe('a listen', () => {
  it('acknowledges the caller’s own tasks alone, then says where each stands [M2.5] [M2.6]', async () => {
    const { start, listen } = setUp();
    const [own, other, foreign] = [await start('a'), await start('b'), await start('c', FOREIGN)];
    const { said } = listen(own, foreign, 'task_unknown', other, own);
    await vi.waitFor(() => expect(said).toHaveLength(3));
    expect(said).toMatchObject([
      { acknowledged: [own, other] },
      { taskId: own, status: 'working' },
      { taskId: other, status: 'working' },
    ]);
  });

  it('reads so many tasks at one time, for all who listen, and the others after them [M2.5]', async () => {
    const { client, start, listen } = setUp();
    const most = FIXED_GATEWAY_LIMITS.listenReadsMax.value;
    const ids = await Promise.all(Array.from({ length: most + 8 }, (_, at) => start(`a${at}`)));
    const letGo = client.hold('get');
    const listens = [listen(...ids.slice(0, most - 2)), listen(...ids.slice(most - 2))];
    await turns();
    expect(client.reads).toBe(most);
    letGo();
    for (const { told } of listens) await vi.waitFor(() => expect(told()).not.toHaveLength(0));
    expect(listens.map(({ said }) => (said[0] as { acknowledged: string[] }).acknowledged)).toEqual([
      ids.slice(0, most - 2),
      ids.slice(most - 2),
    ]);
    expect(client.reads).toBe(ids.length);
  });

  it('that is over is held by none of the signals it heeded [M2.5]', async () => {
    const { client, clock, shutdown, start, listen } = setUp();
    const { over } = listen(await start('a'));
    await turns();
    expect(getEventListeners(shutdown.signal, 'abort')).toHaveLength(1);
    client.complete('done');
    clock.pass(INTERVAL);
    await over;
    expect(getEventListeners(shutdown.signal, 'abort')).toEqual([]);
  });

  it('of nobody’s tasks is over with its acknowledgement, for foreign ids as for unknown ones [M2.5] [M2.6]', async () => {
    const { start, listen, listens } = setUp();
    const foreign = listen(await start('c', FOREIGN));
    const unknown = listen('task_unknown');
    await Promise.all([foreign.over, unknown.over]);
    expect(foreign.said).toEqual([{ acknowledged: [] }]);
    expect(unknown.said).toEqual(foreign.said);
    expect(listens.watched).toBe(0);
  });

  it('says each state that a hint led to, in the words of tasks/get, up to the end, and is over then [M2.5]', async () => {
    const { client, clock, start, listen, listens } = setUp();
    const taskId = await start('a');
    const listener = listen(taskId);
    await vi.waitFor(() => expect(listener.told()).toHaveLength(1));
    client.move({ status: 'awaiting_approval', approval: openApproval() });
    clock.pass(INTERVAL); // hints that come sooner wait for each other
    await vi.waitFor(() => expect(listener.last(taskId)).toMatchObject({ status: 'input_required' }));
    client.move({ status: 'running', approval: null, statusMessage: 'approved' });
    clock.pass(INTERVAL);
    await vi.waitFor(() => expect(listener.last(taskId)).toMatchObject({ statusMessage: 'approved' }));
    client.complete({ receipt: 'r' });
    clock.pass(INTERVAL);
    await listener.over;
    const answer = client.answerOf(taskId);
    expect(listener.last(taskId)).toEqual(detailedTask(answer, { principal: LOCAL, canElicit: true }));
    expect(listener.told()).toHaveLength(4);
    expect([listens.watched, client.subscribers, clock.pending]).toEqual([0, 0, 0]);
  });

  it('hears of what no hint told within one poll, and is told nothing while nothing changed [M2.5]', async () => {
    const { client, clock, start, listen } = setUp();
    const taskId = await start('a');
    const listener = listen(taskId);
    await vi.waitFor(() => expect(listener.told()).toHaveLength(1));
    client.isDeaf = true;
    client.move({ statusMessage: 'on its way' });
    await turns();
    expect(listener.told()).toHaveLength(1);
    for (let polls = 0; polls < 3; polls += 1) {
      clock.pass(POLL);
      await turns();
    }
    expect(messages(listener.told())).toEqual(['running attempt 1', 'on its way']);
    expect(client.reads).toBe(4);
  });

  it('shares one watch with all others of its task: one subscription, one poll, one read for all [M2.5]', async () => {
    const { client, clock, start, listen, listens } = setUp();
    const taskId = await start('a');
    const listeners = [listen(taskId), listen(taskId), listen(taskId)];
    await vi.waitFor(() => listeners.forEach(({ told }) => expect(told()).toHaveLength(1)));
    expect([listens.watched, client.subscribers, clock.pending]).toEqual([1, 1, 1 + listeners.length]);
    clock.pass(INTERVAL);
    const before = client.reads;
    client.move({ statusMessage: 'on its way' });
    await vi.waitFor(() => listeners.forEach(({ told }) => expect(told()).toHaveLength(2)));
    expect(client.reads - before).toBe(1);
    for (const { leave } of listeners) leave();
    await Promise.all(listeners.map(({ over }) => over));
    expect([listens.watched, client.subscribers, clock.pending]).toEqual([0, 0, 0]);
  });

  it('reads a task once at a time: a slow read is followed by another, never overtaken by it [M2.5]', async () => {
    const { client, clock, start, listen } = setUp();
    const listener = listen(await start('a'));
    await vi.waitFor(() => expect(listener.told()).toHaveLength(1));
    const release = client.hold('get');
    for (let hints = 0; hints < 5; hints += 1) {
      client.move({ statusMessage: `change ${hints}` });
      clock.pass(POLL);
      await turns(2);
    }
    expect(client.reads).toBe(2);
    release();
    await turns();
    clock.pass(INTERVAL);
    await turns();
    expect(messages(listener.told()).at(-1)).toBe('change 4');
    expect(client.reads).toBe(3);
  });

  it('that joins others is told what was read after it came, not what they knew [M2.5]', async () => {
    const { client, start, listen } = setUp();
    const taskId = await start('a');
    await listen(taskId).acknowledged();
    client.isDeaf = true;
    client.move({ statusMessage: 'newer' });
    const late = listen(taskId);
    await vi.waitFor(() => expect(messages(late.told())).toEqual(['newer']));
  });

  it('whose reader is slow keeps the latest state of each task and no more [M2.5]', async () => {
    const { client, clock, start, listen } = setUp();
    const [first, second] = [await start('a'), await start('b')];
    const listener = listen(first, second);
    await vi.waitFor(() => expect(listener.told()).toHaveLength(2));
    listener.stall();
    for (let change = 1; change <= 100; change += 1) {
      for (const taskId of [first, second]) client.move({ statusMessage: `change ${change}` }, taskId);
      clock.pass(INTERVAL);
      await turns(2);
    }
    listener.goOn();
    await turns();
    expect(messages(listener.told()).slice(3)).toEqual(['change 100', 'change 100']);
    expect(listener.last(second)).toMatchObject({ statusMessage: 'change 100' });
  });

  it('goes on through reads that fail, which are logged once, and through a time without workers [M2.5] [M2.2]', async () => {
    const { client, clock, start, listen, warnings } = setUp();
    const taskId = await start('a');
    const listener = listen(taskId);
    await vi.waitFor(() => expect(listener.told()).toHaveLength(1));
    for (let failures = 0; failures < 3; failures += 1) {
      client.failNext('get', new HoldfastError('engine_unavailable', 'away'));
      clock.pass(POLL);
      await turns();
    }
    expect(warnings).toHaveLength(1);
    client.move({ stale: true, statusMessage: 'last known state' });
    clock.pass(POLL);
    await turns();
    expect(listener.told()).toHaveLength(1);
    client.move({ stale: false, statusMessage: 'back' });
    clock.pass(POLL);
    await vi.waitFor(() => expect(messages(listener.told())).toEqual(['running attempt 1', 'back']));
  });

  it('that can not read its tasks is refused, and leaves nothing behind [M2.5]', async () => {
    const { client, start, listen, listens } = setUp();
    const [first, second] = [await start('a'), await start('b')];
    client.failNext('get', new HoldfastError('ledger_unavailable', 'away'));
    const listener = listen(first, second);
    await expect(listener.over).rejects.toMatchObject({ code: 'ledger_unavailable' });
    expect(listener.said).toEqual([]);
    expect([listens.watched, client.subscribers]).toEqual([0, 0]);
  });

  it('ends with its caller or with the gateway, and cancels nothing [M2.5] [M5.4]', async () => {
    const { client, clock, shutdown, start, listen, listens } = setUp();
    const taskId = await start('a');
    const [left, cut] = [listen(taskId), listen(taskId)];
    await Promise.all([left.acknowledged(), cut.acknowledged()]);
    left.leave();
    await left.over;
    expect(listens.watched).toBe(1);
    shutdown.abort();
    await cut.over;
    expect([listens.watched, client.subscribers, clock.pending]).toEqual([0, 0, 0]);
    expect(client.cancels).toEqual([]);
    client.move({ statusMessage: 'nobody hears it' });
    await turns();
    expect(left.told()).toHaveLength(1);
  });

  it('whose caller leaves before the acknowledgement leaves nothing behind [M2.5]', async () => {
    const { client, start, listen, listens } = setUp();
    const release = client.hold('get');
    const listener = listen(await Promise.resolve(start('a')));
    await turns();
    listener.leave();
    release();
    await listener.over;
    expect(listener.said).toEqual([]);
    expect([listens.watched, client.subscribers]).toEqual([0, 0]);
  });

  it('names so many tasks and no more, and is one of so many of its principal [M7.2]', async () => {
    const { start, listen, listens } = setUp({ listenTaskIdsMax: 2, listensMax: 2 });
    const taskId = await start('a');
    await expect(listen('1', '2', '3').over).rejects.toMatchObject({ code: -32602 });
    const open = [listen(taskId), listen(taskId)];
    await Promise.all(open.map((each) => each.acknowledged()));
    await expect(listen(taskId).over).rejects.toMatchObject({
      code: 'too_many_listens',
      details: { listensMax: 2 },
    });
    const another = reader(listens, [taskId], { ...LOCAL, subject: 'somebody else' });
    await another.acknowledged();
    open[0]?.leave();
    await open[0]?.over;
    await listen(taskId).acknowledged();
  });
});

type Step =
  | { kind: 'change' | 'change unheard' | 'hint' | 'stall' | 'go on' | 'fail' | 'stale' }
  | { kind: 'pass'; ms: number };
const steps = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constantFrom('change', 'change unheard', 'hint', 'stall', 'go on', 'fail', 'stale'),
    }),
    fc.record({ kind: fc.constant('pass'), ms: fc.constantFrom(10, 60, POLL) }),
  ),
  { maxLength: 40 },
);
const ends = fc.constantFrom('completed', 'failed', 'cancelled');

describe('whatever hints come, are lost, repeated or late, and however slow the reader', () => {
  const cases = sampled('listen-ends-with-the-truth', fc.tuple(steps, ends), 150);
  it(`the last state a listener has seen is the task’s last, in ${cases.length} orders [M2.5]`, async () => {
    for (const { seed, value } of cases) {
      await lastSeenIsLast(value[0], value[1]).catch((error: unknown) => {
        keepSeed(seed);
        throw new Error(JSON.stringify({ seed, value }), { cause: error });
      });
    }
  });
});

async function lastSeenIsLast(order: Step[], end: 'completed' | 'failed' | 'cancelled'): Promise<void> {
  const { client, clock, start, listen, listens } = setUp();
  const taskId = await start('a');
  const listener = listen(taskId);
  let changes = 0;
  const move = (change: Partial<TaskAnswer>) => client.move({ stale: false, ...change }, taskId);
  for (const step of order) {
    client.isDeaf = step.kind === 'change unheard';
    if (step.kind === 'change' || step.kind === 'change unheard')
      move({ statusMessage: `${(changes += 1)}` });
    if (step.kind === 'hint') client.hint(taskId);
    if (step.kind === 'stale') move({ stale: true, statusMessage: 'stale' });
    if (step.kind === 'fail' && listener.said.length > 0) client.failNext('get', new Error('away'));
    if (step.kind === 'stall') listener.stall();
    if (step.kind === 'go on') listener.goOn();
    if (step.kind === 'pass') clock.pass(step.ms);
    await turns(2);
  }
  client.isDeaf = true; // the end is the hint that is lost
  move({ status: end, effect: 'none', cause: 'cancelled', statusMessage: 'the end' });
  for (let polls = 0; polls < 3; polls += 1) {
    listener.goOn();
    await turns(4);
    clock.pass(POLL);
    await turns(4);
  }
  await listener.over;
  expect(listener.last(taskId)).toEqual(
    detailedTask(client.answerOf(taskId), { principal: LOCAL, canElicit: true }),
  );
  expect(listener.told().filter((task) => task['statusMessage'] === 'the end')).toHaveLength(1);
  const numbers = messages(listener.told())
    .map(Number)
    .filter((number) => !Number.isNaN(number));
  expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
  expect([listens.watched, client.subscribers, clock.pending]).toEqual([0, 0, 0]);
}
