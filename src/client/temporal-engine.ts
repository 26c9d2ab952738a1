/**
 * `TaskEngine` over a Temporal client.
 *
 * Invariants:
 * 1. workflowId is the task id; a running one is met, a closed one never reopened (S1.5, S1.6).
 * 2. No execution or run timeout and no retry policy is ever set (S3.8).
 * 3. Every call has a deadline, so nothing here outwaits a dead server or a dead worker.
 * 4. A message that no worker took in time is left with the engine as a signal: an intent is never lost (S4.8).
 */
import { setTimeout as delay } from 'node:timers/promises';
import { QueryRejectedError, WorkflowClient, WorkflowNotFoundError } from '@temporalio/client';
import type { Client, WorkflowExecutionDescription, WorkflowExecutionInfo } from '@temporalio/client';
import {
  defineSearchAttributeKey,
  TypedSearchAttributes,
  WorkflowExecutionAlreadyStartedError,
} from '@temporalio/common';
import {
  approveSignal,
  cancelSignal,
  cancelUpdate,
  decideUpdate,
  editSignal,
  eventsQuery,
  answerSignal,
  answerUpdate,
  interruptSignal,
  interruptUpdate,
  rejectSignal,
  resolveSignal,
  resolveUpdate,
  resumeSignal,
  resumeUpdate,
  SEARCH_ATTRIBUTES,
  taskQuery,
  WORKFLOW_ACTION,
  WORKFLOW_PROCEDURE,
} from '../../workflows/messages.ts';
import type { AnswerMessage, CancelMessage, MessageReply } from '../../workflows/messages.ts';
import type { DecisionMessage, DecisionReply } from '../task/approval.ts';
import type { Resolution, ResolutionMessage } from '../task/event.ts';
import type { JournalEntry } from '../task/procedure-event.ts';
import type { TaskOutcome } from '../task/outcome.ts';
import type { PlanEdit } from '../task/plan.ts';
import type { Plan } from '../task/plan.ts';
import type { TaskState } from '../task/state.ts';
import { engineError, isDeadline, isWorkflowClosed } from './engine-error.ts';
import { WAITING_READ_MAX } from './engine.ts';
import type {
  DeliveryAnswer,
  EngineRecord,
  EngineSight,
  PlannedStart,
  ResultAnswer,
  StartAnswer,
  TaskEngine,
  WaitingTask,
} from './engine.ts';
import { editedTo, startedWith } from './started-with.ts';

/** A start outlives short outages: within this the Temporal client retries, under the same workflow id. */
const START_DEADLINE_MS = 10_000;
/** M2.2: a read never hangs. */
const READ_DEADLINE_MS = 1_500;
/** All pages of an inbox, or of a history. */
const LIST_DEADLINE_MS = 5_000;
/** A worker that has the workflow in its cache answers a query well within. */
const QUICK_MS = 150;
/** How long a message waits for a worker's answer before it is left with the engine. */
const ANSWER_DEADLINE_MS = 2_000;
/**
 * How soon another worker takes over the workflow task (and the inline step in it) of one that died. Measured: a cancel
 * whose task a killed worker had taken is carried out by another after 5.2 to 5.6 s. Must stay well above the longest
 * inline step (2 s, S2.13), or a busy worker's steps would be taken from it.
 */
const WORKFLOW_TASK_TIMEOUT_MS = 5_000;

const WAITING = `${SEARCH_ATTRIBUTES.status} IN ('awaiting_approval', 'needs_attention')`;
const TENANT = defineSearchAttributeKey(SEARCH_ATTRIBUTES.tenant, 'KEYWORD');
const ACTION = defineSearchAttributeKey(SEARCH_ATTRIBUTES.action, 'KEYWORD');
const STATUS = defineSearchAttributeKey(SEARCH_ATTRIBUTES.status, 'KEYWORD');
const WAITING_SINCE = defineSearchAttributeKey(SEARCH_ATTRIBUTES.waitingSince, 'DATETIME');

