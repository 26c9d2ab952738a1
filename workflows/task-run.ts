/**
 * Carries out the decider's verdicts for one task: announce in the journal, run the activity, append its outcome.
 *
 * Each promise made here costs a stack trace (the SDK keeps one for every promise of a workflow), which is most of what
 * a task's own code costs its worker: so callbacks where `async` would only pass a promise on.
 */
import { CancellationScope, condition } from '@temporalio/workflow';
import type { AuditNote, BareStart, StepAnswer, StepStart } from '../src/task/activity-api.ts';
import { opened } from '../src/task/approval-state.ts';
import { backoffDelayMs, decide } from '../src/task/decide.ts';
import type { Verdict } from '../src/task/decide.ts';
import type { NewEvent } from '../src/task/event.ts';
import { heldLease } from '../src/task/held-lease.ts';
import type { Json } from '../src/task/json.ts';
import type { HeldLease } from '../src/task/claim.ts';
import type { Plan } from '../src/task/plan.ts';
import type { AlertDue } from '../src/task/state.ts';
import { Admission } from './admission.ts';
import { judgeHeld } from './decisions.ts';
import type { Journal } from './journal.ts';
import { bytesOf } from './json-bytes.ts';
import { askForLease, releaseLease } from './leases.ts';
import { RemoteWatch } from './remote-watch.ts';
import {
  attemptActivities,
  firstStepActivities,
  inlineActivities,
  ledgerActivities,
  pauseForLedger,
  stepLost,
} from './steps.ts';

type ActingVerdict = Exclude<Verdict, { do: 'nothing' } | { do: 'wait' }>;
type AttemptVerdict = Extract<Verdict, { do: 'attempt' }>;
type RollbackVerdict = Extract<Verdict, { do: 'rollback' }>;
type CloseVerdict = Extract<Verdict, { do: 'close' }>;
type BackoffVerdict = Extract<Verdict, { do: 'backoff' }>;
type ResolveVerdict = Extract<Verdict, { do: 'resolve' }>;
type EndVerdict = Extract<Verdict, { do: 'end' }>;

/** Verdicts that schedule an activity, with the input or without. */
const WITH_INPUT: readonly string[] = ['plan', 'preview', 'attempt', 'rollback'];
const WITHOUT_INPUT: readonly string[] = ['flush', 'alert', 'close', 'resolve'];

export class TaskRun {
  private readonly journal: Journal;
  private readonly remote: RemoteWatch;
  /** The validated input; for a bare task known only once it has planned. */
  input: Json;
  /** Edits whose arguments an activity is planning. */
  editsUnderWay = 0;
  private readonly bare: BareStart | null;
  private readonly step: StepStart | null;
  readonly admission: Admission;
  private notesLostInARow = 0;

  /**
   * `bare`: planned by its first activity. `step`: of a procedure, planned within its first attempt. `admission`: of the
   * whole workflow.
   */
  constructor(
    journal: Journal,
    input: Json,
    {
      bare = null,
      step = null,
      admission = new Admission(),
    }: { bare?: BareStart | null; step?: StepStart | null; admission?: Admission } = {},
  ) {
    this.journal = journal;
    this.remote = new RemoteWatch(journal);
    this.input = input;
    this.bare = bare;
    this.step = step;
    this.admission = admission;
  }

  /** Undefined: the verdict may be carried out in this workflow task. Otherwise decide again then. */
  admit(what: Verdict['do'] | 'flush'): Promise<void> | undefined {
    const hasInput = WITH_INPUT.includes(what);
    if (!hasInput && !WITHOUT_INPUT.includes(what)) return undefined;
    const { plan } = this.journal.state;
    const start = plan === null ? (this.step ?? this.bare) : null;
    const input = start === null && hasInput ? this.input : null;
    const parts = [plan, start, input, ...this.journal.unaudited()];
    return this.admission.ask(parts.reduce<number>((sum, part) => sum + bytesOf(part), 0));
  }

  /** Nothing to wait for: undefined. `isDue`: the run is to continue as new. */
  carryOut(verdict: ActingVerdict, isDue: () => boolean): Promise<void> | undefined {
    switch (verdict.do) {
      case 'append':
        this.journal.append(verdict.event);
        return undefined;
      case 'plan':
        return this.plan();
      case 'preview':
        return this.preview(verdict.callId);
      case 'judge_held':
        judgeHeld(this.journal, verdict.decision);
        return undefined;
      case 'alert':
        return this.alert(verdict.alert);
      case 'attempt':
        return this.attempt(verdict);
      case 'rollback':
        return this.rollback(verdict);
      case 'close':
        return this.close(verdict);
      case 'resolve':
        return this.resolve(verdict);
      case 'lease':
        return askForLease(this.journal, this.planned(), verdict);
      case 'release':
        return releaseLease(this.journal, verdict);
      case 'backoff':
        this.backOff(verdict);
        return undefined;
      case 'end':
        this.end(verdict);
        return undefined;
      case 'supervise':
        return this.remote.follow(verdict.attempt, verdict.until, isDue);
      case 'cancel_remote':
        return this.remote.cancel(verdict.attempt);
      case 'await':
        throw new Error('nothing is running');
      default:
        return verdict satisfies never;
    }
  }

