/**
 * A sample of the generated interleavings (test/unit/approval-interleavings.test.ts) through the real server: the same
 * orders of messages and answers, each sent once the one before has come to rest, must lead where the pure core says.
 * The target counts. Expiry is left to the time-skipping server.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { DecisionKind } from '../../src/task/approval.ts';
import type { TaskState } from '../../src/task/state.ts';
import { decide } from '../../src/task/decide.ts';
import { ActionFailure, defineAction, implementAction } from '../../src/index.ts';
import { createTestHoldfast, openTestServer } from '../../src/testing/index.ts';
import type { TestHoldfast, TestServer } from '../../src/testing/index.ts';
import { ANN, BOB, CAT, asking, editedPlan } from '../support/approvals.ts';
import { deferred } from '../support/deferred.ts';
import { committed, released } from '../support/outcomes.ts';
import { keepSeed, sampled } from '../support/property.ts';
import { TaskDriver } from '../support/task-driver.ts';

const SAMPLE = 12;
const PATIENCE = { timeout: 20_000, interval: 20 };

const WHATS = ['interrupt', 'resume', 'cancel', 'approve', 'reject', 'edit', 'result', 'failure'] as const;
interface Happening {
  what: (typeof WHATS)[number];
  by: typeof BOB;
}
const cases = fc.record({
  happenings: fc.array(
    fc.record({ what: fc.constantFrom(...WHATS, 'approve', 'interrupt'), by: fc.constantFrom(BOB, CAT) }),
    { minLength: 2, maxLength: 6 },
  ),
  quorum: fc.constantFrom(1, 1, 2),
});
type Case = typeof cases extends fc.Arbitrary<infer T> ? T : never;
/** What brings every sequence to an end. */
const CLOSING: Happening[] = [
  { what: 'resume', by: BOB },
  { what: 'cancel', by: BOB },
  { what: 'result', by: BOB },
];

interface Course {
  accepted: boolean[];
  effects: number;
  end: (string | null)[];
}

const isDecision = (what: Happening['what']): what is DecisionKind =>
  what === 'approve' || what === 'reject' || what === 'edit';

/** What the pure core makes of it. */
function predicted({ happenings, quorum }: Case): Course {
  const left = [...happenings, ...CLOSING];
  const course: Course = { accepted: [], effects: 0, end: [] };
  const driver = new TaskDriver(asking({ quorum }), {
    attempt: () => {
      for (let next = left.shift(); next !== undefined; next = left.shift()) {
        if (next.what === 'failure') return released;
        if (next.what === 'result') break;
        happen(next);
      }
      course.effects += 1;
      return committed;
    },
    rollback: () => ({ kind: 'rolledBack' }),
    close: () => ({ kind: 'closed' }),
    resolve: ({ end }) => ({ end }),
    preview: () => ({ kind: 'view', view: {} }),
  });
  function happen({ what, by }: Happening): void {
    const { state } = driver;
    const isOver = state.phase.kind === 'ended' || state.phase.kind === 'finished';
    if (isDecision(what)) {
      const planned = { plan: editedPlan(driver.plan, null), needsApproval: false };
      const message = { kind: what, by, callId: 'action#1', ...(what === 'edit' && { arguments: {} }) };
      course.accepted.push(driver.decide(message, planned).accepted);
    } else if (isOver) return;
    else if (what === 'interrupt' && !state.interrupted) driver.interrupt();
    else if (what === 'resume' && state.interrupted) driver.resume();
    else if (what === 'cancel' && !state.cancelRequested) driver.cancel();
  }
  for (let steps = 0; steps < 300; steps += 1) {
    const verdict = decide(driver.state, driver.now);
    // At rest until something happens; a backoff passes by itself.
    const isResting = verdict.do === 'wait' && driver.state.phase.kind !== 'ready';
    const isHeld = verdict.do === 'wait' && driver.state.interrupted;
    if (verdict.do === 'nothing' || isResting || isHeld) {
      const next = left.shift();
      if (next === undefined) break;
      happen(next);
    } else driver.step();
  }
  const { status, effect, cause } = driver.outcome;
  return { ...course, end: [status, effect, cause] };
}

