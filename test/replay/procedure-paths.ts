/**
 * The paths that workflow `procedure` can take, as scripts for a real server: each plays one of procedures.ts and answers
 * with its task, ended. What paths.ts is for workflow `action`.
 */
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { ActionFailure, defineAction, defineProcedure, implementAction } from '../../src/index.ts';
import { fingerprintOf } from '../../src/contract/fingerprint.ts';
import type { HoldfastClient } from '../../src/client/index.ts';
import type { TaskState } from '../../src/task/state.ts';
import type { TestServer } from '../../src/testing/index.ts';
import { bookActions, newBook, useBook } from '../support/book-actions.ts';
import { deferred } from '../support/deferred.ts';
import { ANN, BOSS, ProcedureStage, until } from '../support/procedure-stage.ts';

type ProcedurePath = (stage: ProcedureStage) => Promise<string>;

export const PROCEDURES_CODE = fileURLToPath(new URL('./procedures.ts', import.meta.url));
const NAMES = [
  'trip',
  'parallel_trip',
  'asked_trip',
  'tour',
  'race',
  'with_child',
  'chosen_trip',
  'patrol',
  'undecided_trip',
];
const contractOf = (name: string, deadlines: { run?: '30s'; sla?: '100ms' } = {}) =>
  defineProcedure({ name, description: 'A recorded procedure.', input: z.looseObject({}), ...deadlines });

/** Answers otherwise each time. */
const chooses = implementAction(
  defineAction({
    name: 'choose',
    version: 1,
    description: 'Chooses what to book.',
    input: z.object({}),
    output: z.object({ name: z.string() }),
    effect: 'safe',
  }),
  { execute: () => Promise.resolve({ name: `choice ${Math.random()}` }) },
);

/** Never has anything to say. */
const hesitates = implementAction(
  defineAction({
    name: 'hesitate',
    version: 1,
    description: 'Chooses nothing.',
    input: z.object({}),
    output: z.object({ name: z.string() }),
    effect: 'safe',
    retry: { initialInterval: '50ms', maximumInterval: '50ms' },
    decision: { asksMax: 2, interval: '100ms' },
  }),
  {
    execute: () =>
      Promise.reject(new ActionFailure({ kind: 'notApplied', code: 'undecided', message: 'not yet' })),
  },
);

export function openProcedureStage(server: 'local' | TestServer): Promise<ProcedureStage> {
  const contracts = [
    ...NAMES.map((name) => contractOf(name)),
    contractOf('late_trip', { run: '30s' }),
    contractOf('slow_trip', { sla: '100ms' }),
  ];
  const procedures = { code: PROCEDURES_CODE, contracts };
  return ProcedureStage.open({ server, actions: [...bookActions, chooses, hesitates], procedures });
}

function straight(action: string, args = {}): ProcedurePath {
  return async (stage) => {
    useBook(newBook());
    return stage.start(action, args);
  };
}

/** `act` runs while the person is waited for whom `status` says. */
function onceWaiting(
  status: 'awaiting_approval' | 'needs_attention',
  path: ProcedurePath,
  act: (client: HoldfastClient, taskId: string) => Promise<unknown>,
): ProcedurePath {
  return async (stage) => {
    const taskId = await path(stage);
    await until(async () => (await stage.status(taskId)) === status);
    await act(stage.holdfast.client, taskId);
    return taskId;
  };
}

/** The hotel of an asked trip is decided about while its flight is still being booked. */
const decidedEarly =
  (decision: object): ProcedurePath =>
  async (stage) => {
    const [asked, gate] = [deferred(), deferred()];
    const book = useBook(newBook());
    book.gates.set('flight', gate.promise);
    book.onAsked = (name) => name === 'flight' && asked.resolve();
    const taskId = await stage.start('asked_trip');
    await asked.promise;
    await stage.holdfast.client.decide(taskId, BOSS, { callId: 'hotel#1', ...decision } as never);
    gate.resolve();
    return taskId;
  };

/** `act` runs while the trip's step waits for what `act` is given to call. */
function duringStep(
  step: string,
  act: (stage: ProcedureStage, taskId: string, release: () => void) => Promise<unknown>,
): ProcedurePath {
  return async (stage) => {
    const [asked, gate] = [deferred(), deferred()];
    const book = useBook(newBook());
    book.gates.set(step, gate.promise);
    book.stuck.set('hotel', 1);
    book.onAsked = (name) => name === step && asked.resolve();
    const taskId = await stage.start('trip');
    await asked.promise;
    await act(stage, taskId, gate.resolve);
    gate.resolve();
    return taskId;
  };
}

/** The hotel can't be cancelled any more. */
const stuckTrip: ProcedurePath = async (stage) => {
  useBook(newBook()).stuck.set('hotel', 1_000);
  return stage.start('trip', { fail: ['car'] });
};

