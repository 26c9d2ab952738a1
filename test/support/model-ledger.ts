/**
 * A faithful model of the operation protocol (S2) over one row and one world, for property tests of the core: it loses
 * activities before and after each of their effects, lets frozen ones wake late, and keeps its own count of effects.
 *
 * The oracle is `world`, never the task's journal.
 */
import { strict as assert } from 'node:assert';
import type { Failure } from '../../src/task/failure.ts';
import type {
  CloseOutcome,
  OperationOutcome,
  RollbackOutcome,
  StoredResult,
  TaskEnd,
} from '../../src/task/outcome.ts';
import { committedEnd, endedWith, rolledBackEnd } from '../../src/task/ends.ts';
import type { Plan } from '../../src/task/plan.ts';
import type { Of, Steps, TaskDriver } from './task-driver.ts';

/** What happens in one activity. */
export interface Turn {
  /** The worker dies at this point, or freezes before its claim and wakes after `wakesAfter` further activities. */
  crash:
    'never' | 'before_claim' | 'after_intent' | 'after_effect' | 'after_verify' | 'after_commit' | 'frozen';
  wakesAfter: number;
  deed: 'applies' | 'not_sent' | 'rate_limited' | 'permanent' | 'unknown_applied' | 'unknown_not_applied';
  lookup: 'truth' | 'unknown' | 'threw';
  verify: 'verified' | 'not_yet' | 'mismatch' | 'threw';
  precondition: boolean;
  approval: boolean;
  busyMs: number | null;
  /** Someone raised the row's fence by this much before the activity came. */
  fenceRaisedBy: number;
  undo: 'undone' | 'fails';
}

export const SMOOTH: Turn = {
  crash: 'never',
  wakesAfter: 0,
  deed: 'applies',
  lookup: 'truth',
  verify: 'verified',
  precondition: true,
  approval: false,
  busyMs: null,
  fenceRaisedBy: 0,
  undo: 'undone',
};

type RowState =
  | 'reserved'
  | 'in_flight'
  | 'applied'
  | 'committed'
  | 'refused'
  | 'released'
  | 'failed'
  | 'rolling_back'
  | 'rolled_back'
  | 'attention'
  | 'abandoned';

const RESULT: StoredResult = { kind: 'inline', value: { reservationId: 'r-1' } };
const unknownFailure: Failure = { kind: 'unknown', code: 'outcome_unknown', message: 'It is not known.' };
const unsent = (kind: 'notApplied' | 'rateLimited' | 'permanent'): Failure => ({
  kind,
  code: kind === 'permanent' ? 'permanent_failure' : 'attempt_failed',
  message: 'Nothing was applied.',
  ...(kind === 'rateLimited' && { retryAfterMs: 2_000 }),
});

interface Frozen {
  wakesAfter: number;
  run: () => void;
}

export class ModelLedger implements Steps {
  /** How often the effect stands in the world, and how often it was ever brought about. */
  readonly world = { standing: 0, broughtAbout: 0 };
  state: RowState = 'reserved';
  attemptSeen = 0;
  end: TaskEnd | null = null;
  private readonly plan: Plan;
  private readonly turns: Turn[];
  private failure: Failure = unsent('permanent');
  private frozen: Frozen[] = [];
  private alerts = 0;

  constructor(plan: Plan, turns: Turn[]) {
    this.plan = plan;
    this.turns = [...turns];
  }

  /** Whoever was frozen wakes, however late. */
  wakeAll(): void {
    for (const { run } of this.frozen.splice(0)) run();
  }

  attempt(verdict: Of<'attempt'>): OperationOutcome | null {
    const turn = this.next();
    if (turn.crash === 'frozen') {
      this.frozen.push({
        wakesAfter: turn.wakesAfter,
        run: () => void this.perform(verdict, { ...turn, crash: 'never' }),
      });
      return null;
    }
    return this.perform(verdict, turn);
  }

  private next(): Turn {
    const due = this.frozen.filter((frozen) => (frozen.wakesAfter -= 1) < 0);
    this.frozen = this.frozen.filter((frozen) => !due.includes(frozen));
    for (const { run } of due) run();
    const turn = this.turns.shift() ?? SMOOTH;
    this.attemptSeen += turn.fenceRaisedBy;
    return turn;
  }

