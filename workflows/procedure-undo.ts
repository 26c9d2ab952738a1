/**
 * What of a procedure is undone (S6.3): all that it committed, or what a part of it did (`p.child`) that failed.
 *
 * Invariants:
 * 1. Newest first and one at a time, whoever asks for it: no step is undone by two.
 * 2. A part that fails while the whole is stopped is undone with the whole.
 * 3. No rollback begins while the procedure is interrupted (S7.2), of steps that had ended before it was either.
 */
import { patched } from '@temporalio/workflow';
import type { UndoReason } from '../src/task/procedure-event.ts';
import { isStopped } from '../src/task/procedure-state.ts';
import type { ProcedureRun } from './procedure-run.ts';
import type { ProcedureStep } from './procedure-step.ts';

/** `rest`: the run must continue as new first. */
type Undone = 'undone' | 'rest';

/** Runs in which two undid at once go on as they began. */
const isOneAtATime = (): boolean => patched('one-undo-at-a-time');

export class ProcedureUndo {
  readonly #run: ProcedureRun;
  /** Parts that have failed, by their prefixes, and steps that an earlier run began to undo. */
  readonly #failed = new Set<string>();
  #underWay = 0;

  constructor(run: ProcedureRun) {
    this.#run = run;
  }

  /** Whether a part of this one is not undone yet. */
  isBusyWithin(prefix: string): boolean {
    const isBusy = [...this.#failed].some((part) => part !== prefix && part.startsWith(prefix));
    return isBusy && isOneAtATime();
  }

  /** A part failed: what is under way in it ends, then it is undone by itself. */
  async part(prefix: string): Promise<Undone> {
    const run = this.#run;
    this.#failed.add(prefix);
    run.stop('procedure', prefix);
    if ((await run.settled(prefix)) === 'rest') return 'rest';
    const isLeftToAll = isStopped(run.state) && isOneAtATime();
    if (!isLeftToAll && (await this.undo('procedure_failed', prefix)) === 'rest') return 'rest';
    this.#failed.delete(prefix);
    return 'undone';
  }

  /** Committed steps of a part, or all. */
  async undo(reason: UndoReason, prefix: string): Promise<Undone> {
    const run = this.#run;
    while (this.#underWay > 0 && isOneAtATime()) {
      await run.untilOrRest(() => this.#underWay === 0);
      // Another that waited may have begun first; only a run that is due rests.
      if (this.#underWay > 0 && run.isDue()) return 'rest';
    }
    const steps = run.state.committed.filter((step) => step.startsWith(prefix)).toReversed();
    const within = prefix === '' ? null : prefix;
    if (run.state.phase.kind !== 'undoing' && (steps.length > 0 || within === null))
      run.journal.append({ type: 'undo_started', data: { reason, steps, within } });
    this.#underWay += 1;
    for (const name of steps) {
      const step = run.steps.get(name);
      if (step === undefined) throw new Error(`step ${name} is committed and not known`);
      this.#begin(step, reason);
      if ((await run.underWay(step.untilOver())) === 'rest') return 'rest';
      run.journal.append({ type: 'step_undone', data: { step: name } });
    }
    this.#underWay -= 1;
    return 'undone';
  }

  /** Whether an earlier run began to undo this step, which then goes on. */
  goesOnWith({ name }: ProcedureStep): boolean {
    // Runs that closed such a step a second time go on as they began.
    if (!this.#run.state.committed.includes(name) || !isOneAtATime()) return false;
    this.#failed.add(name);
    this.#underWay += 1;
    return true;
  }

  undone({ name }: ProcedureStep): void {
    this.#run.journal.append({ type: 'step_undone', data: { step: name } });
    this.#failed.delete(name);
    this.#underWay -= 1;
  }

  #begin(step: ProcedureStep, reason: UndoReason): void {
    if (!step.isUndoable) return;
    const isPaused = this.#run.state.interrupted && !step.state.interrupted;
    // Runs that undid under an interrupt go on as they began.
    if (isPaused && patched('undo-held-back'))
      step.journal.append({ type: 'interrupted', data: { by: 'procedure' } });
    step.journal.append({ type: 'undo_requested', data: { reason } });
  }
}
