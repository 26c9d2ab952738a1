/** S3.1 to S3.4: the journal as the only source of state, its versions, what the audit keeps of it, and what it says to people. */
import { strict as assert } from 'node:assert';
import { describe, test } from 'vitest';
import { decide } from '../../src/task/decide.ts';
import type { NewEvent, TaskEvent } from '../../src/task/event.ts';
import { noteOf } from '../../src/task/notes.ts';
import { reduce } from '../../src/task/reduce.ts';
import type { TaskState } from '../../src/task/state.ts';
import { upcastEvent, upcastState } from '../../src/task/upcast.ts';
import { outcomeOf, statusOf } from '../../src/task/view.ts';
import { RESULT, attention, committed, mismatch, notYet, released, unknown } from '../support/outcomes.ts';
import { planOf } from '../support/plans.ts';
import { LOST, TaskDriver, scripted } from '../support/task-driver.ts';
import type { Script } from '../support/task-driver.ts';

const CLOSED = { kind: 'closed' as const };
const driven = (script: Script, overrides: Parameters<typeof planOf>[0] = {}) =>
  new TaskDriver(planOf(overrides), scripted(script));

/** The status after each event, without repeats. */
function statuses(events: TaskEvent[]): string[] {
  const seen: string[] = [];
  let state: TaskState | null = null;
  for (const event of events) {
    state = reduce(state, event);
    const status = statusOf(state);
    if (seen.at(-1) !== status) seen.push(status);
  }
  return seen;
}

function bare(): TaskState {
  const data = { taskId: 'task-1', action: 'reserve_inventory', ordinal: 1, plan: null };
  return reduce(null, { v: 1, seq: 1, at: 1, type: 'task_started', data });
}

function after(state: TaskState, event: NewEvent): TaskState {
  return reduce(state, { v: 1, seq: state.seq + 1, at: state.updatedAt + 1, ...event });
}

describe('the journal', () => {
  test('makes the state, alone and the same every time [S3.1]', () => {
    const script: Script = { attempt: [released, unknown, mismatch], rollback: [{ kind: 'rolledBack' }] };
    const { events, state } = driven(script).run();
    const replayed = events.reduce<TaskState | null>((before, event) => reduce(before, event), null);
    assert.deepEqual(replayed, state);
  });

  test('announces each step before its activity begins [S3.1]', () => {
    const seen: string[] = [];
    const noting =
      <T>(answer: T) =>
      (_verdict: unknown, driver: TaskDriver): T => (seen.push(driver.events.at(-1)?.type ?? ''), answer);
    driven({
      attempt: [noting(attention), noting(mismatch)],
      resolve: [noting({ end: null })],
      rollback: [noting({ kind: 'rolledBack' as const })],
    })
      .run()
      .resolve('applied')
      .run();
    assert.deepEqual(seen, [
      'attempt_scheduled',
      'resolve_scheduled',
      'attempt_scheduled',
      'rollback_scheduled',
    ]);
  });

  test('numbers its events from 1 without a gap, and refuses one out of turn [S3.1]', () => {
    const { events, state } = driven({ attempt: [committed] }).run();
    assert.deepEqual(
      events.map((event) => event.seq),
      [1, 2, 3, 4],
    );
    const [first, second] = events;
    assert(first && second);
    assert.throws(() => reduce(state, { ...second, seq: state.seq + 2 }), /event 6 after 4/);
    assert.throws(() => reduce(null, second), /first event/);
  });

  test('refuses an attempt number that does not grow, and a second step at once [S2.3]', () => {
    const driver = driven({ attempt: [released] });
    driver.step();
    const scheduled = (attempt: number): NewEvent => ({
      type: 'attempt_scheduled',
      data: { attempt, purpose: 'execute', inline: false, verifyFinal: false },
    });
    assert.throws(() => after(driver.state, scheduled(1)), /attempt 1 after 1/);
    const working = after(driver.state, scheduled(2));
    assert.throws(() => after(working, scheduled(3)), /while another is under way/);
  });

  test('takes no answer of an attempt that is not the one under way [S3.2]', () => {
    const working = after(after(bare(), { type: 'plan_scheduled', data: {} }), {
      type: 'planned',
      data: { plan: planOf(), ordinal: 1 },
    });
    const scheduled = after(working, {
      type: 'attempt_scheduled',
      data: { attempt: 1, purpose: 'execute', inline: false, verifyFinal: false },
    });
    const next = after(scheduled, { type: 'attempt_finished', data: { attempt: 7, outcome: committed } });
    assert.deepEqual(next.phase, scheduled.phase);
  });

  test('ends once: what comes later changes nothing but its length [S3.4]', () => {
    const { state } = driven({ attempt: [committed] }).run();
    const late: NewEvent[] = [
      { type: 'cancel_requested', data: { by: 'ann' } },
      { type: 'step_lost', data: { attempt: 1, failure: LOST } },
      {
        type: 'task_ended',
        data: {
          end: { status: 'failed', effect: 'none', cause: 'cancelled', error: null, cancelRequested: true },
          result: null,
          replayed: false,
        },
      },
    ];
    for (const event of late) {
      const next = after(state, event);
      assert.deepEqual({ ...next, seq: state.seq, updatedAt: state.updatedAt }, state);
    }
  });
});

