/**
 * A procedure under way: its steps, each a task's core of its own, and what becomes of them together (S6.3).
 *
 * Owns the order of things: which step may begin, when the code is stopped, what is undone and in which order.
 * Invariants:
 * 1. No step begins once the procedure is stopped: by its code's failure, a cancel, or its deadline.
 * 2. Nothing is undone while a step is under way: one in doubt is settled before anyone decides about it.
 * 3. What is committed is undone newest first, one at a time, where no cancel can reach it (procedure-undo.ts).
 * 4. The end is written once nothing is left to undo, or a person said that it stays.
 * 5. A run continues as new only while no activity is under way; everything above goes on after it.
 */
import { allHandlersFinished, condition } from '@temporalio/workflow';
import type { StepStart } from '../src/task/activity-api.ts';
import type { Json } from '../src/task/json.ts';
import type { Plan } from '../src/task/plan.ts';
import type { TaskOutcome } from '../src/task/outcome.ts';
import type { NewProcedureEvent } from '../src/task/procedure-event.ts';
import { withPast } from '../src/task/past-steps.ts';
import { isOver } from '../src/task/phase.ts';
import { heldFor, isStopped, slaAlertDue, slaDueAtOf } from '../src/task/procedure-state.ts';
import type { Item, ProcedureState } from '../src/task/procedure-state.ts';
import { returnedEnd, stoppedEnd, viewOf } from '../src/task/procedure-view.ts';
import type { AlertDue, TaskState } from '../src/task/state.ts';
import { outcomeOf, statusOf } from '../src/task/view.ts';
import { Admission } from './admission.ts';
import { handOver } from './decisions.ts';
import { ProcedureInbox } from './procedure-inbox.ts';
import { ProcedureItems } from './procedure-items.ts';
import { ProcedureJournal } from './procedure-journal.ts';
import type { ProcedureJournalSnapshot } from './procedure-journal.ts';
import { ProcedureLedger } from './procedure-ledger.ts';
import { ProcedureRecord, slimItems, slimStep } from './procedure-record.ts';
import { watchProcedureSla } from './procedure-sla.ts';
import { ProcedureStep } from './procedure-step.ts';
import type { StepSnapshot } from './procedure-step.ts';
import { ProcedureUndo } from './procedure-undo.ts';
import { NOTES_PENDING_MAX } from './task-loop.ts';
import type { LoopTerms } from './task-loop.ts';

export interface ProcedureSnapshot {
  journal: ProcedureJournalSnapshot;
  steps: Record<string, StepSnapshot>;
  isInInbox: boolean;
}

export class ProcedureRun {
  /** What its code is run with. */
  input: Json = null;
  readonly journal: ProcedureJournal;
  readonly items: ProcedureItems;
  readonly undoing: ProcedureUndo;
  /** Of those that are under way, have an effect, or were begun in this run. */
  readonly steps = new Map<string, ProcedureStep>();
  readonly #inbox: ProcedureInbox;
  readonly #record: ProcedureRecord;
  readonly #terms: Pick<LoopTerms, 'showInInbox' | 'isDue'>;
  readonly #ledger: ProcedureLedger;
  readonly #admission = new Admission();
  #underWay = 0;
  #defect: { error: unknown } | null = null;

