/**
 * Workflow `action` on a real engine with scripted activities: starts it, speaks to it, and reads its history. One
 * worker serves all tasks of a stage; each task has its own script.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Client, WorkflowHandle, WorkflowStartOptions } from '@temporalio/client';
import proto from '@temporalio/proto'; // CommonJS whose names Node can't see
import type { temporal } from '@temporalio/proto';
import { Worker } from '@temporalio/worker';
import type { WorkerOptions } from '@temporalio/worker';
import { isDeadline } from '../../src/client/engine-error.ts';
import { openTestServer } from '../../src/testing/test-server.ts';
import type { TestServer, TestServerKind } from '../../src/testing/test-server.ts';
import type { AcquireLeaseRequest, RemoteActivities, TaskActivities } from '../../src/task/activity-api.ts';
import type { TaskOutcome } from '../../src/task/outcome.ts';
import type { TaskState } from '../../src/task/state.ts';
import type { ActionArgument } from '../../workflows/argument.ts';
import type { action } from '../../workflows/index.ts';
import { ScriptedActivities } from './scripted-activities.ts';
import type { ActivityScript } from './scripted-activities.ts';
import { planOf } from './plans.ts';
import type { PlanOverrides } from './plans.ts';
import { workflowBundleFile } from './workflow-bundle-file.ts';

export type ActionHandle = WorkflowHandle<typeof action>;
type HistoryEvent = temporal.api.history.v1.IHistoryEvent;

const POLL_MS = 15;
const POLL_LIMIT_MS = 20_000;
const QUERY_LIMIT_MS = 3_000;

export function planned(overrides: PlanOverrides = {}): ActionArgument {
  return { v: 1, plan: planOf(overrides), input: { sku: 'A-1', quantity: 1 }, ordinal: 1 };
}

/** One task under way, with the script its activities answer from. */
export interface Played {
  handle: ActionHandle;
  scripted: ScriptedActivities;
}

export class WorkflowStage {
  readonly server: TestServer;
  readonly taskQueue = `stage-${randomUUID()}`;
  private readonly codePath: string;
  private readonly scripts = new Map<string, ScriptedActivities>();
  /** What is answered about the remote task of an operation, by its id. */
  readonly remotes = new Map<string, RemoteActivities>();
  private stopped: Promise<void> | undefined;
  private worker: Worker | undefined;

  private constructor(server: TestServer, codePath: string) {
    this.server = server;
    this.codePath = codePath;
  }

  /** With its worker running, unless `idle`. */
  static async open(
    on: TestServerKind | TestServer,
    options: { idle?: boolean } = {},
  ): Promise<WorkflowStage> {
    const opening = typeof on === 'string' ? openTestServer(on) : on;
    const [server, codePath] = await Promise.all([opening, workflowBundleFile()]);
    const stage = new WorkflowStage(server, codePath);
    if (options.idle !== true) await stage.startWorker();
    return stage;
  }

  async close(): Promise<void> {
    await this.stopWorker();
    await this.server.close();
  }

  get client(): Client {
    return this.server.env.client;
  }

  async startWorker(options: Partial<WorkerOptions> = {}): Promise<void> {
    this.worker = await this.createWorker(options);
    this.stopped = this.worker.run();
  }

  async stopWorker(): Promise<void> {
    this.worker?.shutdown();
    await this.stopped;
    this.worker = this.stopped = undefined;
  }

  private createWorker(options: Partial<WorkerOptions>): Promise<Worker> {
    const { env } = this.server;
    return Worker.create({
      connection: env.nativeConnection,
      namespace: env.namespace ?? 'default',
      taskQueue: this.taskQueue,
      workflowBundle: { codePath: this.codePath },
      activities: this.activities(),
      sinks: { holdfastHints: { changed: { fn: () => undefined, callDuringReplay: false } } },
      maxHeartbeatThrottleInterval: 100,
      shutdownGraceTime: 1_000,
      ...options,
    });
  }