export interface TemporalEngineOptions {
  temporal: Client;
  taskQueue: string;
  /** How long a start is tried while the engine is away. Default 10 s. */
  startDeadlineMs?: number;
  /** Only where a worker of this process shares the client's (native) connection: the first task skips a hop. */
  eagerStart?: boolean;
}

export class TemporalEngine implements TaskEngine {
  readonly #temporal: Client;
  /** Asks open workflows only, so that an answer also says that the workflow is open. */
  readonly #running: WorkflowClient;
  readonly #taskQueue: string;
  readonly #eagerStart: boolean;
  readonly #startDeadlineMs: number;

  constructor(options: TemporalEngineOptions) {
    this.#temporal = options.temporal;
    const { namespace, dataConverter } = options.temporal.options;
    this.#running = new WorkflowClient({
      connection: options.temporal.connection,
      namespace,
      ...(dataConverter && { dataConverter }),
      queryRejectCondition: 'NOT_OPEN',
    });
    this.#taskQueue = options.taskQueue;
    this.#eagerStart = options.eagerStart ?? false;
    this.#startDeadlineMs = options.startDeadlineMs ?? START_DEADLINE_MS;
  }

  async start(taskId: string, start: PlannedStart): Promise<StartAnswer> {
    try {
      await this.#within(this.#startDeadlineMs, () =>
        this.#temporal.workflow.start(start.plan.procedure ? WORKFLOW_PROCEDURE : WORKFLOW_ACTION, {
          workflowId: taskId,
          taskQueue: this.#taskQueue,
          args: [withOrigin(taskId, start)],
          workflowIdConflictPolicy: 'USE_EXISTING',
          workflowIdReusePolicy: 'REJECT_DUPLICATE',
          workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT_MS,
          requestEagerStart: this.#eagerStart,
          staticSummary: start.plan.action,
          typedSearchAttributes: new TypedSearchAttributes([
            { key: TENANT, value: start.plan.principal.tenant },
            { key: ACTION, value: start.plan.action },
          ]),
        }),
      );
      return { kind: 'running' };
    } catch (error) {
      if (error instanceof WorkflowExecutionAlreadyStartedError) return { kind: 'closed' };
      throw engineError(error);
    }
  }

  async record(taskId: string): Promise<EngineRecord> {
    try {
      return recordOf(await this.#within(READ_DEADLINE_MS, () => this.#handle(taskId).describe()));
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return { kind: 'absent' };
      throw engineError(error);
    }
  }

  /** A running workflow that answers at once says all of it; the record is asked for where it does not. */
  async sight(taskId: string): Promise<EngineSight> {
    const asking = this.#askRunning(taskId);
    const quick = await Promise.race([asking, delay(QUICK_MS, null, { ref: false })]);
    if (quick !== null && typeof quick === 'object' && quick.plan !== null)
      return { record: runningRecord(quick, quick.plan), state: quick };
    const [record, answer] = await Promise.all([this.record(taskId), asking]);
    const state = answer === 'closed' ? await this.#state(taskId) : answer;
    return { record, state: record.kind === 'present' && record.state !== 'killed' ? state : null };
  }

  /** Null: no worker, a busy one, or one that can't replay. The record says what is known. */
  async #askRunning(taskId: string): Promise<TaskState | 'closed' | null> {
    try {
      return await this.#within(READ_DEADLINE_MS, () => this.#running.getHandle(taskId).query(taskQuery));
    } catch (error) {
      return error instanceof QueryRejectedError ? 'closed' : null;
    }
  }

  async #state(taskId: string): Promise<TaskState | null> {
    try {
      return await this.#within(READ_DEADLINE_MS, () => this.#handle(taskId).query(taskQuery));
    } catch {
      return null;
    }
  }

  async events(taskId: string): Promise<JournalEntry[] | null> {
    try {
      return await this.#within(READ_DEADLINE_MS, () => this.#handle(taskId).query(eventsQuery));
    } catch {
      return null;
    }
  }

  async result(taskId: string, deadline: number, signal?: AbortSignal): Promise<ResultAnswer> {
    const poll = () => this.#temporal.withDeadline(deadline, () => this.#handle(taskId).result());
    try {
      const outcome = await (signal ? this.#temporal.withAbortSignal(signal, poll) : poll());
      return { kind: 'ended', outcome: outcome as TaskOutcome };
    } catch (error) {
      if (isWorkflowClosed(error)) return { kind: 'killed' };
      if (error instanceof WorkflowNotFoundError) return { kind: 'absent' };
      if (isDeadline(error) || signal?.aborted) return { kind: 'open' };
      throw engineError(error);
    }
  }

  async cancel(taskId: string, message: CancelMessage): Promise<DeliveryAnswer> {
    const handle = this.#handle(taskId);
    return this.#deliver(
      () => handle.executeUpdate<MessageReply, [CancelMessage]>(cancelUpdate.name, { args: [message] }),
      () => handle.signal(cancelSignal, message),
    );
  }

  async resolve(
    taskId: string,
    resolution: Resolution & ResolutionMessage & { id: string },
  ): Promise<DeliveryAnswer> {
    const handle = this.#handle(taskId);
    return this.#deliver(
      () => handle.executeUpdate(resolveUpdate, { args: [resolution], updateId: `resolve-${resolution.id}` }),
      () => handle.signal(resolveSignal, resolution),
    );
  }

  async interrupt(taskId: string, message: CancelMessage): Promise<DeliveryAnswer> {
    const handle = this.#handle(taskId);
    return this.#deliver(
      () => handle.executeUpdate<MessageReply, [CancelMessage]>(interruptUpdate.name, { args: [message] }),
      () => handle.signal(interruptSignal, message),
    );
  }

  async resume(taskId: string, message: CancelMessage): Promise<DeliveryAnswer> {
    const handle = this.#handle(taskId);
    return this.#deliver(
      () => handle.executeUpdate<MessageReply, [CancelMessage]>(resumeUpdate.name, { args: [message] }),
      () => handle.signal(resumeSignal, message),
    );
  }

  async answer(taskId: string, message: AnswerMessage): Promise<DeliveryAnswer> {
    const handle = this.#handle(taskId);
    return this.#deliver(
      () => handle.executeUpdate(answerUpdate, { args: [message] }),
      () => handle.signal(answerSignal, message),
    );
  }

  async decide(
    taskId: string,
    decision: DecisionMessage & { decisionId: string },
  ): Promise<DeliveryAnswer<DecisionReply>> {
    const handle = this.#handle(taskId);
    const signal = { approve: approveSignal, edit: editSignal, reject: rejectSignal }[decision.kind];
    return this.#deliver(
      () =>
        handle.executeUpdate(decideUpdate, { args: [decision], updateId: `decide-${decision.decisionId}` }),
      () => handle.signal(signal, decision),
    );
  }

  async waiting(tenant: string, limit: number): Promise<WaitingTask[]> {
    const query = `${tenantClause(tenant)}${WAITING} AND ExecutionStatus = 'Running'`;
    const found: WaitingTask[] = [];
    // Visibility lists the newest start first: who waits longest is known once all are read.
    const list = async (): Promise<void> => {
      for await (const execution of this.#temporal.workflow.list({ query, pageSize: 1_000 })) {
        // M2.6: whatever the query made of it, nobody is shown what is another tenant's.
        if (execution.typedSearchAttributes.get(TENANT) !== tenant) continue;
        found.push(waitingTask(execution));
        if (found.length >= WAITING_READ_MAX) return;
      }
    };
    try {
      await this.#within(LIST_DEADLINE_MS, list);
    } catch (error) {
      throw engineError(error);
    }
    return found.sort((one, other) => one.waitingSince - other.waitingSince).slice(0, limit);
  }

  async #deliver<Reply>(
    update: () => Promise<Reply>,
    signal: () => Promise<void>,
  ): Promise<DeliveryAnswer<Reply>> {
    try {
      return { kind: 'answered', reply: await this.#within(ANSWER_DEADLINE_MS, update) };
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return this.#whyNotFound(error.workflowId);
      if (!isDeadline(error)) throw engineError(error);
    }
    try {
      await this.#within(START_DEADLINE_MS, signal);
      return { kind: 'stored' };
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return this.#whyNotFound(error.workflowId);
      throw engineError(error);
    }
  }

  /** The engine answers "not found" for messages to closed and to unknown workflows alike. */
  async #whyNotFound(taskId: string): Promise<{ kind: 'absent' } | { kind: 'closed' }> {
    const record = await this.record(taskId);
    return record.kind === 'absent' ? { kind: 'absent' } : { kind: 'closed' };
  }

  async startedWith(taskId: string, edit: PlanEdit | null): Promise<PlannedStart | null> {
    const read = () =>
      edit === null ? startedWith(this.#temporal, taskId) : editedTo(this.#temporal, taskId, edit);
    try {
      return await this.#within(edit === null ? READ_DEADLINE_MS : LIST_DEADLINE_MS, read);
    } catch {
      return null;
    }
  }

  #handle(taskId: string) {
    return this.#temporal.workflow.getHandle(taskId);
  }

  #within<T>(ms: number, call: () => Promise<T>): Promise<T> {
    return this.#temporal.withDeadline(Date.now() + ms, call);
  }
}

