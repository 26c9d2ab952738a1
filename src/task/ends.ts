/** How tasks end: the one place where a cause gets its status, effect and error (S3.4). Pure. */
import type { Resolution, RollbackReason } from './event.ts';
import type { Failure } from './failure.ts';
import type { TaskEnd, TaskError, TerminalCause } from './outcome.ts';
import type { Plan } from './plan.ts';

interface Asked {
  plan: Plan | null;
  cancelRequested: boolean;
}

/** The end of a task whose effect was committed. A `safe` action has no effect to report. */
export function committedEnd(task: Asked): TaskEnd {
  return {
    status: 'completed',
    effect: task.plan?.effect === 'safe' ? 'none' : 'applied',
    cause: 'committed',
    error: null,
    cancelRequested: task.cancelRequested,
  };
}

/** An end with nothing applied. The cause is also the error's code, except where the failure brings its own. */
export function endedWith(
  task: Asked,
  cause: TerminalCause,
  message: string,
  failure?: Pick<Failure, 'code' | 'details'>,
): TaskEnd {
  const error: TaskError = {
    code: failure?.code ?? cause,
    message,
    ...(failure?.details && { details: failure.details }),
  };
  return {
    status: cause === 'cancelled' ? 'cancelled' : 'failed',
    effect: 'none',
    cause,
    error,
    cancelRequested: task.cancelRequested,
  };
}

/** The end after a rollback that was carried out and verified (S6.2: what remains is said). */
export function rolledBackEnd(task: Asked, reason: RollbackReason, remains: string | undefined): TaskEnd {
  const details = remains === undefined ? {} : { details: { remains } };
  if (reason === 'cancelled') {
    return {
      status: 'cancelled',
      effect: 'rolled_back',
      cause: 'cancelled_after_commit',
      error: { code: 'cancelled', message: 'Cancelled after the effect; it was undone.', ...details },
      cancelRequested: true,
    };
  }
  if (reason === 'procedure_failed') {
    return {
      status: 'failed',
      effect: 'rolled_back',
      cause: 'procedure_failed',
      error: {
        code: 'operation_rolled_back',
        message: 'The procedure failed after this step; the step was undone.',
        ...details,
      },
      cancelRequested: task.cancelRequested,
    };
  }
  return {
    status: 'failed',
    effect: 'rolled_back',
    cause: 'verify_failed',
    error: {
      code: 'verify_failed',
      message: 'The effect was not as promised when read back; it was undone.',
      ...details,
    },
    cancelRequested: task.cancelRequested,
  };
}

/** What a person's resolution ends the task with (S3.5); null when the task goes on. */
export function resolvedEnd(
  task: Asked,
  { as }: Resolution,
  rollbackReason: RollbackReason | null,
): TaskEnd | null {
  if (as === 'abandoned') return abandonedEnd(task);
  const isUndone = as === 'not_applied' && rollbackReason !== null;
  return isUndone ? rolledBackEnd(task, rollbackReason, undefined) : null;
}

/** The one end whose effect stays unknown. */
export function abandonedEnd(task: Asked): TaskEnd {
  return {
    status: 'failed',
    effect: 'unknown',
    cause: 'abandoned',
    error: {
      code: 'operation_abandoned',
      message: 'A person gave this operation up with its effect unknown; its key is spent.',
    },
    cancelRequested: task.cancelRequested,
  };
}

/** What a later call of a spent key is told (S2.1). */
export function alreadyDecided(end: TaskEnd): TaskEnd {
  if (end.effect !== 'rolled_back') return end;
  return {
    ...end,
    status: 'failed',
    cause: 'operation_rolled_back',
    error: {
      code: 'operation_rolled_back',
      message: 'This operation was carried out and undone; its key is spent.',
    },
  };
}

/** Whether a cancel that meets the committed effect undoes it (S7.4). */
export function canRollBack(plan: Plan | null): boolean {
  return (
    plan !== null &&
    plan.onCancel === 'rollback' &&
    plan.effect !== 'safe' &&
    (plan.rollback.kind === 'inBand' || plan.rollback.kind === 'compensate')
  );
}
