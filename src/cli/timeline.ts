/** `task show`: a task's journal as a timeline a person can read: what was checked, sent, verified, retried, undone, when. */
import type { TaskEvent } from '../task/event.ts';
import type { Plan } from '../task/plan.ts';
import type { JournalEntry } from '../task/procedure-event.ts';
import type { RemoteReport } from '../task/remote.ts';
import type { OperationOutcome, TaskEnd } from '../task/outcome.ts';
import { procedureLine, stepOf } from './procedure-timeline.ts';
import { humanDuration } from './terminal.ts';

export interface TimelineRow {
  at: number;
  /** Since the first event, for reading durations at a glance. */
  since: string;
  what: string;
  detail: string;
}

export function timelineOf(events: readonly JournalEntry[]): TimelineRow[] {
  const start = events[0]?.at ?? 0;
  return events.map((event) => {
    const [what, detail] = procedureLine(event) ?? describe(event as TaskEvent);
    const step = stepOf(event);
    const since = `+${humanDuration(event.at - start)}`;
    return { at: event.at, since, what: step === null ? what : `${step}: ${what}`, detail };
  });
}

type PeopleEvent =
  | 'remote_told'
  | 'remote_cancel_passed'
  | 'remote_answered'
  | 'remote_lost'
  | 'cancel_requested'
  | 'resolve_requested'
  | 'resolve_scheduled'
  | 'resolve_finished'
  | 'preview_scheduled'
  | 'approval_opened'
  | 'approval_given'
  | 'challenge_failed'
  | 'approval_decided'
  | 'approval_expired'
  | 'approval_expiring'
  | 'decision_held'
  | 'held_decision_taken'
  | 'decision_ignored'
  | 'lease_requested'
  | 'lease_ask_failed'
  | 'lease_granted'
  | 'lease_released'
  | 'alert_recorded'
  | 'interrupted'
  | 'resumed';

function describe(event: TaskEvent): [what: string, detail: string] {
  switch (event.type) {
    case 'task_started':
      return ['started', event.data.plan === null ? 'to be planned' : planLine(event.data.plan)];
    case 'plan_scheduled':
      return ['planning', ''];
    case 'planned':
      return ['planned', planLine(event.data.plan)];
    case 'plan_refused':
      return ['refused', endLine(event.data.end)];
    case 'step_planned':
      return [event.data.asks ? 'planned, a person is asked' : 'planned', planLine(event.data.plan)];
    case 'undo_requested':
      return ['to be undone', event.data.reason];
    case 'attempt_scheduled':
      return [
        event.data.purpose === 'execute' ? `attempt ${event.data.attempt}` : `look ${event.data.attempt}`,
        event.data.inline ? 'in the workflow task' : '',
      ];
    case 'attempt_finished':
      return outcomeLine(event.data.outcome);
    case 'rollback_scheduled':
      return ['rolling back', event.data.reason];
    case 'rollback_finished':
      return event.data.outcome.kind === 'rolledBack'
        ? ['rolled back', event.data.outcome.remains ?? '']
        : [
            'rollback not done',
            'failure' in event.data.outcome ? event.data.outcome.failure.message : 'stale',
          ];
    case 'close_scheduled':
      return ['closing', event.data.end.cause];
    case 'close_finished':
      return ['closed', event.data.outcome.kind === 'closed' ? '' : event.data.outcome.kind];
    case 'step_lost':
      return ['worker lost', event.data.failure.message];
    case 'backoff_scheduled':
      return ['waiting', `${humanDuration(event.data.delayMs)}: ${event.data.failure.message}`];
    case 'retries_exhausted':
      return ['retries spent', event.data.failure.message];
    case 'run_deadline_passed':
      return ['run deadline passed', 'no new execution begins'];
    case 'sla_missed':
      return ['SLA missed', 'the task goes on'];
    case 'preview_overtaken':
      return ['sent before, by an earlier run', 'that is settled first'];
    case 'attempt_abort_requested':
      return ['attempt told to stop', ''];
    case 'message_ignored':
      return ['message ignored', `${event.data.message}: ${event.data.code}`];
    case 'task_ended':
      return [event.data.end.status, endLine(event.data.end)];
    default:
      return describeByPeople(event);
  }
}

function leaseLine(event: Extract<TaskEvent, { type: `lease_${string}` }>): [what: string, detail: string] {
  switch (event.type) {
    case 'lease_requested':
      return [
        event.data.holding === undefined
          ? `waiting for ${event.data.resource}`
          : `holding on to ${event.data.resource}`,
        '',
      ];
    case 'lease_ask_failed':
      return ['the lease could not be asked for', event.data.isGone ? 'it had ended' : 'tried again'];
    case 'lease_granted':
      return [
        'holding the lease',
        `fence ${event.data.fence}, until ${new Date(event.data.until).toISOString()}`,
      ];
    case 'lease_released':
      return [event.data.fence === null ? 'waiting for the lease no longer' : 'lease given back', ''];
    default:
      return event satisfies never;
  }
}