  private activities(): TaskActivities & RemoteActivities {
    const of = ({ taskId }: { taskId: string }): ScriptedActivities['activities'] => {
      const scripted = this.scripts.get(taskId);
      if (!scripted) throw new Error(`no script for ${taskId}`);
      return scripted.activities;
    };
    const about = ({ operationId }: { operationId: string }): RemoteActivities => {
      const remote = this.remotes.get(operationId);
      if (!remote) throw new Error(`no remote task of ${operationId}`);
      return remote;
    };
    return {
      pollRemoteTask: (request) => about(request).pollRemoteTask(request),
      cancelRemoteTask: (request) => about(request).cancelRemoteTask(request),
      answerRemoteTask: (request) => about(request).answerRemoteTask(request),
      attemptOperation: (request) => of(request).attemptOperation(request),
      rollbackOperation: (request) => of(request).rollbackOperation(request),
      closeOperation: (request) => of(request).closeOperation(request),
      resolveOperation: (request) => of(request).resolveOperation(request),
      planTask: (request) => of(request).planTask(request),
      previewOperation: (request) => of(request).previewOperation(request),
      planEdit: (request) => of(request).planEdit(request),
      recordNotes: (request) => of(request).recordNotes(request),
      acquireLease: (request) => this.acquireLease(request),
    };
  }

  /** The lease's workflow is as real as the task's. */
  private async acquireLease({ lease, tenant, taskId, request, above }: AcquireLeaseRequest): Promise<void> {
    await this.client.workflow.signalWithStart('lease', {
      workflowId: lease.id,
      taskQueue: this.taskQueue,
      args: [{ v: 1, tenant, resource: lease.resource }],
      signal: 'leaseAcquire',
      signalArgs: [{ taskId, request, leaseMs: lease.leaseMs, above }],
    });
  }

  async start(
    argument: unknown,
    script: ActivityScript = {},
    options: Partial<WorkflowStartOptions<typeof action>> = {},
  ): Promise<Played> {
    const { workflowId, scripted } = this.scriptFor(script);
    const handle = await this.client.workflow.start<typeof action>('action', {
      taskQueue: this.taskQueue,
      workflowId,
      args: [argument as ActionArgument],
      ...options,
    });
    return { handle, scripted };
  }

  /** A workflow id whose activities answer from `script`. */
  scriptFor(script: ActivityScript): { workflowId: string; scripted: ScriptedActivities } {
    const workflowId = `task-${randomUUID()}`;
    return { workflowId, scripted: this.scriptAs(workflowId, script) };
  }

  scriptAs(workflowId: string, script: ActivityScript): ScriptedActivities {
    const scripted = new ScriptedActivities(script);
    this.scripts.set(workflowId, scripted);
    return scripted;
  }

  /** Starts, plays `during`, and waits for the end; time skips only then. */
  async play(
    argument: unknown,
    script: ActivityScript,
    during: (handle: ActionHandle) => Promise<unknown> = () => Promise.resolve(),
  ): Promise<Played & { outcome: TaskOutcome }> {
    const played = await this.start(argument, script);
    await during(played.handle);
    return { ...played, outcome: await played.handle.result() };
  }
}

/** A query that meets a continue-as-new can be lost by the time-skipping server: asked again then. */
export async function stateOf(handle: ActionHandle): Promise<TaskState> {
  for (;;) {
    const query = () => handle.query<TaskState>('task');
    try {
      return await handle.client.withDeadline(Date.now() + QUERY_LIMIT_MS, query);
    } catch (error) {
      if (!isDeadline(error)) throw error;
    }
  }
}

/** Asks until the state is as wanted; time does not skip meanwhile. */
export async function stateWhen(
  handle: ActionHandle,
  isWanted: (state: TaskState) => boolean,
): Promise<TaskState> {
  for (const limit = Date.now() + POLL_LIMIT_MS; ; await delay(POLL_MS)) {
    const state = await stateOf(handle);
    if (isWanted(state)) return state;
    if (Date.now() > limit) throw new Error(`the task stayed in ${JSON.stringify(state.phase)}`);
  }
}

export const isInPhase =
  (kind: TaskState['phase']['kind']) =>
  (state: TaskState): boolean =>
    state.phase.kind === kind;

export async function eventsOf(handle: ActionHandle): Promise<HistoryEvent[]> {
  return (await handle.fetchHistory()).events ?? [];
}

const { EventType } = proto.temporal.api.enums.v1;

/** The history's event types in order, without prefix, and without the workflow tasks that carry them. */
export async function historyOf(handle: ActionHandle): Promise<string[]> {
  const names = (await eventsOf(handle)).map(({ eventType }) =>
    String(EventType[eventType ?? 0]).replace('EVENT_TYPE_', ''),
  );
  return names.filter((name) => !name.startsWith('WORKFLOW_TASK_'));
}