/** `tell` is set while an execution waits to be told what becomes of it. */
const target: { tell: ((what: Happening['what']) => void) | null; effects: number } = {
  tell: null,
  effects: 0,
};

const pay = implementAction(
  defineAction({
    name: 'pay',
    version: 1,
    description: 'Pays, once it is told to.',
    effect: 'conditional',
    input: z.object({ quorum: z.int() }),
    output: z.object({ payment: z.string() }),
    approval: ({ quorum }) => quorum > 0 && { quorum },
    rollback: { kind: 'outOfBand' },
    verify: { none: 'the counter is the oracle' },
    retry: { maximumRetries: 50, initialInterval: '1ms', maximumInterval: '1ms' },
    deadlines: { attempt: '1m' },
  }),
  {
    execute: async (_input, { operationId }) => {
      const { promise, resolve } = deferred<Happening['what']>();
      target.tell = resolve;
      const what = await promise;
      if (what === 'failure') throw ActionFailure.notSent('told to fail');
      target.effects += 1;
      return { payment: operationId };
    },
  },
);

let server: TestServer;
let holdfast: TestHoldfast;
beforeAll(async () => {
  server = await openTestServer('local');
  holdfast = await createTestHoldfast({ actions: [pay], server });
});
afterAll(async () => {
  target.tell?.('result');
  await holdfast.close();
  await server.close();
});

/** Nothing goes on by itself: a person, the target or nobody is waited for. */
function isAtRest({ phase, interrupted, cancelRequested }: TaskState): boolean {
  switch (phase.kind) {
    case 'ended':
      return true;
    case 'awaiting_approval':
      return phase.toJudge.length === 0 && !cancelRequested;
    case 'working':
      return phase.step.kind === 'attempt' && target.tell !== null;
    case 'ready':
    case 'retry_due':
      return interrupted && !cancelRequested;
    default:
      return false;
  }
}

async function played({ happenings, quorum }: Case, key: string): Promise<Course> {
  const { client, temporal } = holdfast;
  Object.assign(target, { tell: null, effects: 0 });
  const { taskId } = await client.start({ action: 'pay', args: { quorum }, key, principal: ANN });
  const rest = () =>
    expect
      .poll(
        async () => isAtRest(await temporal.workflow.getHandle(taskId).query<TaskState>('task')),
        PATIENCE,
      )
      .toBe(true);
  const accepted: boolean[] = [];
  await rest();
  for (const { what, by } of [...happenings, ...CLOSING]) {
    if (isDecision(what)) {
      const edit = what === 'edit' && { arguments: { quorum: 0 } };
      accepted.push((await client.decide(taskId, by, { kind: what, callId: 'action#1', ...edit })).accepted);
    } else if (what === 'cancel') await client.cancel(taskId, by);
    else if (what === 'interrupt') await client.interrupt(taskId, by);
    else if (what === 'resume') await client.resume(taskId, by);
    else {
      const { tell } = target;
      target.tell = null;
      tell?.(what);
    }
    await rest();
  }
  const { status, effect, cause } = await client.wait(taskId, ANN, { timeoutMs: 20_000 });
  return { accepted, effects: target.effects, end: [status, effect, cause] };
}

describe('a sample of orders of interrupt, resume, cancel, approval, result and failure', () => {
  const sample = sampled('approval-interleavings-real', cases, SAMPLE);
  test.each(sample.map(({ seed, value }, index) => ({ index, seed, value, name: nameOf(value) })))(
    '$name ends on the real server as the pure core says [S7.3][S4.3][S7.2]',
    async ({ index, seed, value }) => {
      try {
        expect(await played(value, `order-${index}`)).toEqual(predicted(value));
      } catch (error) {
        keepSeed(seed);
        throw new Error(JSON.stringify(seed), { cause: error });
      }
    },
  );
});

function nameOf({ happenings, quorum }: Case): string {
  const told = happenings.map(({ what, by }) => (isDecision(what) ? `${what} by ${by.subject}` : what));
  return `${told.join(', ')} (quorum ${quorum})`;
}
