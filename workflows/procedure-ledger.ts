/**
 * What a procedure itself tells the ledger: what the audit does not have yet, alerts about all of it, and its end. Each is
 * tried until the ledger takes it (S1.5, S6.5, S10.3).
 */
import type { Json } from '../src/task/json.ts';
import type { Plan } from '../src/task/plan.ts';
import type { AlertDue } from '../src/task/state.ts';
import type { ProcedureJournal } from './procedure-journal.ts';
import { ledgerActivities, pauseForLedger, procedureLedgerActivities } from './steps.ts';

export class ProcedureLedger {
  readonly #journal: ProcedureJournal;
  readonly #plan: () => Plan;
  #lostInARow = 0;

  constructor(journal: ProcedureJournal, plan: () => Plan) {
    this.#journal = journal;
    this.#plan = plan;
  }

  /** Hands the audit the oldest notes, and the outbox an alert. One try; false: the ledger is away. */
  record(alert?: AlertDue): Promise<boolean> {
    const notes = this.#journal.unaudited();
    const { taskId } = this.#journal.state;
    const request = { plan: this.#plan(), taskId, journal: notes, ...(alert && { alert }) };
    return ledgerActivities.recordNotes(request).then(
      () => {
        this.#lostInARow = 0;
        this.#journal.audited(notes);
        return true;
      },
      () => false,
    );
  }

  /** After it was away: until it is tried again, ever later. */
  pause(): Promise<void> {
    const lostBefore = this.#lostInARow;
    this.#lostInARow += 1;
    return pauseForLedger(lostBefore);
  }

  async recordEnd(result: Json): Promise<void> {
    const journal = this.#journal;
    for (let failures = 0; ; failures += 1) {
      const { phase, taskId, ordinal } = journal.state;
      if (phase.kind !== 'finished') throw new Error('an end is recorded that was not scheduled');
      const notes = journal.unaudited();
      const request = { plan: this.#plan(), taskId, ordinal, end: phase.end, result, journal: notes };
      const answer = await procedureLedgerActivities.endProcedure(request).catch(() => null);
      if (answer === null) {
        await pauseForLedger(failures);
        continue;
      }
      journal.audited(notes);
      if (journal.pendingCount > 0 && answer.kind === 'ended') continue;
      const end = answer.kind === 'ended' ? answer.end : phase.end;
      const kept = answer.kind === 'ended' ? answer.result : null;
      journal.append({ type: 'task_ended', data: { end, result: kept, replayed: false } });
      return;
    }
  }
}