  constructor(start: ProcedureSnapshot | Extract<NewProcedureEvent, { type: 'procedure_started' }>) {
    const carried = 'journal' in start ? start : null;
    this.journal = new ProcedureJournal(carried?.journal ?? (start as never), () => this.#toldStatus());
    const journals = () => [...this.steps.values()].map(({ journal }) => journal);
    this.#inbox = new ProcedureInbox(carried?.isInInbox ?? false, journals, () => this.view());
    this.#ledger = new ProcedureLedger(this.journal, () => this.#plan());
    this.#record = new ProcedureRecord(this);
    this.undoing = new ProcedureUndo(this);
    this.#terms = { showInInbox: this.#inbox.show, isDue: this.isDue };
    for (const [name, step] of Object.entries(carried?.steps ?? {}))
      this.steps.set(name, new ProcedureStep(name, step, this.journal, this.#terms, this.#admission));
    const isHeld = (): boolean => isStopped(this.state) || this.state.interrupted || this.isDue();
    this.items = new ProcedureItems(() => this.state, isHeld, this.fail);
  }

  get state(): ProcedureState {
    return this.journal.state;
  }

  get stepStates(): TaskState[] {
    return [...this.steps.values()].map(({ state }) => state);
  }

  view(): TaskState {
    return viewOf(this.state, this.stepStates);
  }

  /** A defect, ours or of code that is not what it was: the workflow task fails, and is tried again until code is there that fits. */
  readonly fail = (error: unknown): void => {
    this.#defect ??= { error };
  };

  /** Goes on with what was under way when the run before continued as new. */
  resume(): void {
    for (const step of this.steps.values()) if (!this.#isTold(step)) this.#go(step);
    for (const item of this.state.items)
      if (item.kind === 'sleep' && item.order === null) this.#waitOut(item);
    if (slaDueAtOf(this.state) !== null || slaAlertDue(this.state) !== null)
      watchProcedureSla(this).catch(this.fail);
  }

  readonly recordAlert = (alert: AlertDue): Promise<boolean> => this.#note(alert);

  /** The run is to continue as new. */
  readonly isDue = (): boolean => this.#record.isDue();

  /** Nothing more may begin. */
  isFull(): boolean {
    return this.#record.isFull();
  }

  begin(step: string, start: Omit<StepStart, 'key' | 'principal' | 'parent'>, fingerprint: string): void {
    const plan = this.#plan();
    const { taskId, ordinal, interrupted } = this.state;
    const early = heldFor(this.state, step);
    this.journal.append({ type: 'step_opened', data: { step, action: start.action, fingerprint } });
    const whole: StepStart = {
      ...start,
      key: `${plan.procedure?.origin ?? taskId}/${step}`,
      principal: plan.principal,
      parent: plan.operationId,
    };
    const begun = new ProcedureStep(
      step,
      { start: whole, ordinal },
      this.journal,
      this.#terms,
      this.#admission,
    );
    this.steps.set(step, begun);
    if (interrupted) begun.journal.append({ type: 'interrupted', data: { by: 'procedure' } });
    for (const decision of early) handOver(begun.journal, decision);
    this.#go(begun);
  }

  sleep(step: string, ms: number): void {
    this.journal.append({ type: 'sleep_started', data: { step, until: Date.now() + ms } });
    const item = this.state.items.find((known) => known.step === step);
    if (item) this.#waitOut(item);
  }

  /** Those under way end before their effect, or finish and are undone with the others. `prefix`: of a child alone. */
  stop(by: string, prefix = ''): void {
    for (const step of this.steps.values()) {
      const { phase, cancelRequested } = step.state;
      const isUndoing = 'step' in phase && phase.step.kind === 'rollback';
      if (!step.name.startsWith(prefix) || step.isFinished || isUndoing || cancelRequested) continue;
      step.journal.append({ type: 'cancel_requested', data: { by } });
    }
  }

  /** Until no step is under way, and none is being undone by a part. `rest`: the run must continue as new first. */
  async settled(prefix = ''): Promise<'settled' | 'rest'> {
    const areTold = (): boolean =>
      [...this.steps.values()].every((step) => !step.name.startsWith(prefix) || this.#isTold(step));
    const isSettled = (): boolean => areTold() && !this.undoing.isBusyWithin(prefix);
    await this.untilOrRest(isSettled);
    return isSettled() ? 'settled' : 'rest';
  }

  /** Until then, or until the run can continue as new. */
  untilOrRest(isSo: () => boolean): Promise<unknown> {
    return this.#until(() => isSo() || this.#isAtRest());
  }

  /** Counts as under way: meanwhile the run does not continue as new. */
  underWay<T>(work: Promise<T>): Promise<T> {
    this.#underWay += 1;
    return work.finally(() => (this.#underWay -= 1));
  }

  /** Writes the end; tried until the ledger takes it (S1.5, S10.3). */
  async end(): Promise<TaskOutcome> {
    if (slaAlertDue(this.state) !== null) await this.#until(() => slaAlertDue(this.state) === null);
    const { phase } = this.state;
    const result = phase.kind === 'returned' ? phase.result : null;
    if (!isOver(this.state)) {
      const steps = this.stepStates;
      const end = phase.kind === 'returned' ? returnedEnd(steps) : stoppedEnd(this.state, steps);
      this.journal.append({ type: 'end_scheduled', data: { end } });
      await this.#ledger.recordEnd(result);
    } else if (phase.kind === 'finished') {
      const { end, replayed } = phase;
      this.journal.append({ type: 'task_ended', data: { end, result: phase.result, replayed } });
    }
    this.#inbox.leave();
    await condition(allHandlersFinished);
    return outcomeOf(this.view());
  }

  /** Wakes on `isDue`, and meanwhile hands the audit what came together. */
  async until(isDue: () => boolean, deadline: number | null): Promise<void> {
    const isFull = (): boolean =>
      this.journal.pendingCount >= (this.state.interrupted ? 1 : NOTES_PENDING_MAX);
    for (;;) {
      const wakes = (): boolean => isDue() || isFull();
      if (deadline === null) await this.#until(wakes);
      else if (!(await this.#until(wakes, Math.max(1, deadline - Date.now())))) return;
      if (!isFull() || isDue()) return;
      await this.#flush();
    }
  }

  /** Nothing is under way, and the history is long. */
  isAtRest(): boolean {
    return this.#isAtRest() && allHandlersFinished();
  }

  /** The steps that cross continue-as-new, and the state with what stays of the others. */
  carried(): { steps: ProcedureStep[]; state: ProcedureState } {
    const steps = [...this.steps.values()];
    // One that ended as the history grew long has not been told yet: the next run tells it.
    const untold = new Set(this.state.items.flatMap(({ step, order }) => (order === null ? step : [])));
    const isKept = (step: ProcedureStep): boolean =>
      !step.isFinished || untold.has(step.name) || step.outcomeMatters;
    const left = steps.filter((step) => !isKept(step));
    return {
      steps: steps.filter(isKept),
      state: withPast(
        this.state,
        left.map(({ state }) => state),
      ),
    };
  }

  snapshot(): ProcedureSnapshot {
    const { steps: kept, state } = this.carried();
    const [journal, isInInbox] = [{ ...this.journal.snapshot(), state }, this.#inbox.isIn];
    const steps = kept.map((step) => [step.name, step.snapshot()] as const);
    if (!this.#record.isSlim()) return { journal, steps: Object.fromEntries(steps), isInInbox };
    return {
      journal: { ...journal, state: slimItems(journal.state) },
      steps: Object.fromEntries(steps.map(([name, step]) => [name, slimStep(step)])),
      isInInbox,
    };
  }

  async #flush(): Promise<void> {
    if (this.state.plan !== null) await this.#note();
  }

  async #note(alert?: AlertDue): Promise<boolean> {
    const isTaken = await this.underWay(this.#ledger.record(alert));
    if (!isTaken) await this.#ledger.pause();
    return isTaken;
  }

  #go(step: ProcedureStep): void {
    const isUndone = this.undoing.goesOnWith(step);
    this.underWay(step.untilOver())
      .then((stopped) => {
        if (stopped === 'rest') return;
        if (isUndone) return this.undoing.undone(step);
        const outcome = step.outcome();
        this.journal.append({
          type: 'step_closed',
          data: { step: step.name, outcome, undo: step.isUndoable },
        });
        this.items.tell();
      })
      .catch(this.fail);
  }

  #waitOut({ step, until }: Item): void {
    const isLeft = (): boolean => isStopped(this.state) || this.isDue();
    condition(isLeft, Math.max(1, (until ?? 0) - Date.now()))
      .then((wasLeft) => {
        if (wasLeft && Date.now() < (until ?? 0)) return;
        this.journal.append({ type: 'sleep_ended', data: { step } });
        this.items.tell();
      })
      .catch(this.fail);
  }

  #isTold({ name, isFinished }: ProcedureStep): boolean {
    const item = this.state.items.find(({ step }) => step === name);
    return isFinished && (item === undefined || item.order !== null);
  }

  #isAtRest(): boolean {
    return this.isDue() && this.#underWay === 0 && !this.items.isTelling;
  }

  async #until(isDue: () => boolean, timeoutMs?: number): Promise<boolean> {
    const wakes = (): boolean => this.#defect !== null || isDue();
    const woke =
      timeoutMs === undefined ? await condition(wakes).then(() => true) : await condition(wakes, timeoutMs);
    if (this.#defect !== null) throw this.#defect.error;
    return woke;
  }

  #plan(): Plan {
    if (this.state.plan === null) throw new Error('the procedure has no plan yet');
    return this.state.plan;
  }

  /** An end is told once the ledger has it: who hears of it reads it there. */
  #toldStatus(): string {
    return this.state.phase.kind === 'finished' ? 'running' : statusOf(this.view());
  }
}
