/**
 * Plays the workflow for the pure core, by hand and without a server: it journals what verdicts announce, asks `steps`
 * for the answer of each activity, and moves a clock of its own.
 *
 * After every event and before every step it checks the core's invariants, so that every test of the core checks them.
 */
import { strict as assert } from 'node:assert';
import { callIdOf } from '../../src/task/approval.ts';
import type { DecisionMessage } from '../../src/task/approval.ts';
import { opened } from '../../src/task/approval-state.ts';
import { backoffDelayMs, decide } from '../../src/task/decide.ts';
import type { Verdict } from '../../src/task/decide.ts';
import type { NewEvent, TaskEvent } from '../../src/task/event.ts';
import type { Failure } from '../../src/task/failure.ts';
import type { PreviewResult } from '../../src/task/activity-api.ts';
import type { CloseOutcome, OperationOutcome, RollbackOutcome, TaskEnd } from '../../src/task/outcome.ts';
import type { Plan } from '../../src/task/plan.ts';
import {
  edited,
  editRefused,
  eventsAfter,
  firstAnswer,
  judgeDecision,
} from '../../src/task/judge-decision.ts';
import type { Answered } from '../../src/task/judge-decision.ts';
import { reduce } from '../../src/task/reduce.ts';
import type { TaskState } from '../../src/task/state.ts';
import { outcomeOf } from '../../src/task/view.ts';

export type Of<K extends Verdict['do']> = Extract<Verdict, { do: K }>;

/** What activities answer; null: the infrastructure lost it. */
export interface Steps {
  attempt(verdict: Of<'attempt'>, driver: TaskDriver): OperationOutcome | null;
  rollback(verdict: Of<'rollback'>, driver: TaskDriver): RollbackOutcome | null;
  close(verdict: Of<'close'>, driver: TaskDriver): CloseOutcome | null;
  resolve(verdict: Of<'resolve'>, driver: TaskDriver): { end: TaskEnd | null } | null;
  /** Default: granted at once. `silent`: nobody answers. */
  lease?(verdict: Of<'lease'>, driver: TaskDriver): 'granted' | 'failed' | 'silent';
  /** Default: the approval opens. */
  preview?(verdict: Of<'preview'>, driver: TaskDriver): PreviewResult;
}

/** How an edit's arguments were planned; a text: why they were refused. */
export type PlannedEdit = { plan: Plan; needsApproval: boolean } | string;

export const LOST: Failure = { kind: 'unknown', code: 'outcome_unknown', message: 'The worker was lost.' };

export class TaskDriver {
  state: TaskState;
  events: TaskEvent[] = [];
  now = 1_000_000;
  readonly verdicts: Verdict[] = [];
  private readonly steps: Steps;
  private readonly random: () => number;
  private fence = 0;
  private requestUsed = 0;
  /** Steps begun since the clock last moved. */
  private atThisInstant = 0;

  constructor(plan: Plan, steps: Steps, random: () => number = () => 0.5) {
    this.steps = steps;
    this.random = random;
    const data = { taskId: 'task-1', action: plan.action, ordinal: 1, plan };
    const first: TaskEvent = { v: 1, seq: 1, at: this.now, type: 'task_started', data };
    this.events.push(first);
    this.state = reduce(null, first);
  }

  get plan(): Plan {
    assert(this.state.plan);
    return this.state.plan;
  }

  append(event: NewEvent): void {
    const before = this.state;
    const whole = { v: 1, seq: before.seq + 1, at: this.now, ...event } as TaskEvent;
    this.events.push(whole);
    this.state = reduce(before, whole);
    assert.equal(this.state.seq, before.seq + 1);
    assert(this.state.attempt >= before.attempt, 'the attempt number fell');
    assert(this.state.retriesSpent <= this.plan.retry.maximumRetries, 'more retries than allowed');
    assert.deepEqual(JSON.parse(JSON.stringify(this.state)), this.state, 'state is plain JSON');
    if (before.phase.kind === 'finished' && this.state.phase.kind === 'finished')
      assert.deepEqual(this.state.phase, before.phase, 'an end that was decided changed');
  }

  cancel(): void {
    this.append({ type: 'cancel_requested', data: { by: 'ann' } });
  }

  /** Moves the clock to `at`; never back. */
  moveTo(at: number): void {
    if (at > this.now) this.atThisInstant = 0;
    this.now = Math.max(this.now, at);
  }

  /** One verdict, carried out. A `wait` with a time moves the clock; one without is the caller's to end. */
  step(): Verdict {
    const verdict = decide(this.state, this.now);
    this.verdicts.push(verdict);
    this.checkBegin(verdict);
    if (verdict.do === 'wait' && verdict.until !== null) this.moveTo(verdict.until);
    else this.carryOut(verdict);
    return verdict;
  }

  /** Steps until the task ended or waits for a person. */
  run(stepsMax = 500): this {
    for (let count = 0; count < stepsMax; count += 1) {
      const verdict = this.step();
      if (verdict.do === 'nothing' || (verdict.do === 'wait' && verdict.until === null)) return this;
    }
    throw new Error(`not at rest after ${stepsMax} steps, in phase ${this.state.phase.kind}`);
  }