describe('stored versions', () => {
  test('an event or state of the newest version is read as it is [S3.3]', () => {
    const { events, state } = driven({ attempt: [committed] }).run();
    assert.deepEqual(JSON.parse(JSON.stringify(events)).map(upcastEvent), events);
    assert.deepEqual(upcastState(structuredClone(state)), state);
  });

  test('one from the future is refused, so that the engine waits for a worker that knows it [S3.3]', () => {
    assert.throws(() => upcastEvent({ v: 2 }), /event of version 2 is newer/);
    assert.throws(() => upcastState({ v: 7 }), /state of version 7 is newer/);
  });

  test('one that no version ever wrote is refused [S3.3]', () => {
    assert.throws(() => upcastEvent({ v: 0 }), /no way up .* version 0/);
  });
});

describe('the statuses a task goes through', () => {
  test.each([
    ['straight', { attempt: [committed] }, {}, ['running', 'completed']],
    [
      'with a retry',
      { attempt: [released, committed] },
      {},
      ['running', 'backing_off', 'running', 'completed'],
    ],
    ['in doubt', { attempt: [null, committed] }, {}, ['running', 'reconciling', 'completed']],
    ['polling', { attempt: [notYet, committed] }, {}, ['running', 'verifying', 'completed']],
    [
      'undone',
      { attempt: [mismatch], rollback: [{ kind: 'retry', failure: LOST }, { kind: 'rolledBack' }] },
      {},
      ['running', 'rolling_back', 'failed'],
    ],
    ['refused', { attempt: [{ kind: 'refused', reason: 'no' }] }, {}, ['running', 'failed']],
    [
      'out of retries',
      { attempt: [released], close: [CLOSED] },
      { retry: { maximumRetries: 0 } },
      ['running', 'failed'],
    ],
  ] as [string, Script, Parameters<typeof planOf>[0], string[]][])(
    '%s [S3.4]',
    (_name, script, overrides, expected) => {
      assert.deepEqual(statuses(driven(script, overrides).run().events), expected);
    },
  );

  test('waiting for a person, and after each answer [S3.4][S3.5]', () => {
    const resolve: Script['resolve'] = [(verdict) => ({ end: verdict.end })];
    const asked = (as: 'applied' | 'not_applied' | 'abandoned') =>
      statuses(
        driven({ attempt: [attention, committed], resolve: [...(resolve ?? [])] })
          .run()
          .resolve(as)
          .run().events,
      );
    assert.deepEqual(asked('applied'), ['running', 'needs_attention', 'reconciling', 'completed']);
    assert.deepEqual(asked('not_applied'), ['running', 'needs_attention', 'running', 'completed']);
    assert.deepEqual(asked('abandoned'), ['running', 'needs_attention', 'failed']);
  });

  test('cancelled before anything was sent [S3.4]', () => {
    const driver = driven({ close: [CLOSED] });
    driver.cancel();
    assert.deepEqual(statuses(driver.run().events), ['running', 'cancelled']);
  });

  test('started bare: proposed until it has planned, or refused at once [S3.4]', () => {
    const planning = after(bare(), { type: 'plan_scheduled', data: {} });
    assert.deepEqual([statusOf(bare()), statusOf(planning)], ['proposed', 'proposed']);
    const lost = after(planning, { type: 'step_lost', data: { attempt: null, failure: LOST } });
    assert.equal(decide(lost, lost.updatedAt).do, 'backoff');
    const end = {
      status: 'failed',
      effect: 'none',
      cause: 'operation_in_progress',
      error: { code: 'operation_in_progress', message: 'x' },
      cancelRequested: false,
    } as const;
    const refused = after(planning, {
      type: 'plan_refused',
      data: { end, operationId: 'op_1', result: null, replayed: false },
    });
    assert.deepEqual([statusOf(refused), outcomeOf(refused).cause], ['failed', 'operation_in_progress']);
  });
});

