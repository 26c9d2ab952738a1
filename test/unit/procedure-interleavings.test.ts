/**
 * Procedures whose steps and parts run at once, in generated orders: what fails, what is answered when, and a cancel, an
 * interrupt or the deadline between any two answers (S6.3, S7.2). The whole workflow but for the engine, which is driven
 * by hand; its activities are the target, which counts.
 */
import { strict as assert } from 'node:assert';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, test, vi } from 'vitest';
import { procedure } from '../../src/procedure/procedure.ts';
import type { Action } from '../../src/index.ts';
import type { TaskOutcome } from '../../src/task/outcome.ts';
import type { TaskState } from '../../src/task/state.ts';
import { procedureWorkflow } from '../../workflows/procedure.ts';
import { HandDrivenWorkflow, drive } from '../support/hand-driven-workflow.ts';
import type { Asked } from '../support/hand-driven-workflow.ts';
import { RESULT } from '../support/outcomes.ts';
import { planOf } from '../support/plans.ts';
import { keepSeed, sampled } from '../support/property.ts';

vi.mock('@temporalio/workflow', async () => {
  const { handDriven } = await import('../support/hand-driven-workflow.ts');
  return { ...(await vi.importActual<object>('@temporalio/workflow')), ...handDriven };
});
beforeAll(() => vi.useFakeTimers({ toFake: ['Date'], now: 0 }));
afterAll(() => vi.useRealTimers());

type P = Parameters<Parameters<typeof procedure<readonly Action[]>>[1]>[0];
const both = (p: P) => Promise.all(['a', 'b'].map((step) => p.step(step, 'act', {})));
const part = procedure<readonly Action[]>('part', both);
const whole = procedure<readonly Action[]>('whole', async (p) => {
  await p.step('first', 'act', {});
  await p.child('inner', part, {}).catch(() => undefined);
  await p.step('last', 'act', {});
});

const SHAPES = {
  atOnce: both,
  inOrder: async (p: P) => {
    for (const step of ['a', 'b', 'c']) await p.step(step, 'act', {});
  },
  aPart: async (p: P) => {
    await p.step('first', 'act', {});
    await p.child('one', part, {});
  },
  twoParts: (p: P) => Promise.all([p.child('one', part, {}), p.child('two', part, {})]),
  threeParts: (p: P) => Promise.all(['one', 'two', 'three'].map((name) => p.child(name, part, {}))),
  besideAPart: (p: P) => Promise.all([p.child('one', part, {}), p.step('beside', 'act', {})]),
  unawaited: (p: P) => {
    p.child('one', part, {}).catch(() => undefined);
    return p.step('beside', 'act', {});
  },
  nested: (p: P) => Promise.all([p.child('outer', whole, {}), p.child('two', part, {})]),
};

const WHATS = ['answer', 'answer', 'answer', 'cancel', 'interrupt', 'resume', 'deadline'] as const;
const cases = fc.record({
  shape: fc.constantFrom(...(Object.keys(SHAPES) as (keyof typeof SHAPES)[])),
  /** Steps whose names end so are refused. */
  fails: fc.constantFrom('-', 'b', 'b', 'a', 'last', 'beside'),
  happenings: fc.array(fc.record({ what: fc.constantFrom(...WHATS), which: fc.nat(3) }), { maxLength: 12 }),
});
type Case = typeof cases extends fc.Arbitrary<infer T> ? T : never;

const RUN_MS = 1_000;
const stepOf = ({ request }: Asked): string => {
  const { start, plan } = request as { start?: { key: string }; plan?: { key: string } };
  return (start ?? plan)?.key.replace('task_test/', '') ?? '';
};

class Play {
  readonly workflow = drive(new HandDrivenWorkflow());
  readonly done: string[] = [];
  readonly undone: string[] = [];
  readonly objections: string[] = [];
  readonly #given: Case;
  outcome: TaskOutcome | null = null;
  error: unknown = null;

  constructor(given: Case) {
    this.#given = given;
    this.workflow.onAsked = ({ activity }) => {
      if (activity !== 'rollbackOperation') return;
      if (this.state.interrupted) this.objections.push('a rollback began while interrupted');
      const rollbacks = this.workflow.asked.filter((other) => other.activity === activity);
      if (rollbacks.length > 1) this.objections.push('two rollbacks at once');
    };
  }

