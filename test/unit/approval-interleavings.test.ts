/**
 * Everything that can come from outside while an approval or an attempt is open, in generated orders up to length 6,
 * through the pure core. `TaskDriver` checks at each step that nothing begins under an interrupt, after a cancel or
 * without an approval; here is what must hold of each whole run.
 */
import { strict as assert } from 'node:assert';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import type { DecisionMessage } from '../../src/task/approval.ts';
import { decide } from '../../src/task/decide.ts';
import { reduce } from '../../src/task/reduce.ts';
import { BOB, CAT, HOUR_MS, asking, editedPlan } from '../support/approvals.ts';
import type { OperationOutcome } from '../../src/task/outcome.ts';
import { attention, committed, released, unknown } from '../support/outcomes.ts';
import { holds } from '../support/property.ts';
import { TaskDriver } from '../support/task-driver.ts';
import type { Of } from '../support/task-driver.ts';

const WHATS = [
  'interrupt',
  'resume',
  'cancel',
  'approve',
  'reject',
  'edit',
  'result',
  'failure',
  'unknown',
  'lost',
  'busy',
  'expiry',
] as const;
type What = (typeof WHATS)[number];

/**
 * `after`: so many chances are let pass first; a chance is between two steps, or while an attempt is under way. `lands`:
 * whether the effect takes place of an attempt that is lost, or answers that it does not know.
 */
interface Happening {
  what: What;
  after: number;
  lands: boolean;
  isCat: boolean;
  asksMore: boolean;
}

const cases = fc.record({
  happenings: fc.array(
    fc.record({
      what: fc.constantFrom(...WHATS),
      after: fc.constantFrom(0, 0, 0, 1, 2, 3),
      lands: fc.boolean(),
      isCat: fc.boolean(),
      asksMore: fc.boolean(),
    }),
    { minLength: 1, maxLength: 6 },
  ),
  quorum: fc.constantFrom(1, 1, 2),
  onExpiry: fc.constantFrom('deny' as const, 'halt' as const, 'remind' as const, 'escalate' as const),
  onCancel: fc.constantFrom('keep' as const, 'rollback' as const),
});

class Play {
  readonly driver: TaskDriver;
  private readonly happenings: Happening[];
  private readonly decided = new Set<string>();
  /** What the target counts. */
  effects = 0;

  constructor({
    happenings,
    quorum,
    onExpiry,
    onCancel,
  }: typeof cases extends fc.Arbitrary<infer T> ? T : never) {
    this.happenings = structuredClone(happenings);
    this.driver = new TaskDriver(asking({ quorum, onExpiry, escalateTo: ['cfo'] }, { onCancel }), {
      attempt: (verdict) => this.attempt(verdict),
      rollback: () => (this.chance(), (this.effects -= 1), { kind: 'rolledBack' }),
      close: () => (this.chance(), { kind: 'closed' }),
      resolve: ({ end }) => ({ end }),
      preview: () => (this.chance(), { kind: 'view', view: {} }),
    });
  }

  run(): TaskDriver {
    const { driver } = this;
    for (let steps = 0; steps < 400; steps += 1) {
      this.chance();
      const verdict = decide(driver.state, driver.now);
      if (verdict.do === 'nothing') return driver;
      if (verdict.do === 'wait' && this.happenings.length > 0) continue; // until the next thing happens
      if (verdict.do === 'wait' && verdict.until === null) this.help();
      else if (verdict.do === 'wait' && steps > 300)
        driver.cancel(); // reminded for ever
      else driver.step();
    }
    throw new Error(`no end, in phase ${driver.state.phase.kind}`);
  }

  /** Nothing happens any more and nothing goes on by itself. */
  private help(): void {
    const { driver } = this;
    if (driver.state.phase.kind === 'needs_attention') driver.resolve('abandoned');
    else if (driver.state.interrupted) driver.resume();
    else throw new Error('waits for nobody');
  }

  /** Whatever is due now. An answer to an attempt has no meaning while none runs. */
  private chance(): void {
    for (;;) {
      const [next] = this.happenings;
      if (next === undefined) return;
      if (next.after > 0) {
        next.after -= 1;
        return;
      }
      this.happenings.shift();
      this.happen(next);
    }
  }