/** What people did or were asked, what was held meanwhile, and what other servers said. */
function describeByPeople(event: Extract<TaskEvent, { type: PeopleEvent }>): [what: string, detail: string] {
  switch (event.type) {
    case 'cancel_requested':
      return [
        'cancel requested',
        `by ${event.data.by}${event.data.reason === undefined ? '' : `: ${event.data.reason}`}`,
      ];
    case 'resolve_requested':
      return ['resolved by a person', `${event.data.resolution.as} by ${event.data.resolution.by}`];
    case 'resolve_scheduled':
      return ['taking the resolution over', ''];
    case 'resolve_finished':
      return ['resolution recorded', event.data.end === null ? 'the task goes on' : endLine(event.data.end)];
    case 'preview_scheduled':
      return ['reading what to approve', event.data.callId];
    case 'approval_opened':
      return [
        'approval asked for',
        `${event.data.approval.callId}, until ${new Date(event.data.approval.expiresAt).toISOString()}`,
      ];
    case 'approval_given':
      return ['approved, more are needed', `by ${event.data.by}`];
    case 'challenge_failed':
      return ['wrong phrase', `by ${event.data.by}`];
    case 'approval_decided':
      return [
        event.data.decision,
        `by ${event.data.by}${event.data.reason === undefined ? '' : `: ${event.data.reason}`}`,
      ];
    case 'approval_expired':
      return ['nobody decided in time', event.data.outcome];
    case 'approval_expiring':
      return ['nobody has decided yet', 'it expires soon'];
    case 'decision_held':
      return ['decision came early', `${event.data.decision.kind} by ${event.data.decision.by.subject}`];
    case 'held_decision_taken':
      return ['judging the early decision', ''];
    case 'decision_ignored':
      return ['decision changed nothing', `${event.data.kind} by ${event.data.by}: ${event.data.code}`];
    case 'lease_requested':
    case 'lease_ask_failed':
    case 'lease_granted':
    case 'lease_released':
      return leaseLine(event);
    case 'remote_told':
    case 'remote_cancel_passed':
    case 'remote_answered':
    case 'remote_lost':
      return remoteLine(event);
    case 'alert_recorded':
      return ['alerted', event.data.type];
    case 'interrupted':
      return ['interrupted', `by ${event.data.by}`];
    case 'resumed':
      return ['resumed', `by ${event.data.by}`];
    default:
      return event satisfies never;
  }
}

type RemoteEvent = 'remote_told' | 'remote_cancel_passed' | 'remote_answered' | 'remote_lost';

function remoteLine(event: Extract<TaskEvent, { type: RemoteEvent }>): [what: string, detail: string] {
  switch (event.type) {
    case 'remote_told':
      return reportLine(event.data.report);
    case 'remote_cancel_passed':
      return ['cancel handed on', 'how the remote task ends is read'];
    case 'remote_answered':
      return ['answered', `${Object.keys(event.data.answers).join(', ')} by ${event.data.by}`];
    case 'remote_lost':
      return ['nobody watched the remote task', 'it is looked at again'];
    default:
      return event satisfies never;
  }
}

function reportLine(report: RemoteReport): [what: string, detail: string] {
  if (report.kind === 'ended')
    return ['remote task over', `${report.how}${report.message ? `: ${report.message}` : ''}`];
  const { seen, failures, lastError } = report;
  if (failures > 0) return ['remote server does not answer', `${failures} times: ${lastError ?? ''}`];
  return [
    'remote task',
    `${(seen?.kind ?? 'working').replace('_', ' ')}${seen?.message ? `: ${seen.message}` : ''}`,
  ];
}

function planLine({ contractVersion, effect, rollback, keyed, standingRules = [] }: Plan): string {
  const key = keyed ? 'keyed' : 'no key: never re-sent automatically';
  const allowed = standingRules.map(({ id, by }) => `, allowed by rule ${id} of ${by}`).join('');
  return `v${contractVersion}, ${effect}, rollback ${rollback.kind}, ${key}${allowed}`;
}

function endLine(end: TaskEnd): string {
  const effect = `effect ${end.effect.replace('_', ' ')}`;
  return end.error === null ? effect : `${effect}: ${end.error.message}`;
}

function outcomeLine(outcome: OperationOutcome): [what: string, detail: string] {
  switch (outcome.kind) {
    case 'committed':
      return ['verified, committed', outcome.replayed ? 'by an earlier task; nothing sent now' : ''];
    case 'refused':
      return ['precondition false', `nothing sent: ${outcome.reason}`];
    case 'released':
      return ['not applied', outcome.failure.message];
    case 'failed':
      return ['failed for good', `nothing applied: ${outcome.failure.message}`];
    case 'notYet':
      return ['applied, not visible yet', outcome.reason ?? ''];
    case 'mismatch':
      return ['verification failed', outcome.reason];
    case 'unknown':
      return [
        outcome.attention ? 'outcome unknown, a person is asked' : 'outcome unknown',
        outcome.failure.message,
      ];
    case 'busy':
      return [
        outcome.reason === 'claimed' ? 'another holder is at work' : 'a request may still land',
        `looking again in ${humanDuration(outcome.retryAfterMs)}`,
      ];
    case 'fenceStale':
      return [
        'fence is stale',
        outcome.leaseFence !== undefined
          ? 'the lease had passed on'
          : outcome.superseded
            ? 'another run took over'
            : `continuing after attempt ${outcome.rowAttempt}`,
      ];
    case 'conflict':
      return ['key used with other arguments', outcome.paths.join(', ')];
    case 'spent':
      return ['key is spent', endLine(outcome.end)];
    case 'remote':
      return ['goes on as a task of another server', `${outcome.remote.server} ${outcome.remote.taskId}`];
    case 'needsApproval':
      return ['approval needed', outcome.reason];
    default:
      return outcome satisfies never;
  }
}