const decides =
  (kind: 'approve' | 'reject') =>
  (client: HoldfastClient, taskId: string): Promise<unknown> =>
    client.decide(taskId, BOSS, { kind });
const resolves =
  (as: 'applied' | 'not_applied' | 'abandoned') =>
  (client: HoldfastClient, taskId: string): Promise<unknown> =>
    client.resolve(taskId, ANN, { as });

function bare(key: string, input: object, before: ProcedurePath | null = null): ProcedurePath {
  return async (stage) => {
    useBook(newBook());
    await before?.(stage);
    const workflowId = `bare-${key}`;
    const { temporal, taskQueue } = stage.holdfast;
    const args = [{ v: 1, action: 'trip', input, key, principal: ANN }];
    await temporal.workflow.start('procedure', { taskQueue, workflowId, args });
    return workflowId;
  };
}

const interruptedInFlight = duringStep('flight', async (stage, taskId, release) => {
  const { client } = stage.holdfast;
  await client.interrupt(taskId, ANN);
  release();
  await until(() => stage.hasStep(taskId, 'flight', 'completed'));
  await client.resume(taskId, ANN);
});

export const PROCEDURE_PATHS: Readonly<Record<string, ProcedurePath>> = {
  'procedure-completed': straight('trip'),
  'procedure-undone': straight('trip', { fail: ['car'] }),
  'procedure-parallel': straight('parallel_trip'),
  'procedure-parallel-undone': straight('parallel_trip', { fail: ['car'] }),
  'procedure-cancelled-during': duringStep('car', ({ holdfast }, taskId) =>
    holdfast.client.cancel(taskId, ANN),
  ),
  'procedure-cancelled-by-engine': duringStep('car', async (stage, taskId) => {
    const handle = stage.holdfast.temporal.workflow.getHandle(taskId);
    await handle.cancel();
    await until(async () => (await handle.query<TaskState>('task')).cancelRequested);
  }),
  'procedure-interrupted-resumed': interruptedInFlight,
  'procedure-step-approved': onceWaiting('awaiting_approval', straight('asked_trip'), decides('approve')),
  'procedure-step-rejected': onceWaiting('awaiting_approval', straight('asked_trip'), decides('reject')),
  'procedure-asked-approved': onceWaiting(
    'awaiting_approval',
    straight('tour', { stops: 1 }),
    decides('approve'),
  ),
  'procedure-asked-rejected': onceWaiting(
    'awaiting_approval',
    straight('tour', { stops: 1 }),
    decides('reject'),
  ),
  'procedure-cancelled-asking': onceWaiting(
    'awaiting_approval',
    straight('tour', { stops: 1 }),
    (client, taskId) => client.cancel(taskId, ANN),
  ),
  'procedure-attention-undone': onceWaiting('needs_attention', stuckTrip, resolves('not_applied')),
  'procedure-attention-stands': onceWaiting('needs_attention', stuckTrip, resolves('applied')),
  'procedure-attention-abandoned': onceWaiting('needs_attention', stuckTrip, resolves('abandoned')),
  'procedure-raced': straight('race', { turns: 3 }),
  'procedure-child': straight('with_child', { fail: false }),
  'procedure-child-undone': straight('with_child', { fail: true }),
  'procedure-decided': straight('chosen_trip'),
  'procedure-undecided': straight('undecided_trip'),
  'procedure-approved-early': decidedEarly({
    kind: 'approve',
    fingerprint: fingerprintOf('local', 'book_expensive', { name: 'hotel', fails: false }),
  }),
  'procedure-rejected-early': decidedEarly({ kind: 'reject' }),
  'procedure-restarted': straight('patrol', { left: 2 }),
  'procedure-deadline': straight('late_trip'),
  'procedure-sla-missed': straight('slow_trip'),
  'procedure-bare': bare('bare', {}),
  'procedure-bare-refused': bare('told-twice', { fail: ['car'] }, async ({ holdfast }) => {
    const call = { action: 'trip', args: {}, key: 'told-twice', principal: ANN };
    const { taskId } = await holdfast.client.start(call);
    await holdfast.temporal.workflow.getHandle(taskId).result();
    return taskId;
  }),
};

/** Recorded on a server that suggests to continue as new early: the run before the boundary, and the run after it. */
export const PROCEDURE_CONTINUED = {
  before: 'procedure-continued-before',
  after: 'procedure-continued-after',
};

/** Asks a person, fails and undoes after the boundary what was booked before it. */
export const procedureContinued: ProcedurePath = onceWaiting(
  'awaiting_approval',
  straight('tour', { stops: 5, fail: true }),
  decides('approve'),
);
