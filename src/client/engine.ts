/**
 * What the client needs of the durable engine, and nothing more: the seam that `TemporalEngine` fills and that tests
 * drive by hand.
 *
 * Every method answers within its own deadline. Only `engine_unavailable` (and, for `start`, `invalid_configuration`)
 * is thrown: absence, closedness and silence of workers are answers.
 */
import type { DecisionMessage, DecisionReply } from '../task/approval.ts';
import type { Resolution, ResolutionMessage } from '../task/event.ts';
import type { JournalEntry } from '../task/procedure-event.ts';
import type { Json } from '../task/json.ts';
import type { TaskOutcome } from '../task/outcome.ts';
import type { Plan, PlanEdit } from '../task/plan.ts';
import type { TaskState } from '../task/state.ts';
import type { AnswerMessage, CancelMessage, MessageReply } from '../../workflows/messages.ts';

/** The argument of workflow `action` when it was planned and reserved before (interfaces.md "Workflow action"). */
export interface PlannedStart {
  v: 1;
  plan: Plan;
  input: Json;
  ordinal: number;
}

export type StartAnswer =
  /** Started now, or already running under this id. */
  | { kind: 'running' }
  /** A workflow of this id existed and has closed; nothing was started. */
  | { kind: 'closed' };

/** How the engine sees a task, without asking a worker. */
export type EngineRecord =
  | { kind: 'absent' }
  | {
      kind: 'present';
      /** `killed`: terminated, timed out, failed or cancelled by the engine, not by the task itself (S3.8). */
      state: 'running' | 'completed' | 'killed';
      tenant: string | null;
      action: string | null;
      startedAt: number;
      closedAt: number | null;
    };

/** The record, and what the workflow says about itself; `state` null when no worker answered in time. */
export interface EngineSight {
  record: EngineRecord;
  state: TaskState | null;
}

export type ResultAnswer =
  | { kind: 'ended'; outcome: TaskOutcome }
  | { kind: 'killed' }
  | { kind: 'absent' }
  /** Not ended when the deadline came. */
  | { kind: 'open' };

/** So many of an inbox are read and put in order; of more, those started last. */
export const WAITING_READ_MAX = 10_000;

export interface WaitingTask {
  taskId: string;
  action: string;
  status: string;
  waitingSince: number;
}

export type DeliveryAnswer<Reply = MessageReply> =
  | { kind: 'answered'; reply: Reply }
  /** No worker answered in time: sent as a signal, which the engine keeps until one does. */
  | { kind: 'stored' }
  | { kind: 'closed' }
  | { kind: 'absent' };

export interface TaskEngine {
  start(taskId: string, start: PlannedStart): Promise<StartAnswer>;
  record(taskId: string): Promise<EngineRecord>;
  /** Record and state, asked for together. */
  sight(taskId: string): Promise<EngineSight>;
  /** The journal; null when no worker answered in time. */
  events(taskId: string): Promise<JournalEntry[] | null>;
  /**
   * Long-polls until the workflow closed, at most until `deadline` (ms since the epoch). Needs no worker. An aborted
   * signal ends the poll as the deadline does, over a native connection perhaps not before it.
   */
  result(taskId: string, deadline: number, signal?: AbortSignal): Promise<ResultAnswer>;
  cancel(taskId: string, message: CancelMessage): Promise<DeliveryAnswer>;
  /** The message's `id` makes it safe that both the update and the signal arrive. */
  resolve(
    taskId: string,
    resolution: Resolution & ResolutionMessage & { id: string },
  ): Promise<DeliveryAnswer>;
  interrupt(taskId: string, message: CancelMessage): Promise<DeliveryAnswer>;
  resume(taskId: string, message: CancelMessage): Promise<DeliveryAnswer>;
  answer(taskId: string, message: AnswerMessage): Promise<DeliveryAnswer>;
  /** The message's `decisionId` makes it safe that both the update and, without a worker, the signal arrive. */
  decide(
    taskId: string,
    decision: DecisionMessage & { decisionId: string },
  ): Promise<DeliveryAnswer<DecisionReply>>;
  /** Tasks that wait for a person, the `limit` that wait longest, longest first; of at most `WAITING_READ_MAX` in the engine's visibility. */
  waiting(tenant: string, limit: number): Promise<WaitingTask[]>;
  /**
   * What the task was started with, or what this edit made of it (S4.2), from its history; null when that is gone or of
   * another shape.
   */
  startedWith(taskId: string, edit: PlanEdit | null): Promise<PlannedStart | null>;
}