  /**
   * S10.3: hands the audit what no ledger transaction has carried. One try; when the ledger is away it waits before it
   * returns, and the caller comes again.
   */
  async flushNotes(): Promise<void> {
    await this.recordNotes();
  }

  /** Whether the ledger took them. */
  private async recordNotes(alert?: AlertDue): Promise<boolean> {
    const { taskId } = this.journal.state;
    const plan = this.planned();
    const notes = this.journal.unaudited();
    try {
      await ledgerActivities.recordNotes({ plan, taskId, journal: notes, ...(alert && { alert }) });
      this.notesLostInARow = 0;
      this.journal.audited(notes);
      return true;
    } catch {
      // Lost: the notes are still the journal's.
    }
    const lostBefore = this.notesLostInARow;
    this.notesLostInARow += 1;
    await pauseForLedger(lostBefore);
    return false;
  }

  private plan(): Promise<void> {
    const start = this.bare;
    if (start === null) throw new Error('only a bare task plans');
    const { journal } = this;
    journal.append({ type: 'plan_scheduled', data: {} });
    return this.settle(
      { attempt: null, journal: [] },
      ledgerActivities.planTask({ start, taskId: journal.state.taskId }),
      (planned) => {
        if (planned.kind === 'refused') {
          const { end, operationId, result, replayed } = planned;
          return { type: 'plan_refused', data: { end, operationId, result, replayed } };
        }
        this.input = planned.input;
        return { type: 'planned', data: { plan: planned.plan, ordinal: planned.ordinal } };
      },
    );
  }

  /** S4.7: what the approver is to see is read when the approval opens. */
  private preview(callId: string): Promise<void> {
    const plan = this.planned();
    const { plan: _plan, taskId, journal } = this.common();
    const request = { plan, taskId, journal, input: this.input };
    this.journal.append({ type: 'preview_scheduled', data: { callId } });
    return this.settle(
      { attempt: null, journal },
      attemptActivities(plan, true).previewOperation(request),
      (seen) =>
        seen.kind === 'overtaken'
          ? { type: 'preview_overtaken', data: { rowAttempt: seen.rowAttempt } }
          : {
              type: 'approval_opened',
              data: { approval: opened(plan, callId, seen.view, Date.now()) },
            },
    );
  }

  /** S6.5: into the outbox, with the notes that led to it; tried until the ledger takes it. */
  private async alert(alert: AlertDue): Promise<void> {
    if (await this.recordNotes(alert))
      this.journal.append({ type: 'alert_recorded', data: { type: alert.type } });
  }

  /** For what becomes due while a step is working, which the decider waits for. */
  async alertMeanwhile(): Promise<void> {
    for (;;) {
      const { phase, alertsDue } = this.journal.state;
      const [alert] = alertsDue;
      if (phase.kind !== 'working' || alert === undefined) return;
      await this.alert(alert);
    }
  }

  private attempt(verdict: AttemptVerdict): Promise<void> {
    const { plan } = this.journal.state;
    if (plan === null) return this.performStep(verdict);
    const { attempt, purpose, inline, verifyFinal } = verdict;
    const request = {
      ...this.common(),
      ...this.leased(plan),
      input: this.input,
      attempt,
      purpose,
      inline,
      verifyFinal,
    };
    const activities = inline
      ? inlineActivities(plan)
      : attemptActivities(plan, attempt === 1, this.leaseUntil());
    this.journal.append({ type: 'attempt_scheduled', data: { attempt, purpose, inline, verifyFinal } });
    const run = () =>
      this.settle(request, activities.attemptOperation(request), (outcome) => ({
        type: 'attempt_finished',
        data: { attempt, outcome },
      }));
    return plan.cancelAttempt === 'abort' ? this.runAbortable(attempt, run) : run();
  }

  /** One activity on a step's happy path: it plans, reserves and performs (architecture.md, idea 1). */
  private performStep({ attempt, purpose, inline, verifyFinal }: AttemptVerdict): Promise<void> {
    const start = this.step;
    if (start === null) throw new Error('only a step is planned by its attempt');
    const { taskId, ordinal } = this.journal.state;
    const journal = this.journal.unaudited();
    this.journal.append({ type: 'attempt_scheduled', data: { attempt, purpose, inline, verifyFinal } });
    return firstStepActivities.performStep({ start, taskId, ordinal, attempt, purpose, journal }).then(
      (answer) => {
        this.journal.audited(answer.kind === 'refused' ? [] : journal);
        this.performed(attempt, answer);
      },
      (error: unknown) => this.journal.append(stepLost(attempt, error)),
    );
  }