  private perform(verdict: Of<'attempt'>, turn: Turn): OperationOutcome | null {
    const decided = this.look();
    if (decided !== null) return decided;
    if (verdict.attempt < this.attemptSeen || this.end !== null) return this.stale();
    if (turn.busyMs !== null) return { kind: 'busy', retryAfterMs: turn.busyMs, reason: 'claimed' };
    if (turn.crash === 'before_claim') return null;
    const claimedBefore = this.state === 'in_flight' || this.state === 'applied';
    if (!claimedBefore && verdict.purpose === 'settle')
      return { kind: 'released', failure: unsent('notApplied') };
    if (claimedBefore) {
      this.attemptSeen = verdict.attempt;
      return this.reconcile(verdict, turn);
    }
    if (turn.approval) return { kind: 'needsApproval', reason: 'more than 100' };
    if (!turn.precondition) return this.refuse(verdict);
    return this.execute(verdict, turn);
  }

  private look(): OperationOutcome | null {
    switch (this.state) {
      case 'committed':
        return { kind: 'committed', result: RESULT, replayed: false };
      case 'failed':
        return { kind: 'failed', failure: this.failure };
      case 'refused':
        return { kind: 'refused', reason: 'out of stock' };
      case 'rolled_back':
      case 'abandoned':
        assert(this.end);
        return { kind: 'spent', end: this.end };
      case 'rolling_back':
        return { kind: 'mismatch', reason: 'it is not as promised' };
      case 'attention':
        return { kind: 'unknown', failure: unknownFailure, attention: true };
      default:
        return null;
    }
  }

  private stale(): OperationOutcome {
    return { kind: 'fenceStale', rowAttempt: this.attemptSeen, superseded: false };
  }

  private reconcile(verdict: Of<'attempt'>, turn: Turn): OperationOutcome | null {
    if (this.state === 'applied') return this.verify(verdict, turn);
    const { lookup } = this.plan.handlers;
    const found =
      lookup === 'none' || turn.lookup !== 'truth'
        ? 'unknown'
        : this.world.standing > 0
          ? 'applied'
          : 'not_applied';
    if (found === 'applied') {
      this.state = 'applied';
      return this.verify(verdict, turn);
    }
    const isProven = this.plan.effect === 'safe' || (lookup === 'conclusive' && found === 'not_applied');
    if (verdict.purpose === 'settle') {
      if (!isProven) return this.attention();
      this.state = 'released';
      return { kind: 'released', failure: unsent('notApplied') };
    }
    const isDeduped = this.plan.effect === 'conditional' && this.plan.autoRetry;
    if (isProven || isDeduped)
      return turn.precondition || isDeduped ? this.execute(verdict, turn) : this.refuse(verdict);
    if (turn.lookup === 'threw') return { kind: 'unknown', failure: unknownFailure, attention: false };
    return this.attention();
  }

  private refuse(verdict: Of<'attempt'>): OperationOutcome {
    this.attemptSeen = verdict.attempt;
    this.state = 'refused';
    this.end = endedWith({ plan: this.plan, cancelRequested: false }, 'precondition_failed', 'out of stock');
    return { kind: 'refused', reason: 'out of stock' };
  }

  private execute(verdict: Of<'attempt'>, turn: Turn): OperationOutcome | null {
    assert.equal(verdict.purpose, 'execute', 'an attempt that only finds out never executes');
    this.attemptSeen = verdict.attempt;
    this.state = 'in_flight';
    if (turn.crash === 'after_intent') return null;
    switch (turn.deed) {
      case 'not_sent':
      case 'rate_limited':
        // After an earlier attempt in doubt this one proves nothing about that one, unless the target dedupes.
        this.state = this.world.standing > 0 ? 'in_flight' : 'released';
        if (this.state === 'in_flight') return { kind: 'unknown', failure: unknownFailure, attention: false };
        return { kind: 'released', failure: unsent(turn.deed === 'not_sent' ? 'notApplied' : 'rateLimited') };
      case 'permanent':
        if (this.world.standing > 0) return { kind: 'unknown', failure: unknownFailure, attention: false };
        this.state = 'failed';
        this.end = endedWith(
          { plan: this.plan, cancelRequested: false },
          'permanent_failure',
          'refused for good',
        );
        return { kind: 'failed', failure: unsent('permanent') };
      case 'unknown_not_applied':
        return { kind: 'unknown', failure: unknownFailure, attention: false };
      case 'unknown_applied':
      case 'applies':
        this.bringAbout();
        break;
      default:
        turn.deed satisfies never;
    }
    if (turn.crash === 'after_effect') return null;
    if (turn.deed === 'unknown_applied')
      return { kind: 'unknown', failure: unknownFailure, attention: false };
    return this.verify(verdict, turn);
  }