  /** Steps until the phase is of this kind; a wait moves the clock. */
  runTo(kind: TaskState['phase']['kind'], stepsMax = 100): this {
    for (let count = 0; this.state.phase.kind !== kind; count += 1) {
      if (count === stepsMax) throw new Error(`${kind} never came, in phase ${this.state.phase.kind}`);
      this.step();
    }
    return this;
  }

  resolve(as: 'applied' | 'not_applied' | 'abandoned'): this {
    const { phase } = this.state;
    const waitedMs = phase.kind === 'needs_attention' ? this.now - phase.since : 0;
    this.append({ type: 'resolve_requested', data: { resolution: { as, by: 'eve' }, waitedMs } });
    return this;
  }

  /** What signal and update do with a decision; `planned` answers the activity that an edit needs. */
  decide(message: Partial<DecisionMessage> = {}, planned: PlannedEdit = 'not planned'): Answered['reply'] {
    const by = { tenant: this.plan.principal.tenant, subject: 'bob', roles: [] };
    const decision: DecisionMessage = {
      kind: 'approve',
      callId: callIdOf(Math.max(1, this.state.approvalCycle)),
      by,
      ...message,
    };
    const first = firstAnswer(this.state, decision);
    if (first !== null) return first;
    const judged = judgeDecision(this.state, decision, this.now);
    if (judged.kind === 'answered') return this.conclude(decision, judged);
    if (typeof planned === 'string') return this.conclude(decision, editRefused(planned));
    return this.conclude(decision, edited(decision, { ...planned, shown: { arguments: {} } }));
  }

  private conclude(decision: DecisionMessage, answered: Answered): Answered['reply'] {
    for (const event of eventsAfter(decision, answered)) this.append(event);
    return answered.reply;
  }

  interrupt(): this {
    this.append({ type: 'interrupted', data: { by: 'ann' } });
    return this;
  }

  resume(): this {
    this.append({ type: 'resumed', data: { by: 'ann' } });
    return this;
  }

  get outcome() {
    return outcomeOf(this.state);
  }

  /** Attempts that were told to bring the effect about. */
  get executions(): number {
    return this.verdicts.filter(
      ({ do: what, ...rest }) => what === 'attempt' && 'purpose' in rest && rest.purpose === 'execute',
    ).length;
  }

  private checkBegin(verdict: Verdict): void {
    const { state } = this;
    if (verdict.do === 'attempt' && verdict.purpose === 'execute') {
      assert(!state.cancelRequested, 'an execution began after a cancel');
      assert(!state.retriesExhausted, 'an execution began after the last retry');
      assert(
        !state.runDeadlinePassed &&
          this.now < state.startedAt + state.humanWaitMs + this.plan.deadlines.runMs,
        'an execution began after the deadline',
      );
      assert(!state.interrupted, 'an execution began while interrupted');
      if (this.plan.approval)
        assert(['approved', 'edited'].includes(state.decided?.as ?? ''), 'an execution nobody approved');
    }
    if (this.plan.lease && (verdict.do === 'attempt' || verdict.do === 'rollback')) {
      assert.equal(state.lease?.held?.use, 'fresh', 'an attempt without a grant of its own');
      assert(this.now < state.lease.held.until, 'an attempt under a lease that has run out');
      assert(state.lease.requests > this.requestUsed, 'two attempts under one grant');
      this.requestUsed = state.lease.requests;
    }
    if (verdict.do === 'end' || (verdict.do === 'wait' && verdict.person))
      assert(!state.lease?.held && !state.lease?.waiting, 'held while nothing is under way');
    if (verdict.do === 'rollback') assert(!state.interrupted, 'a rollback began while interrupted');
    if (verdict.do === 'close') assert(!state.inDoubt, 'closed while in doubt');
    if (verdict.do === 'attempt' || verdict.do === 'rollback' || verdict.do === 'resolve')
      assert.equal(verdict.attempt, state.attempt + 1);
    if (
      verdict.do === 'attempt' ||
      verdict.do === 'rollback' ||
      verdict.do === 'close' ||
      verdict.do === 'resolve'
    ) {
      this.atThisInstant += 1;
      // Budgeted retries may draw a pause of 0; everything else has to wait between two turns.
      const allowed = 8 + 2 * this.plan.retry.maximumRetries;
      assert(this.atThisInstant <= allowed, `${this.atThisInstant} steps at one instant`);
    }
  }

