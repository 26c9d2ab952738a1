/**
 * The activities of workflow `action`, answering from queues: a value, or a function that may wait, look at the request
 * or throw before it answers. What was asked is kept in order. An activity that nobody scripted answers as if all went
 * well, and is kept apart, so that a wrong test ends instead of looping.
 */
import { ApplicationFailure } from '@temporalio/common';
import type {
  AttemptRequest,
  AuditNote,
  CloseRequest,
  PlanEditRequest,
  PlanEditResult,
  PlanTaskResult,
  PreviewRequest,
  PreviewResult,
  ResolveRequest,
  RollbackRequest,
  TaskActivities,
} from '../../src/task/activity-api.ts';
import type { CloseOutcome, OperationOutcome, RollbackOutcome, TaskEnd } from '../../src/task/outcome.ts';
import { committed } from './outcomes.ts';

export type Answer<Q, A> = A | ((request: Q) => A | Promise<A>);
type PlanRequest = Parameters<TaskActivities['planTask']>[0];
type NotesRequest = Parameters<TaskActivities['recordNotes']>[0];

export interface ActivityScript {
  attempt?: Answer<AttemptRequest, OperationOutcome>[];
  rollback?: Answer<RollbackRequest, RollbackOutcome>[];
  close?: Answer<CloseRequest, CloseOutcome>[];
  resolve?: Answer<ResolveRequest, { end: TaskEnd | null }>[];
  plan?: Answer<PlanRequest, PlanTaskResult>[];
  /** What an approver sees; unscripted: the arguments. */
  preview?: Answer<PreviewRequest, PreviewResult>[];
  edit?: Answer<PlanEditRequest, PlanEditResult>[];
  /** Only for notes that are to fail: what is not scripted is kept in `notes`. */
  record?: Answer<NotesRequest, void>[];
}

export interface Call {
  name: keyof TaskActivities;
  request: unknown;
}

/** Stands for a worker without its ledger, or any other loss before an answer. */
export function away(): never {
  throw ApplicationFailure.nonRetryable('The ledger can not be read or written.', 'ledger_unavailable');
}

export class ScriptedActivities {
  readonly calls: Call[] = [];
  readonly unscripted: string[] = [];
  /** What the audit was given, by any activity. */
  readonly notes: AuditNote[] = [];
  private readonly script: ActivityScript;

  constructor(script: ActivityScript = {}) {
    this.script = script;
  }

  get names(): string[] {
    return this.calls.map(({ name }) => name);
  }

  /** Every attempt as `purpose` and its number. */
  get attempts(): AttemptRequest[] {
    return this.calls
      .filter(({ name }) => name === 'attemptOperation')
      .map(({ request }) => request as AttemptRequest);
  }

  readonly activities: Omit<TaskActivities, 'acquireLease'> = {
    attemptOperation: (request) => this.answer('attemptOperation', this.script.attempt, request, committed),
    rollbackOperation: (request) =>
      this.answer('rollbackOperation', this.script.rollback, request, { kind: 'rolledBack' }),
    closeOperation: (request) =>
      this.answer('closeOperation', this.script.close, request, { kind: 'closed' }),
    resolveOperation: (request) =>
      this.answer('resolveOperation', this.script.resolve, request, { end: request.end }),
    planTask: (request) => this.answer('planTask', this.script.plan, request, null as never),
    previewOperation: (request) =>
      this.answer('previewOperation', this.script.preview, request, {
        kind: 'view',
        view: { arguments: request.input },
      }),
    planEdit: (request) =>
      this.answer('planEdit', this.script.edit, request, { kind: 'refused', message: 'not scripted' }),
    recordNotes: (request) =>
      this.answer('recordNotes', this.script.record ?? [() => undefined], request, undefined),
  };

  private async answer<Q extends { taskId: string; journal?: AuditNote[] }, A>(
    name: keyof TaskActivities,
    queue: Answer<Q, A>[] | undefined,
    request: Q,
    otherwise: A,
  ): Promise<A> {
    this.calls.push({ name, request });
    if (queue === undefined || queue.length === 0) {
      if (name !== 'recordNotes' && name !== 'previewOperation') this.unscripted.push(name);
      this.notes.push(...(request.journal ?? []));
      return otherwise;
    }
    const next = queue.shift() as Answer<Q, A>;
    const answer =
      typeof next === 'function' ? await (next as (request: Q) => A | Promise<A>)(request) : next;
    this.notes.push(...(request.journal ?? []));
    return answer;
  }
}