  private performed(attempt: number, answer: StepAnswer): void {
    if (answer.kind === 'refused') {
      const { end } = answer;
      this.journal.append({
        type: 'plan_refused',
        data: { end, operationId: null, result: null, replayed: false },
      });
      return;
    }
    const { plan, ordinal } = answer;
    this.input = answer.input;
    const leases = answer.kind === 'leases' ? { leases: { inDoubt: answer.inDoubt } } : {};
    this.journal.append({
      type: 'step_planned',
      data: { plan, ordinal, asks: answer.kind === 'asks', ...leases },
    });
    if (answer.kind === 'performed')
      this.journal.append({ type: 'attempt_finished', data: { attempt, outcome: answer.outcome } });
  }

  private rollback(verdict: RollbackVerdict): Promise<void> {
    const { attempt, reason, final } = verdict;
    const plan = this.planned();
    const request = {
      ...this.common(),
      ...this.leased(plan),
      input: this.input,
      attempt,
      reason,
      final,
    };
    const activities = attemptActivities(plan, false, this.leaseUntil());
    this.journal.append({ type: 'rollback_scheduled', data: { attempt, reason, final } });
    const running = activities.rollbackOperation(request);
    return this.settle(request, running, (outcome) => ({
      type: 'rollback_finished',
      data: { attempt, outcome },
    }));
  }

  private close(verdict: CloseVerdict): Promise<void> {
    if (this.journal.state.plan === null) return this.closeUnplanned(verdict);
    const request = { ...this.common(), attempt: this.journal.state.attempt, end: verdict.end };
    this.journal.append({ type: 'close_scheduled', data: { end: verdict.end } });
    return this.settle(
      { ...request, attempt: null },
      ledgerActivities.closeOperation(request),
      (outcome) => ({
        type: 'close_finished',
        data: { outcome },
      }),
    );
  }

  /** A step that never began: nothing was reserved, so the ledger has nothing to close. */
  private closeUnplanned({ end }: CloseVerdict): Promise<void> {
    this.journal.append({ type: 'close_scheduled', data: { end } });
    this.journal.append({ type: 'close_finished', data: { outcome: { kind: 'closed' } } });
    return Promise.resolve();
  }

  private resolve(verdict: ResolveVerdict): Promise<void> {
    const { attempt, resolution, about, end } = verdict;
    const request = { ...this.common(), attempt, resolution, about, end };
    this.journal.append({ type: 'resolve_scheduled', data: { attempt } });
    return this.settle(
      { ...request, attempt: null },
      ledgerActivities.resolveOperation(request),
      (answer) => ({
        type: 'resolve_finished',
        data: { end: answer.end },
      }),
    );
  }

  private backOff(verdict: BackoffVerdict): void {
    const delayMs = backoffDelayMs(verdict, Math.random());
    const { failure, spendsRetry } = verdict;
    this.journal.append({
      type: 'backoff_scheduled',
      data: { nextAt: Date.now() + delayMs, delayMs, failure, spendsRetry },
    });
  }

  private end({ end, result, replayed }: EndVerdict): void {
    this.journal.append({ type: 'task_ended', data: { end, result, replayed } });
  }

  private planned(): Plan {
    const { plan } = this.journal.state;
    if (plan === null) throw new Error('the task has no plan yet');
    return plan;
  }

  private leased(plan: Plan): { lease?: HeldLease } {
    const lease = heldLease(this.journal.state, plan);
    return lease === undefined ? {} : { lease };
  }

  /** Null where nothing is held. */
  private leaseUntil(): number | null {
    return this.journal.state.lease?.held?.until ?? null;
  }

  private common() {
    const { taskId, ordinal } = this.journal.state;
    return { plan: this.planned(), taskId, ordinal, journal: this.journal.unaudited() };
  }

  /** Until the activity answered, or was lost; the notes it carried count as audited once it answered. */
  private settle<T>(
    carried: { attempt: number | null; journal: readonly AuditNote[] },
    running: Promise<T>,
    eventOf: (answer: T) => NewEvent,
  ): Promise<void> {
    const { journal } = this;
    return running.then(
      (answer) => {
        journal.audited(carried.journal);
        journal.append(eventOf(answer));
      },
      (error: unknown) => journal.append(stepLost(carried.attempt, error)),
    );
  }

  /** Listening: a cancel asks for the attempt to be aborted while it runs (S7.4). */
  private async runAbortable(attempt: number, run: () => Promise<void>): Promise<void> {
    const scope = new CancellationScope({ cancellable: true });
    let isDone = false;
    const running = scope.run(run).finally(() => {
      isDone = true;
    });
    for (;;) {
      const { seq } = this.journal.state;
      await condition(() => isDone || this.journal.state.seq !== seq);
      if (isDone) return running;
      const verdict = decide(this.journal.state, Date.now());
      if (verdict.do === 'await' && verdict.abort) {
        this.journal.append({ type: 'attempt_abort_requested', data: { attempt } });
        scope.cancel();
      }
    }
  }
}
