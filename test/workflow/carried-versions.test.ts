/**
 * A task that an older release continued as new goes on under today's code (S3.3, S3.6): what it carried, states and
 * events of version 1, lives beside what is written now.
 */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TaskEvent } from '../../src/task/event.ts';
import { reduce } from '../../src/task/reduce.ts';
import type { TaskState } from '../../src/task/state.ts';
import { upcastState } from '../../src/task/upcast.ts';
import { outcomeOf } from '../../src/task/view.ts';
import { committed } from '../support/outcomes.ts';
import { WorkflowStage, isInPhase, stateWhen } from '../support/workflow-stage.ts';
import type { ActionHandle } from '../support/workflow-stage.ts';
import type { ActionArgument } from '../../workflows/argument.ts';

let stage: WorkflowStage;
beforeAll(async () => {
  stage = await WorkflowStage.open('time-skipping');
});
afterAll(() => stage.close());

type Carried = ActionArgument & { carried: { state: TaskState; events: TaskEvent[] } };

interface History {
  events: { workflowExecutionStartedEventAttributes?: { input: { payloads: { data: string }[] } } }[];
}

/** What that release carried over the boundary, as its history has it. */
function carriedBy(version: string): Carried {
  const file = new URL(`../replay/histories/${version}/continued-after.json`, import.meta.url);
  const { events } = JSON.parse(readFileSync(file, 'utf8')) as History;
  const data = events[0]?.workflowExecutionStartedEventAttributes?.input.payloads[0]?.data ?? '';
  return JSON.parse(Buffer.from(data, 'base64').toString()) as Carried;
}

/** As if it had been recorded just now: its deadlines have not passed. */
function moved({ carried, ...argument }: Carried): Carried {
  const { state, events } = carried;
  const byMs = Date.now() - state.updatedAt;
  return {
    ...argument,
    carried: {
      ...carried,
      state: { ...state, startedAt: state.startedAt + byMs, updatedAt: state.updatedAt + byMs },
      events: events.map((event) => ({ ...event, at: event.at + byMs })),
    },
  };
}

const journalOf = (handle: ActionHandle): Promise<TaskEvent[]> => handle.query<TaskEvent[]>('events');

test('a journal of 0.1 goes on with events that 0.1 did not know, and its task ends once [S3.3][S3.6][case 15]', async () => {
  const argument = moved(carriedBy('v1'));
  const { state, events: before } = argument.carried;
  expect(state.v).toBe(1);
  const scripted = stage.scriptAs(state.taskId, { attempt: [committed], resolve: [() => ({ end: null })] });
  const handle = await stage.client.workflow.start('action', {
    taskQueue: stage.taskQueue,
    workflowId: state.taskId,
    args: [argument],
  });
  await stateWhen(handle, isInPhase('needs_attention'));
  await handle.signal('interrupt', { by: 'ann' });
  await handle.signal('resolve', { as: 'not_applied', by: 'eve' });
  const held = await stateWhen(handle, ({ phase, interrupted }) => interrupted && phase.kind === 'ready');
  expect(held).toMatchObject({ v: 2, interrupted: true });
  expect(scripted.attempts).toHaveLength(0);
  await handle.signal('resume', { by: 'ann' });

  expect(await handle.result()).toMatchObject({ status: 'completed', effect: 'applied' });
  expect(scripted.attempts).toHaveLength(1);
  const journal = await journalOf(handle);
  expect(journal.slice(0, before.length)).toEqual(before);
  expect(journal.map(({ seq }) => seq)).toEqual(journal.map((_event, index) => index + 1));
  expect(journal.map(({ type }) => type)).toEqual(expect.arrayContaining(['interrupted', 'resumed']));
  const replayed = journal.reduce<TaskState | null>((reduced, event) => reduce(reduced, event), null);
  expect(replayed && outcomeOf(replayed)).toEqual(outcomeOf(await handle.query<TaskState>('task')));
});

test.each(['v1', 'v2'])(
  'what %s carried reads as today’s state, and so does reducing its events [S3.3]',
  (version) => {
    const { carried } = carriedBy(version);
    const reduced = carried.events.reduce<TaskState | null>((state, event) => reduce(state, event), null);
    expect(reduced).toEqual(upcastState(carried.state));
  },
);