  get state(): TaskState {
    return this.workflow.send('task', undefined) as TaskState;
  }

  async run(): Promise<void> {
    const { shape, happenings } = this.#given;
    vi.setSystemTime(0);
    const code = procedure<readonly Action[]>('shape', async (p) => void (await SHAPES[shape](p)));
    const plan = planOf({ action: 'shape', deadlines: { runMs: RUN_MS }, procedure: {} });
    procedureWorkflow({ code })({ v: 1, plan, input: {}, ordinal: 1 }).then(
      (outcome) => (this.outcome = outcome),
      (error: unknown) => (this.error = error),
    );
    await this.workflow.rest();
    for (const happening of happenings) await this.happen(happening);
    this.workflow.send('resume', {});
    await this.workflow.rest();
    while (this.workflow.asked.length > 0) await this.happen({ what: 'answer', which: 0 });
  }

  async happen({ what, which }: Case['happenings'][number]): Promise<void> {
    const { workflow } = this;
    if (what === 'deadline') await workflow.moveTo(Math.max(Date.now(), RUN_MS));
    else if (what !== 'answer') workflow.send(what, { by: 'ann' });
    else if (workflow.asked.length > 0) this.answer(workflow.asked[which % workflow.asked.length] as Asked);
    await workflow.rest();
  }

  answer(asked: Asked): void {
    const step = stepOf(asked);
    switch (asked.activity) {
      case 'performStep': {
        const plan = planOf({ operationId: `op_${step}`, key: `task_test/${step}` });
        const isRefused = step.endsWith(this.#given.fails);
        const failure = { kind: 'permanent', code: 'refused', message: 'Refused.' };
        const outcome = isRefused
          ? { kind: 'failed', failure }
          : { kind: 'committed', result: RESULT, replayed: false };
        if (!isRefused) this.done.push(step);
        return asked.answer({ kind: 'performed', plan, input: {}, ordinal: 1, outcome });
      }
      case 'rollbackOperation':
        this.undone.push(step);
        return asked.answer({ kind: 'rolledBack' });
      case 'closeOperation':
        return asked.answer({ kind: 'closed' });
      case 'endProcedure':
        return asked.answer({ kind: 'ended', end: asked.request['end'], result: null });
      default:
        return asked.answer(undefined);
    }
  }

  check(): void {
    assert.deepEqual(this.objections, []);
    if (this.error !== null) throw this.error as Error;
    assert(this.outcome !== null, 'it never ended');
    const { state, done, undone } = this;
    const events = this.workflow.send('events', undefined) as { type: string; data: { step?: string } }[];
    assert.equal(events.filter(({ type, data }) => type === 'task_ended' && !data.step).length, 1);
    assert.deepEqual(undone, [...new Set(undone)], 'undone twice');
    for (const { step, effect } of state.steps ?? []) {
      const stands = done.includes(step) && !undone.includes(step);
      assert.equal(effect === 'applied', stands, `step ${step} is said to be ${effect}`);
      const isKept: boolean = this.outcome.status === 'completed' && !this.isOfFailedPart(step);
      assert.equal(stands, done.includes(step) && isKept, `step ${step} stands: ${stands}`);
    }
  }

  /** Undone though the whole came through. */
  isOfFailedPart(step: string): boolean {
    const { fails } = this.#given;
    const within = (step.match(/.*\//) ?? [''])[0];
    return within !== '' && [`${within}a`, `${within}b`].some((each) => each.endsWith(fails));
  }
}

describe('any order of answers, cancel, interrupt, resume and deadline', () => {
  test('ends once; what is committed is undone once or stands as it says; none is undone under an interrupt [S6.3][S7.2][S7.4]', async () => {
    for (const { seed, value } of sampled('procedure-interleavings', cases, 60)) {
      const play = new Play(value);
      try {
        await play.run();
        play.check();
      } catch (error) {
        keepSeed(seed);
        throw new Error(`${JSON.stringify(seed)} ${JSON.stringify(value)}`, { cause: error });
      }
    }
  }, 60_000);
});
