/** What a procedure's own events are in words; its steps' are those of any task (timeline.ts). */
import type { JournalEntry, ProcedureEvent } from '../task/procedure-event.ts';
import { humanDuration } from './terminal.ts';

/** The step an entry is about; null for one about all of the task. */
export function stepOf({ data }: JournalEntry): string | null {
  return 'step' in data && typeof data.step === 'string' ? data.step : null;
}

/** Null for an event that any task may have. */
export function procedureLine(entry: JournalEntry): [what: string, detail: string] | null {
  const event = entry as ProcedureEvent;
  switch (event.type) {
    case 'procedure_started':
      return ['started', event.data.procedure];
    case 'procedure_planned':
      return ['planned', ''];
    case 'procedure_refused':
      return ['refused', event.data.end.error?.message ?? ''];
    case 'step_opened':
      return ['step begun', event.data.action];
    case 'step_closed':
    case 'child_ended':
      return event.data.outcome.ok ? ['done', ''] : ['failed', event.data.outcome.error.message];
    case 'sleep_started':
      return ['sleeping', humanDuration(event.data.until - event.at)];
    case 'sleep_ended':
      return ['awake', ''];
    case 'child_started':
      return ['part begun', event.data.procedure];
    case 'procedure_returned':
      return ['code returned', ''];
    case 'procedure_failed':
      return ['code stopped', event.data.error.message];
    case 'procedure_restarted':
      return ['restarted', `pass ${event.data.runs + 1}`];
    case 'undo_started':
      return ['undoing', event.data.steps.join(', ') || 'nothing was committed'];
    case 'step_undone':
      return ['undone', ''];
    case 'end_scheduled':
      return ['ending', event.data.end.cause];
    case 'decision_held':
    case 'sla_missed':
    case 'alert_recorded':
    case 'cancel_requested':
    case 'interrupted':
    case 'resumed':
    case 'decision_ignored':
    case 'message_ignored':
    case 'task_ended':
      return null;
    default:
      event satisfies never;
      return null;
  }
}