  private bringAbout(): void {
    if (this.plan.effect === 'safe') return;
    if (this.plan.effect === 'conditional' && this.world.standing > 0) return;
    this.world.standing += 1;
    this.world.broughtAbout += 1;
  }

  private verify(verdict: Of<'attempt'>, turn: Turn): OperationOutcome | null {
    if (!this.plan.handlers.verify) return this.commit(turn);
    this.state = 'applied';
    switch (turn.verify) {
      case 'verified':
        return turn.crash === 'after_verify' ? null : this.commit(turn);
      case 'threw':
        return verdict.verifyFinal
          ? this.attention()
          : { kind: 'unknown', failure: unknownFailure, attention: false };
      case 'not_yet':
        return verdict.verifyFinal ? this.attention() : { kind: 'notYet' };
      case 'mismatch':
        if (this.world.standing === 0) {
          this.state = 'failed';
          this.end = endedWith({ plan: this.plan, cancelRequested: false }, 'verify_failed', 'not there');
          this.failure = { kind: 'permanent', code: 'verify_failed', message: 'not there' };
          return { kind: 'failed', failure: this.failure };
        }
        this.state = 'rolling_back';
        return { kind: 'mismatch', reason: 'it is not as promised' };
      default:
        return turn.verify satisfies never;
    }
  }

  private commit(turn: Turn): OperationOutcome | null {
    this.state = 'committed';
    if (this.plan.onCancel === 'keep') this.end = committedEnd({ plan: this.plan, cancelRequested: false });
    return turn.crash === 'after_commit' ? null : { kind: 'committed', result: RESULT, replayed: false };
  }

  private attention(): OperationOutcome {
    this.state = 'attention';
    this.alerts += 1;
    return { kind: 'unknown', failure: unknownFailure, attention: true };
  }

  rollback(verdict: Of<'rollback'>): RollbackOutcome | null {
    const turn = this.next();
    if (this.state === 'rolled_back') return { kind: 'rolledBack' };
    if (verdict.attempt < this.attemptSeen) return { kind: 'fenceStale', rowAttempt: this.attemptSeen };
    if (turn.crash === 'before_claim' || turn.crash === 'frozen') return null;
    assert(
      ['committed', 'applied', 'rolling_back', 'attention'].includes(this.state),
      `rollback of ${this.state}`,
    );
    this.attemptSeen = verdict.attempt;
    this.state = 'rolling_back';
    if (turn.crash === 'after_intent') return null;
    if (turn.undo === 'fails') {
      if (!verdict.final) return { kind: 'retry', failure: unsent('notApplied') };
      this.state = 'attention';
      this.alerts += 1;
      return { kind: 'attention', failure: unknownFailure };
    }
    this.world.standing = 0;
    if (turn.crash === 'after_effect') return null;
    this.state = 'rolled_back';
    this.end = rolledBackEnd(
      { plan: this.plan, cancelRequested: verdict.reason === 'cancelled' },
      verdict.reason,
      undefined,
    );
    return turn.crash === 'never' ? { kind: 'rolledBack' } : null;
  }

  close(verdict: Of<'close'>, driver: TaskDriver): CloseOutcome | null {
    const turn = this.next();
    if (turn.crash === 'before_claim' || turn.crash === 'frozen') return null;
    if (['in_flight', 'applied', 'rolling_back', 'attention'].includes(this.state))
      return { kind: 'inFlight', rowAttempt: this.attemptSeen };
    if (this.state === 'committed') return { kind: 'committed', result: RESULT };
    this.end ??= verdict.end;
    this.attemptSeen = Math.max(this.attemptSeen, driver.state.attempt + 1);
    return turn.crash === 'never' ? { kind: 'closed', end: this.end } : null;
  }

  resolve(verdict: Of<'resolve'>): { end: TaskEnd | null } | null {
    const turn = this.next();
    if (turn.crash === 'before_claim' || turn.crash === 'frozen') return null;
    if (this.state !== 'attention') return { end: this.end };
    this.attemptSeen = Math.max(this.attemptSeen, verdict.attempt);
    const { as } = verdict.resolution;
    this.state = {
      applied: 'applied',
      abandoned: 'abandoned',
      not_applied: verdict.about === 'rollback' ? 'rolled_back' : 'released',
    }[as] as RowState;
    this.end = verdict.end;
    return turn.crash === 'never' ? { end: verdict.end } : null;
  }
}