describe('what a task says of itself', () => {
  test('is its whole end as soon as that is decided, not half of it [S3.1]', () => {
    const driver = driven({ attempt: [committed] });
    while (driver.state.phase.kind !== 'finished') driver.step();
    const before = driver.outcome;
    driver.run();
    assert.deepEqual(before, driver.outcome);
    assert.deepEqual(
      [before.status, before.effect, before.cause, before.result],
      ['completed', 'applied', 'committed', RESULT],
    );
  });

  test('comes from the reduced end, not from the last outcome [S3.1]', () => {
    const driver = driven(
      { attempt: [released], close: [{ kind: 'committed', result: RESULT }] },
      { retry: { maximumRetries: 0 } },
    ).run();
    assert.deepEqual([driver.outcome.status, driver.outcome.cause], ['completed', 'committed']);
  });

  test('says that nothing is retried without a key [S1.7]', () => {
    assert.equal(
      driven({ attempt: [committed] }, { keyed: false, autoRetry: false }).run().outcome.autoRetry,
      false,
    );
  });

  test('a safe action has no effect to speak of [S3.4]', () => {
    assert.equal(driven({ attempt: [committed] }, { effect: 'safe' }).run().outcome.effect, 'none');
  });
});

describe('the notes for the audit', () => {
  const notesOf = (driver: TaskDriver) => driver.events.flatMap((event) => noteOf(event) ?? []);

  test('are the transitions that no ledger change carries, with their place in the journal [S10.3]', () => {
    const driver = driven({ attempt: [null, attention], resolve: [(verdict) => ({ end: verdict.end })] });
    driver.step();
    driver.cancel();
    driver.run().resolve('abandoned').run();
    assert.deepEqual(
      notesOf(driver).map(({ type }) => type),
      ['step_lost', 'cancel_requested', 'resolve_requested'],
    );
    const [lost] = notesOf(driver);
    assert.deepEqual(lost, { type: 'step_lost', at: 1_000_000, data: { seq: 3, attempt: 1, failure: LOST } });
  });

  test('never hold the result that a person gives: it may be sensitive [S2.10][S10.3]', () => {
    const driver = driven({ attempt: [attention] }).run();
    driver.append({
      type: 'resolve_requested',
      data: {
        resolution: {
          as: 'applied',
          by: 'eve',
          note: 'seen',
          result: { kind: 'inline', value: { card: '4111' } },
        },
      },
    });
    const [note] = notesOf(driver);
    assert.deepEqual(note?.data, { seq: driver.state.seq, as: 'applied', by: 'eve', note: 'seen' });
  });
});
