/**
 * The business SLA of a whole procedure (S5.3): a durable timer beside whatever it is doing, people's time included, which
 * alerts once and ends nothing. One that promised none has neither the timer nor an event of it in its history.
 */
import { condition } from '@temporalio/workflow';
import { isOver } from '../src/task/phase.ts';
import { slaAlertDue, slaDueAtOf } from '../src/task/procedure-state.ts';
import type { AlertDue } from '../src/task/state.ts';
import type { ProcedureJournal } from './procedure-journal.ts';

interface Watched {
  journal: ProcedureJournal;
  /** One try; false: the ledger is away, and it was waited for a while. */
  recordAlert(alert: AlertDue): Promise<boolean>;
  /** The run is to continue as new. */
  isDue(): boolean;
}

/** Begun again in each run. Until nothing is left to be alerted, or the run continues as new. */
export async function watchProcedureSla({ journal, recordAlert, isDue }: Watched): Promise<void> {
  const dueAt = slaDueAtOf(journal.state);
  if (dueAt !== null) {
    const isLeft = (): boolean => isOver(journal.state) || isDue();
    await condition(isLeft, Math.max(1, dueAt - Date.now()));
    if (Date.now() < dueAt || isOver(journal.state)) return;
    journal.append({ type: 'sla_missed', data: {} });
  }
  for (let alert = slaAlertDue(journal.state); alert !== null; alert = slaAlertDue(journal.state)) {
    if (isDue() && !isOver(journal.state)) return;
    if (await recordAlert(alert)) journal.append({ type: 'alert_recorded', data: { type: alert.type } });
  }
}
