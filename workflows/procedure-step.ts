/** One step of a procedure: a task's core of its own (S2 to S7), under the procedure's task. */
import type { StepStart } from '../src/task/activity-api.ts';
import type { Json } from '../src/task/json.ts';
import type { ItemOutcome } from '../src/task/procedure-event.ts';
import type { TaskState } from '../src/task/state.ts';
import { effectOf } from '../src/task/view.ts';
import type { Admission } from './admission.ts';
import { Journal } from './journal.ts';
import type { JournalSnapshot } from './journal.ts';
import type { ProcedureJournal } from './procedure-journal.ts';
import { TaskLoop } from './task-loop.ts';
import type { LoopTerms } from './task-loop.ts';
import { TaskRun } from './task-run.ts';

export interface StepSnapshot {
  journal: JournalSnapshot;
  input: Json;
  /** Until it is planned. */
  start: StepStart | null;
}

export class ProcedureStep {
  readonly name: string;
  readonly journal: Journal;
  readonly run: TaskRun;
  readonly #start: StepStart | null;
  readonly #loop: TaskLoop;

  constructor(
    name: string,
    begun: StepSnapshot | { start: StepStart; ordinal: number },
    owner: ProcedureJournal,
    terms: Pick<LoopTerms, 'showInInbox' | 'isDue'>,
    admission: Admission,
  ) {
    this.name = name;
    this.#start = begun.start;
    const heard = { stepId: name, heard: owner.heard.bind(owner, name) };
    this.journal =
      'journal' in begun
        ? new Journal(begun.journal, heard)
        : new Journal(
            {
              type: 'task_started',
              data: {
                taskId: owner.state.taskId,
                action: begun.start.action,
                ordinal: begun.ordinal,
                plan: null,
                stepId: name,
              },
            },
            heard,
          );
    const input = 'journal' in begun ? begun.input : begun.start.args;
    this.run = new TaskRun(this.journal, input, { step: begun.start, admission });
    this.#loop = new TaskLoop(this.journal, this.run, { ...terms, isOver: () => this.isFinished });
  }

  get state(): TaskState {
    return this.journal.state;
  }

  get isFinished(): boolean {
    return this.state.phase.kind === 'finished';
  }

  /** It stands, and the procedure can undo it. */
  get isUndoable(): boolean {
    return this.isFinished && effectOf(this.state) === 'applied' && !this.state.rollbackDeclined;
  }

  /** The procedure's own end must tell of it. */
  get outcomeMatters(): boolean {
    return effectOf(this.state) !== 'none';
  }

  untilOver(): Promise<'over' | 'rest'> {
    return this.#loop.untilOver();
  }

  /** What its end means to the procedure's code. */
  outcome(): ItemOutcome {
    const { phase } = this.state;
    if (phase.kind !== 'finished') throw new Error(`step ${this.name} is not finished`);
    const { end, result } = phase;
    if (end.status === 'completed') return { ok: true, result: result ?? { kind: 'inline', value: null } };
    const error = end.error ?? { code: end.cause, message: 'The step did not come about.' };
    return { ok: false, cause: end.cause, error };
  }

  snapshot(): StepSnapshot {
    const { input } = this.run;
    return { journal: this.journal.snapshot(), input, start: this.state.plan === null ? this.#start : null };
  }
}