  private carryOut(verdict: Verdict): void {
    switch (verdict.do) {
      case 'append':
        return this.append(verdict.event);
      case 'preview': {
        const { callId } = verdict;
        this.append({ type: 'preview_scheduled', data: { callId } });
        const seen = this.steps.preview?.(verdict, this) ?? { kind: 'view', view: { arguments: {} } };
        return seen.kind === 'overtaken'
          ? this.append({ type: 'preview_overtaken', data: { rowAttempt: seen.rowAttempt } })
          : this.append({
              type: 'approval_opened',
              data: { approval: opened(this.plan, callId, seen.view, this.now) },
            });
      }
      case 'judge_held': {
        const { decision } = verdict;
        this.append({ type: 'held_decision_taken', data: { callId: decision.callId } });
        const judged = judgeDecision(this.state, decision, this.now);
        assert(judged.kind === 'answered', 'an edit was held');
        return void this.conclude(decision, judged);
      }
      case 'alert':
        return this.append({ type: 'alert_recorded', data: { type: verdict.alert.type } });
      case 'lease':
        return this.leased(verdict);
      case 'release': {
        const { id, request, fence } = verdict;
        return this.append({ type: 'lease_released', data: { id, request, fence } });
      }
      case 'attempt': {
        const { attempt, purpose, inline, verifyFinal } = verdict;
        this.append({ type: 'attempt_scheduled', data: { attempt, purpose, inline, verifyFinal } });
        const outcome = this.steps.attempt(verdict, this);
        return outcome === null
          ? this.lost(attempt)
          : this.append({ type: 'attempt_finished', data: { attempt, outcome } });
      }
      case 'rollback': {
        const { attempt, reason, final } = verdict;
        this.append({ type: 'rollback_scheduled', data: { attempt, reason, final } });
        const outcome = this.steps.rollback(verdict, this);
        return outcome === null
          ? this.lost(attempt)
          : this.append({ type: 'rollback_finished', data: { attempt, outcome } });
      }
      case 'close': {
        this.append({ type: 'close_scheduled', data: { end: verdict.end } });
        const outcome = this.steps.close(verdict, this);
        return outcome === null
          ? this.lost(null)
          : this.append({ type: 'close_finished', data: { outcome } });
      }
      case 'resolve': {
        this.append({ type: 'resolve_scheduled', data: { attempt: verdict.attempt } });
        const answer = this.steps.resolve(verdict, this);
        return answer === null ? this.lost(null) : this.append({ type: 'resolve_finished', data: answer });
      }
      case 'backoff': {
        const { failure, spendsRetry } = verdict;
        const delayMs = backoffDelayMs(verdict, this.random());
        return this.append({
          type: 'backoff_scheduled',
          data: { nextAt: this.now + delayMs, delayMs, failure, spendsRetry },
        });
      }
      case 'end': {
        const { end, result, replayed } = verdict;
        return this.append({ type: 'task_ended', data: { end, result, replayed } });
      }
      case 'wait':
      case 'nothing':
        return;
      case 'plan':
      case 'supervise':
      case 'cancel_remote':
      case 'await':
        throw new Error(`the driver has nothing to do with ${verdict.do}`);
      default:
        return verdict satisfies never;
    }
  }

  /** Granted at once, unless the test says otherwise. */
  private leased(verdict: Of<'lease'>): void {
    const { request, holding } = verdict;
    const { id, resource, leaseMs } = this.plan.lease ?? { id: '', resource: '', leaseMs: 0 };
    const renews = holding === null ? {} : { holding };
    this.append({ type: 'lease_requested', data: { request, id, resource, leaseMs, ...renews } });
    const answer = this.steps.lease?.(verdict, this) ?? 'granted';
    if (answer === 'failed')
      this.append({ type: 'lease_ask_failed', data: { request, isGone: holding !== null } });
    else if (answer === 'granted') this.grant(holding ?? undefined);
  }

  /** What the lease's workflow tells; `fence` absent: a new one. */
  grant(fence = (this.fence += 1)): void {
    const { requests = 0 } = this.state.lease ?? {};
    const until = this.now + (this.plan.lease?.leaseMs ?? 0);
    this.append({ type: 'lease_granted', data: { request: requests, fence, until } });
  }

  private lost(attempt: number | null): void {
    this.append({ type: 'step_lost', data: { attempt, failure: LOST } });
  }
}

/** Answers from queues, one an activity; a function may act on the driver (cancel it, move its clock) before it answers. */
type Scripted<V, A> = A | null | ((verdict: V, driver: TaskDriver) => A | null);
export interface Script {
  attempt?: Scripted<Of<'attempt'>, OperationOutcome>[];
  rollback?: Scripted<Of<'rollback'>, RollbackOutcome>[];
  close?: Scripted<Of<'close'>, CloseOutcome>[];
  resolve?: Scripted<Of<'resolve'>, { end: TaskEnd | null }>[];
}

export function scripted(script: Script): Steps {
  const next = <V extends Verdict, A>(
    queue: Scripted<V, A>[] | undefined,
    verdict: V,
    driver: TaskDriver,
  ): A | null => {
    const answer = queue?.shift();
    if (answer === undefined) throw new Error(`no answer left for ${JSON.stringify(verdict)}`);
    return typeof answer === 'function'
      ? (answer as (verdict: V, driver: TaskDriver) => A | null)(verdict, driver)
      : answer;
  };
  return {
    attempt: (verdict, driver) => next(script.attempt, verdict, driver),
    rollback: (verdict, driver) => next(script.rollback, verdict, driver),
    close: (verdict, driver) => next(script.close, verdict, driver),
    resolve: (verdict, driver) => next(script.resolve, verdict, driver),
  };
}