function waitingTask(execution: WorkflowExecutionInfo): WaitingTask {
  const attributes = execution.typedSearchAttributes;
  return {
    taskId: execution.workflowId,
    action: attributes.get(ACTION) ?? '',
    status: attributes.get(STATUS) ?? '',
    waitingSince: attributes.get(WAITING_SINCE)?.getTime() ?? execution.startTime.getTime(),
  };
}

function recordOf(description: WorkflowExecutionDescription): EngineRecord {
  const attributes = description.typedSearchAttributes;
  return {
    kind: 'present',
    state: stateOf(description),
    tenant: attributes.get(TENANT) ?? null,
    action: attributes.get(ACTION) ?? null,
    startedAt: description.startTime.getTime(),
    closedAt: description.closeTime?.getTime() ?? null,
  };
}

function runningRecord({ action, startedAt }: TaskState, { principal }: Plan): EngineRecord {
  return {
    kind: 'present',
    state: 'running',
    tenant: principal.tenant,
    action,
    startedAt,
    closedAt: null,
  };
}

/** S1.2: a procedure's steps keep the keys of the run that began them, also in the run that recovers it. */
function withOrigin(taskId: string, start: PlannedStart): PlannedStart {
  const { procedure } = start.plan;
  if (!procedure) return start;
  return { ...start, plan: { ...start.plan, procedure: { origin: taskId, ...procedure } } };
}

function stateOf({ status }: WorkflowExecutionDescription): 'running' | 'completed' | 'killed' {
  switch (status.name) {
    case 'COMPLETED':
      return 'completed';
    case 'FAILED':
    case 'CANCELLED':
    case 'TERMINATED':
    case 'TIMED_OUT':
      return 'killed';
    default:
      return 'running';
  }
}

/**
 * Narrows the listing where the tenant's name reads the same in every visibility store. How others must be escaped
 * differs between them (a double quote or a backslash finds nothing on SQLite): those are picked out of the listing.
 */
function tenantClause(tenant: string): string {
  return /^[\w .@:/+-]+$/.test(tenant) ? `${SEARCH_ATTRIBUTES.tenant} = '${tenant}' AND ` : '';
}
