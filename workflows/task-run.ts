/** Carries out the decider's verdicts for one task: announce in the journal, run the activity, append its outcome. */
import { CancellationScope, condition, sleep } from '@temporalio/workflow';
import type { BareStart } from '../src/task/activity-api.ts';
import { backoffDelayMs, decide } from '../src/task/decide.ts';
import type { Verdict } from '../src/task/decide.ts';
import type { NewEvent } from '../src/task/event.ts';
import type { Json } from '../src/task/json.ts';
import type { Plan } from '../src/task/plan.ts';
import type { Journal } from './journal.ts';
import { attemptActivities, inlineActivities, ledgerActivities, stepEvents } from './steps.ts';

type ActingVerdict = Exclude<Verdict, { do: 'nothing' } | { do: 'wait' }>;
type AttemptVerdict = Extract<Verdict, { do: 'attempt' }>;
type RollbackVerdict = Extract<Verdict, { do: 'rollback' }>;
type CloseVerdict = Extract<Verdict, { do: 'close' }>;
type BackoffVerdict = Extract<Verdict, { do: 'backoff' }>;
type ResolveVerdict = Extract<Verdict, { do: 'resolve' }>;
type EndVerdict = Extract<Verdict, { do: 'end' }>;

/** The ledger is away: how long until the notes are tried again, doubling. */
const NOTES_RETRY_INITIAL_MS = 1_000;
const NOTES_RETRY_MAXIMUM_MS = 60_000;

export class TaskRun {
  private readonly journal: Journal;
  /** The validated input; for a bare task known only once it has planned. */
  input: Json;
  private readonly bare: BareStart | null;
  private notesLostInARow = 0;

  constructor(journal: Journal, input: Json, bare: BareStart | null) {
    this.journal = journal;
    this.input = input;
    this.bare = bare;
  }

  async carryOut(verdict: ActingVerdict): Promise<void> {
    switch (verdict.do) {
      case 'append':
        return this.journal.append(verdict.event);
      case 'plan':
        return this.plan();
      case 'attempt':
        return this.attempt(verdict);
      case 'rollback':
        return this.rollback(verdict);
      case 'close':
        return this.close(verdict);
      case 'resolve':
        return this.resolve(verdict);
      case 'backoff':
        return this.backOff(verdict);
      case 'end':
        return this.end(verdict);
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
    const { seq, taskId } = this.journal.state;
    const plan = this.planned();
    const [lost] = await stepEvents(null, async () => {
      await ledgerActivities.recordNotes({ plan, taskId, journal: this.journal.unaudited() });
      return [];
    });
    if (lost === undefined) {
      this.notesLostInARow = 0;
      return this.journal.audited(seq);
    }
    const retryMs = NOTES_RETRY_INITIAL_MS * 2 ** Math.min(this.notesLostInARow, 10);
    this.notesLostInARow += 1;
    await sleep(Math.min(retryMs, NOTES_RETRY_MAXIMUM_MS));
  }

  private async plan(): Promise<void> {
    const start = this.bare;
    if (start === null) throw new Error('only a bare task plans');
    this.journal.append({ type: 'plan_scheduled', data: {} });
    await this.run(null, async () => {
      const planned = await ledgerActivities.planTask({ start, taskId: this.journal.state.taskId });
      if (planned.kind === 'refused') {
        const { end, operationId, result, replayed } = planned;
        return [{ type: 'plan_refused', data: { end, operationId, result, replayed } }];
      }
      this.input = planned.input;
      return [{ type: 'planned', data: { plan: planned.plan, ordinal: planned.ordinal } }];
    });
  }

  private async attempt(verdict: AttemptVerdict): Promise<void> {
    const plan = this.planned();
    const { attempt, purpose, inline, verifyFinal } = verdict;
    const request = { ...this.common(), input: this.input, attempt, purpose, inline, verifyFinal };
    this.journal.append({ type: 'attempt_scheduled', data: { attempt, purpose, inline, verifyFinal } });
    const activities = inline ? inlineActivities(plan) : attemptActivities(plan, attempt === 1);
    await this.runAbortable(attempt, async () => {
      const outcome = await activities.attemptOperation(request);
      return [{ type: 'attempt_finished', data: { attempt, outcome } }];
    });
  }

  private async rollback(verdict: RollbackVerdict): Promise<void> {
    const { attempt, reason, final } = verdict;
    const request = { ...this.common(), input: this.input, attempt, reason, final };
    this.journal.append({ type: 'rollback_scheduled', data: { attempt, reason, final } });
    await this.run(attempt, async () => {
      const outcome = await attemptActivities(this.planned(), false).rollbackOperation(request);
      return [{ type: 'rollback_finished', data: { attempt, outcome } }];
    });
  }

  private async close(verdict: CloseVerdict): Promise<void> {
    const request = { ...this.common(), attempt: this.journal.state.attempt, end: verdict.end };
    this.journal.append({ type: 'close_scheduled', data: { end: verdict.end } });
    await this.run(null, async () => {
      const outcome = await ledgerActivities.closeOperation(request);
      return [{ type: 'close_finished', data: { outcome } }];
    });
  }

  private async resolve(verdict: ResolveVerdict): Promise<void> {
    const { attempt, resolution, about, end } = verdict;
    const request = { ...this.common(), attempt, resolution, about, end };
    this.journal.append({ type: 'resolve_scheduled', data: { attempt } });
    await this.run(null, async () => {
      const answer = await ledgerActivities.resolveOperation(request);
      return [{ type: 'resolve_finished', data: { end: answer.end } }];
    });
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

  private common() {
    const { taskId, ordinal } = this.journal.state;
    return { plan: this.planned(), taskId, ordinal, journal: this.journal.unaudited() };
  }

  /** Runs one activity; what its ledger transactions carried counts as audited once it answered. */
  private async run(attempt: number | null, activity: () => Promise<NewEvent[]>): Promise<void> {
    const carriedSeq = this.journal.state.seq;
    const events = await stepEvents(attempt, activity);
    if (events[0]?.type !== 'step_lost') this.journal.audited(carriedSeq);
    for (const event of events) this.journal.append(event);
  }

  /** The same, listening: a cancel may ask for the attempt to be aborted while it runs (S7.4). */
  private async runAbortable(attempt: number, activity: () => Promise<NewEvent[]>): Promise<void> {
    const scope = new CancellationScope({ cancellable: true });
    let isDone = false;
    const running = this.run(attempt, () => scope.run(activity)).finally(() => {
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
