/**
 * One task, or one step of a procedure, under way: asks the decider and carries out its verdict, until nothing is left
 * to do or the history has grown long. What workflows `action` and `procedure` share.
 */
import { condition } from '@temporalio/workflow';
import { decide } from '../src/task/decide.ts';
import type { Verdict } from '../src/task/decide.ts';
import { isHistoryLong } from './history.ts';
import type { Journal } from './journal.ts';
import { mayMissSla, watchSla } from './sla.ts';
import type { TaskRun } from './task-run.ts';

/** So many notes that no ledger transaction carried yet are handed to the audit at once (S10.3). */
export const NOTES_PENDING_MAX = 100;

export interface LoopTerms {
  /** Tells the inbox that a person is waited for, or no longer. */
  showInInbox(journal: Journal, isWaiting: boolean): void;
  /** Whether the loop is over although the decider is not: a step that waits for what its procedure makes of it. */
  isOver?(journal: Journal): boolean;
  /** Whether the run is to continue as new; default: its history is long. */
  isDue?(): boolean;
}

export class TaskLoop {
  readonly #journal: Journal;
  readonly #run: TaskRun;
  readonly #terms: LoopTerms;

  constructor(journal: Journal, run: TaskRun, terms: LoopTerms) {
    this.#journal = journal;
    this.#run = run;
    this.#terms = terms;
  }

  readonly #isDue = (): boolean => this.#terms.isDue?.() ?? isHistoryLong();

  /** `rest`: the history is long and nothing of this task is under way; go on after continuing as new. */
  async untilOver(): Promise<'over' | 'rest'> {
    if (mayMissSla(this.#journal.state)) void watchSla(this.#journal, this.#run);
    for (;;) {
      if (this.#isDue()) return 'rest';
      const verdict = decide(this.#journal.state, Date.now());
      if (verdict.do === 'nothing') return 'over';
      if (verdict.do === 'end' && this.#terms.isOver?.(this.#journal)) {
        if (pendingNotes(this.#journal) === 0) return 'over';
        await (this.#run.admit('flush') ?? this.#run.flushNotes());
        continue;
      }
      const isFlushing = mustFlush(verdict, this.#journal);
      const later = this.#run.admit(isFlushing ? 'flush' : verdict.do);
      if (later !== undefined) {
        await later;
        continue;
      }
      const step = isFlushing ? this.#run.flushNotes() : this.#carryOut(verdict);
      if (step !== undefined) await step;
    }
  }

  /** Nothing to wait for: undefined. */
  #carryOut(verdict: Exclude<Verdict, { do: 'nothing' }>): Promise<void> | undefined {
    if (!isAside(verdict, this.#journal)) this.#terms.showInInbox(this.#journal, isPersonAwaited(verdict));
    return verdict.do === 'wait'
      ? waitUntil(this.#journal, verdict.until, this.#isDue)
      : this.#run.carryOut(verdict, this.#isDue);
  }
}

function isPersonAwaited(verdict: Verdict): boolean {
  return (verdict.do === 'wait' || verdict.do === 'supervise') && verdict.person;
}

/**
 * What is done while the same approval, or the same question of another server, stays open: a reminder or a renewal is no
 * reason to leave the inbox and to enter it again.
 */
function isAside(verdict: Verdict, { state }: Journal): boolean {
  if (verdict.do === 'lease') return state.phase.kind === 'remote';
  if (verdict.do === 'alert' || verdict.do === 'judge_held') return true;
  if (verdict.do !== 'append') return false;
  if (verdict.event.type === 'approval_expiring') return true;
  if (verdict.event.type !== 'approval_expired') return false;
  return ['remind', 'escalate'].includes(verdict.event.data.outcome);
}

/** S10.3: before a task starts to wait for a person, before it ends, and when much has come together. */
function mustFlush(verdict: Verdict, journal: Journal): boolean {
  const pending = pendingNotes(journal);
  if (pending === 0) return false;
  if (verdict.do === 'supervise') return true;
  return startsToWait(verdict, journal) || verdict.do === 'end' || pending >= NOTES_PENDING_MAX;
}

/** Each decision about an open approval, and an interrupt, start the wait anew: for the next approver, or to be resumed. */
function startsToWait(verdict: Verdict, { state, isInInbox }: Journal): boolean {
  if (verdict.do !== 'wait') return false;
  if (state.interrupted || state.phase.kind === 'awaiting_approval') return true;
  return verdict.person && !isInInbox;
}

export function pendingNotes({ state, pendingCount }: Journal): number {
  return state.plan?.recorded === true ? pendingCount : 0;
}

/** Until the clock reads `until`, a message changed the state, or messages have filled the history. */
async function waitUntil(journal: Journal, until: number | null, isDue: () => boolean): Promise<void> {
  const { seq } = journal.state;
  const isOver = (): boolean => journal.state.seq !== seq || isDue();
  if (until === null) await condition(isOver);
  else await condition(isOver, Math.max(1, until - Date.now()));
}
