import type { Failure } from './failure.ts';
import type { AttemptPurpose, Resolution } from './event.ts';
import type { StoredResult, TaskEnd } from './outcome.ts';
import type { Plan } from './plan.ts';

/**
 * Where a task stands. Each variant carries just what the next decision needs; all plain JSON, as it lives in
 * workflow state and in query answers.
 */
export type Phase =
  | { kind: 'unplanned' }
  /** Planning a bare task. */
  | { kind: 'planning' }
  /** The next attempt may begin at `notBefore`. */
  | { kind: 'ready'; notBefore: number; purpose: AttemptPurpose; waiting: 'none' | 'backoff' | 'busy' }
  | { kind: 'attempting'; attempt: number; purpose: AttemptPurpose; inline: boolean }
  /** Applied, not yet visible: look again at `nextAt`, give up at `verifyUntil`. */
  | { kind: 'verifying'; nextAt: number; verifyUntil: number }
  | { kind: 'rollback_due'; notBefore: number; reason: 'verify_failed' | 'cancelled' }
  | { kind: 'rolling_back'; attempt: number; reason: 'verify_failed' | 'cancelled' }
  | { kind: 'close_due'; end: TaskEnd; notBefore: number }
  | { kind: 'closing'; end: TaskEnd }
  | { kind: 'needs_attention'; about: 'effect' | 'rollback' }
  | { kind: 'resolve_due'; resolution: Resolution; about: 'effect' | 'rollback'; notBefore: number }
  /** Nothing is left to do but to say so. */
  | { kind: 'finished'; end: TaskEnd; result: StoredResult | null; replayed: boolean }
  | { kind: 'ended' };

/** One attempt as a person reads it in `task show`. */
export interface AttemptView {
  attempt: number;
  purpose: AttemptPurpose | 'rollback';
  inline: boolean;
  startedAt: number;
  finishedAt: number | null;
  outcome: string | null;
  failure: Failure | null;
}

/** The reduced state of one task: `reduce(state, event)` over its journal, and nothing else, makes it (S3.1). */
export interface TaskState {
  v: 1;
  taskId: string;
  ordinal: number;
  plan: Plan | null;
  /** The last event's number. */
  seq: number;
  startedAt: number;
  updatedAt: number;
  phase: Phase;
  /** Highest attempt number ever scheduled or heard of; the next is one more (S2.3). */
  attempt: number;
  /** Business retries spent (S5.2). */
  retriesSpent: number;
  /** Attempts lost by the infrastructure since the last that answered; paces the next one, spends no budget. */
  lostInARow: number;
  /** An attempt may have reached the world and its outcome is not known yet: settle before any end. */
  inDoubt: boolean;
  cancelRequested: boolean;
  runDeadlinePassed: boolean;
  /** First `notYet` plus verifyMs; null before it. */
  verifyUntil: number | null;
  verifyPolls: number;
  /** Retries of the rollback spent. */
  rollbackRetriesSpent: number;
  lastFailure: Failure | null;
  nextEligibleAt: number | null;
  attempts: AttemptView[];
  end: TaskEnd | null;
  result: StoredResult | null;
  replayed: boolean;
}
