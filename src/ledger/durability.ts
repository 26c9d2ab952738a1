/**
 * Where each event of a task's and of a procedure's journal is durable (S2, S3.1). docs/ledger.md shows these tables.
 *
 * Every event is a function of the engine's history: what is named there brings it about, and a replay brings it about
 * again. Beyond the engine's retention it is the ledger that knows: by a note in the audit (S10.3), or because a method
 * wrote what the event says. Where it knows neither, the event says nothing that outlives its task.
 */
import type { EventType } from '../task/event.ts';
import { NOTED, PROCEDURE_NOTED } from '../task/notes.ts';
import type { ProcedureEventType } from '../task/procedure-event.ts';
import type { Ledger } from './ledger.ts';

export interface Durable {
  event: string;
  /** What of the engine's history brings it about. */
  history: string;
  /** Whether its task's next ledger transaction carries it to the audit. */
  isNoted: boolean;
  /** Methods whose transaction holds what it says. */
  methods: readonly (keyof Ledger)[];
}

type Table<T extends string> = Record<T, [history: string, ...methods: (keyof Ledger)[]]>;

const SCHEDULED = 'activity scheduled';
const COMPLETED = 'activity completed';
const TIMER = 'timer fired';
const MESSAGE = 'signal or update';

const TASK: Table<EventType> = {
  task_started: ['workflow started', 'reserve', 'reserveStep'],
  plan_scheduled: [SCHEDULED],
  planned: [COMPLETED, 'reserve'],
  plan_refused: [COMPLETED],
  step_planned: [COMPLETED, 'reserveStep'],
  lease_requested: ['signal sent'],
  lease_ask_failed: [COMPLETED],
  lease_granted: ['signal', 'claim', 'claimRollback'],
  lease_released: ['signal sent'],
  undo_requested: [COMPLETED],
  attempt_scheduled: [SCHEDULED, 'claim', 'intend'],
  attempt_finished: [
    COMPLETED,
    'commit',
    'refuse',
    'release',
    'fail',
    'storeApplied',
    'mismatched',
    'raiseAttention',
    'registerRemoteTask',
  ],
  rollback_scheduled: [SCHEDULED, 'claimRollback'],
  rollback_finished: [COMPLETED, 'finishRollback', 'releaseRollback', 'rollbackAttention'],
  close_scheduled: [SCHEDULED],
  close_finished: [COMPLETED, 'closeTask', 'recordEnd'],
  resolve_scheduled: [SCHEDULED],
  resolve_finished: [COMPLETED, 'resolve'],
  step_lost: ['activity failed or timed out'],
  backoff_scheduled: ['timer started'],
  retries_exhausted: [COMPLETED],
  run_deadline_passed: [TIMER],
  cancel_requested: [`${MESSAGE}, or the engine’s cancel`],
  attempt_abort_requested: [MESSAGE],
  resolve_requested: [MESSAGE],
  preview_scheduled: [SCHEDULED],
  preview_overtaken: [COMPLETED],
  approval_opened: [COMPLETED],
  approval_given: [MESSAGE],
  challenge_failed: [MESSAGE],
  approval_decided: [MESSAGE],
  approval_expired: [TIMER],
  approval_expiring: [TIMER],
  decision_held: [MESSAGE],
  held_decision_taken: [COMPLETED],
  decision_ignored: [MESSAGE],
  sla_missed: [TIMER],
  alert_recorded: [COMPLETED, 'appendAudit'],
  remote_told: ['signal', 'settleRemoteCall'],
  remote_cancel_passed: ['signal sent', 'askRemoteCancel'],
  remote_answered: [MESSAGE],
  remote_lost: [COMPLETED],
  interrupted: [MESSAGE],
  resumed: [MESSAGE],
  message_ignored: [MESSAGE],
  task_ended: [
    'workflow completed',
    'commit',
    'refuse',
    'fail',
    'finishRollback',
    'closeTask',
    'resolve',
    'recordEnd',
  ],
};

const PROCEDURE: Table<ProcedureEventType> = {
  procedure_started: ['workflow started', 'reserve'],
  procedure_planned: [COMPLETED, 'reserve'],
  procedure_refused: [COMPLETED],
  step_opened: [SCHEDULED, 'reserveStep'],
  step_closed: [COMPLETED, 'commit', 'refuse', 'fail', 'closeTask'],
  sleep_started: ['timer started'],
  sleep_ended: [TIMER],
  child_started: ['child workflow started'],
  child_ended: ['child workflow completed', 'endProcedure'],
  procedure_returned: [COMPLETED, 'endProcedure'],
  procedure_failed: [`${COMPLETED}, or ${TIMER}`],
  procedure_restarted: ['continued as new'],
  decision_held: [MESSAGE],
  cancel_requested: [`${MESSAGE}, or the engine’s cancel`],
  interrupted: [MESSAGE],
  resumed: [MESSAGE],
  decision_ignored: [MESSAGE],
  message_ignored: [MESSAGE],
  sla_missed: [TIMER],
  alert_recorded: [COMPLETED, 'appendAudit'],
  undo_started: [COMPLETED],
  step_undone: [COMPLETED, 'finishRollback'],
  end_scheduled: [SCHEDULED],
  task_ended: ['workflow completed', 'endProcedure'],
};

export const TASK_EVENTS = lines(TASK, NOTED);
export const PROCEDURE_EVENTS = lines(PROCEDURE, PROCEDURE_NOTED);

/** Those that neither the engine's history nor the ledger holds. */
export const unpersisted = (events: readonly Durable[]): Durable[] =>
  events.filter(({ history, isNoted, methods }) => history === '' && !isNoted && methods.length === 0);

function lines<T extends string>(table: Table<T>, noted: readonly T[]): Durable[] {
  const events = Object.entries(table) as [T, Table<T>[T]][];
  return events.map(([event, [history, ...methods]]) => ({
    event,
    history,
    isNoted: noted.includes(event),
    methods,
  }));
}