  /** Null: lost on the way. What was done before is found, and not done again. */
  private attempt({ purpose, verifyFinal }: Of<'attempt'>): OperationOutcome | null {
    const mayAct = purpose === 'execute' && this.effects === 0;
    for (let next = this.happenings.shift(); next !== undefined; next = this.happenings.shift()) {
      const { what, lands } = next;
      if (what === 'result') break;
      if (what === 'failure' && this.effects === 0) return released;
      if (what === 'busy') return { kind: 'busy', retryAfterMs: 1_000, reason: 'claimed' };
      if (what === 'unknown' || what === 'lost') {
        if (mayAct && lands) this.effects += 1;
        if (what === 'lost') return null;
        return verifyFinal ? attention : unknown;
      }
      this.happen(next);
    }
    if (mayAct) this.effects += 1;
    return this.effects > 0 ? committed : released;
  }

  private happen({ what, isCat, asksMore }: Happening): void {
    const { driver } = this;
    const { state } = driver;
    if (['ended', 'finished'].includes(state.phase.kind) && ['interrupt', 'resume', 'cancel'].includes(what))
      return;
    switch (what) {
      case 'interrupt':
        return void (state.interrupted || driver.interrupt());
      case 'resume':
        return void (state.interrupted && driver.resume());
      case 'cancel':
        return state.cancelRequested ? undefined : driver.cancel();
      case 'expiry':
        return driver.moveTo(driver.now + HOUR_MS);
      case 'approve':
      case 'reject':
      case 'edit':
        return this.decide({ kind: what, by: isCat ? CAT : BOB, arguments: {} }, asksMore);
      case 'result':
      case 'failure':
      case 'unknown':
      case 'lost':
      case 'busy':
        return;
      default:
        return what satisfies never;
    }
  }

  /** The first decision wins: once a call is decided, none about it is accepted. */
  private decide(message: Partial<DecisionMessage>, asksMore: boolean): void {
    const { driver } = this;
    const callId = `action#${Math.max(1, driver.state.approvalCycle)}`;
    const wasDecided = this.decided.has(callId);
    const plan = editedPlan(driver.plan, asksMore ? {} : null);
    const { accepted, code } = driver.decide({ ...message, callId }, { plan, needsApproval: asksMore });
    assert(!(accepted && wasDecided), `${callId} was decided twice`);
    if (['approved', 'rejected', 'edited', 'edited_needs_approval'].includes(code)) this.decided.add(callId);
  }
}

describe('any order of interrupt, resume, cancel, decisions, answers and expiry', () => {
  test('ends once; nothing is executed that nobody approved; the first decision wins [S4.1][S4.3][S7.2][S7.3]', () => {
    holds(
      'approval-interleavings',
      cases,
      (given) => {
        const play = new Play(given);
        const driver = play.run();
        const { state, events, executions } = driver;
        assert.equal(events.filter(({ type }) => type === 'task_ended').length, 1);
        const closing = events.flatMap((event) => (event.type === 'approval_decided' ? [event.data] : []));
        assert.equal(new Set(closing.map(({ callId }) => callId)).size, closing.length, 'decided twice');
        const allowing = closing.filter(
          (data) => data.decision === 'approved' || (data.decision === 'edited' && !data.needsApproval),
        );
        assert(allowing.length <= 1, 'allowed twice');
        if (executions > 0) assert.equal(allowing.length, 1, 'executed without an approval');
        if (closing.some((data) => data.decision === 'rejected')) assert.equal(executions, 0);
        if (allowing[0]?.decision === 'edited') assert.deepEqual(state.plan, allowing[0].plan);
        const { effect, cause } = state.end ?? {};
        assert(play.effects <= 1, `${play.effects} effects`);
        if (effect === 'unknown') assert.equal(cause, 'abandoned');
        else
          assert.equal(
            play.effects,
            effect === 'applied' ? 1 : 0,
            `${cause}: ${play.effects} effects, said ${effect}`,
          );
        const again = events.reduce<ReturnType<typeof reduce> | null>(
          (before, event) => reduce(before, event),
          null,
        );
        assert.deepEqual(again, state);
      },
      500,
    );
  });
});
