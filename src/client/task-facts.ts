/**
 * One task as far as it is known, whichever source knew it: the workflow's own state, its returned outcome, or the
 * ledger's row. Pure mappings; `toAnswer` in answer.ts makes a TaskAnswer of it.
 */
import { waitsFor } from '../task/held-lease.ts';
import type { OperationRow } from '../ledger/ledger.ts';
import { alreadyDecided } from '../task/ends.ts';
import type { AttentionAbout } from '../task/event.ts';
import type { OpenStatus, TaskOutcome, TaskEnd } from '../task/outcome.ts';
import type { Plan } from '../task/plan.ts';
import { remoteView } from '../task/remote-state.ts';
import type { RemoteView } from '../task/remote-state.ts';
import type { TaskState } from '../task/state.ts';
import { editedFrom, outcomeOf } from '../task/view.ts';
import { approvalView, otherApprovalViews } from './approval-view.ts';
import type { ApprovalView } from './task-client.ts';

export interface TaskFacts extends TaskOutcome {
  tenant: string;
  attached: boolean;
  stale: boolean;
  attentionAbout: AttentionAbout | null;
  interrupted: boolean;
  /** What a person is asked for; null when nobody is, or the task itself could not be asked. */
  approval: ApprovalView | null;
  otherApprovals?: ApprovalView[];
  /** Set while another server is at work for it. */
  remote?: RemoteView;
  nextEligibleAt: number | null;
  /** S8: the resource that is waited for. */
  waitsFor?: string;
  createdAt: number;
  updatedAt: number;
}

/** The workflow's own word. `row` adds what only the ledger has. */
export function factsOfState(state: TaskState, tenant: string, row: OperationRow | null): TaskFacts {
  const outcome = outcomeOf(state);
  const otherApprovals = otherApprovalViews(state);
  const remote = remoteView(state);
  return {
    ...outcome,
    operationId: outcome.operationId || (row?.operationId ?? ''),
    result: outcome.status === 'completed' ? outcome.result : null,
    tenant,
    attached: false,
    stale: false,
    attentionAbout: state.phase.kind === 'needs_attention' ? state.phase.about : null,
    interrupted: state.interrupted,
    approval: approvalView(state),
    ...(otherApprovals.length > 0 && { otherApprovals }),
    ...(remote !== null && { remote }),
    nextEligibleAt: state.nextEligibleAt,
    ...waitsForOf(state),
    createdAt: row?.createdAt ?? state.startedAt,
    updatedAt: state.updatedAt,
  };
}

function waitsForOf(state: TaskState): Pick<TaskFacts, 'waitsFor'> {
  const resource = waitsFor(state);
  return resource === null ? {} : { waitsFor: resource };
}

/** What a workflow returned. */
export function factsOfOutcome(
  outcome: TaskOutcome,
  tenant: string,
  times: { createdAt: number; updatedAt: number },
): TaskFacts {
  return {
    ...outcome,
    tenant,
    attached: false,
    stale: false,
    attentionAbout: null,
    interrupted: false,
    approval: null,
    nextEligibleAt: null,
    ...times,
  };
}

/** The ledger's word: final when the row has an end, else the state of the effect. */
export function factsOfRow(row: OperationRow, options: { stale: boolean; replayed?: boolean }): TaskFacts {
  const { end } = row;
  const status = end?.status ?? openStatusOf(row);
  return {
    taskId: row.taskId,
    operationId: row.operationId,
    action: row.action,
    status,
    effect: end?.effect ?? (row.state === 'reserved' ? 'none' : null),
    cause: end?.cause ?? null,
    replayed: options.replayed ?? false,
    autoRetry: row.keyed || row.effect === 'safe',
    cancelRequested: end?.cancelRequested ?? false,
    result: status === 'completed' ? row.result : null,
    error: end?.error ?? null,
    ...(row.edited && { editedFrom: editedFrom(row.fingerprint.input, row.edited) }),
    tenant: row.tenant,
    attached: false,
    stale: options.stale && end === null,
    attentionAbout: row.attentionAbout,
    interrupted: false,
    approval: null,
    nextEligibleAt: null,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
  };
}

/** S2.1: what a later call of a spent key is told. */
export function replayOfRow(row: OperationRow): TaskFacts {
  const end = row.end === null ? null : alreadyDecided(row.end);
  return factsOfRow({ ...row, end }, { stale: false, replayed: true });
}

/** A start that was just made durable. */
export function factsOfStart(plan: Plan, taskId: string, at: number): TaskFacts {
  const { operationId, action, autoRetry, principal } = plan;
  return {
    ...openFacts({ taskId, tenant: principal.tenant, action, createdAt: at }),
    operationId,
    autoRetry,
    status: 'running',
  };
}

/** A task of which no more is known than that it is there and open. */
export function openFacts(known: Pick<TaskFacts, 'taskId' | 'tenant' | 'action' | 'createdAt'>): TaskFacts {
  return {
    ...known,
    operationId: '',
    status: 'proposed',
    effect: null,
    cause: null,
    replayed: false,
    autoRetry: true,
    cancelRequested: false,
    result: null,
    error: null,
    attached: false,
    stale: false,
    attentionAbout: null,
    interrupted: false,
    approval: null,
    nextEligibleAt: null,
    updatedAt: known.createdAt,
  };
}

/** The same task with its end, where only the end is known. */
export function withEnd(facts: TaskFacts, end: TaskEnd): TaskFacts {
  const { status, effect, cause, error, cancelRequested } = end;
  return { ...facts, status, effect, cause, error, cancelRequested };
}

/** How an outcome is kept as an end in the row (`recordEnd`); null while the task is open. */
export function endOfOutcome(outcome: TaskOutcome): TaskEnd | null {
  const { status, effect, cause, error, cancelRequested } = outcome;
  if (status !== 'completed' && status !== 'failed' && status !== 'cancelled') return null;
  return { status, effect: effect ?? 'unknown', cause: cause ?? 'engine_closed', error, cancelRequested };
}

/** What the state of an open row says about its task, when nobody can be asked. */
export function openStatusOf(row: OperationRow): OpenStatus {
  switch (row.state) {
    case 'reserved':
      return 'proposed';
    case 'in_flight':
    case 'refused':
    case 'failed':
    case 'committed':
    case 'abandoned':
      return 'running';
    case 'applied':
      return 'verifying';
    case 'released':
      return 'backing_off';
    case 'rolling_back':
    case 'rolled_back':
      return 'rolling_back';
    case 'attention':
      return 'needs_attention';
    default:
      return row.state satisfies never;
  }
}
