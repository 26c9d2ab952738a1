/** What a task's state says to people and callers. Pure. */
import type { TaskEffect, TaskOutcome, TaskStatus } from './outcome.ts';
import type { TaskState } from './state.ts';

/** The status of S3.4. */
export function statusOf(state: TaskState): TaskStatus {
  const { phase } = state;
  switch (phase.kind) {
    case 'ended':
    case 'finished':
      return state.end?.status ?? (phase.kind === 'finished' ? phase.end.status : 'failed');
    case 'needs_attention':
      return 'needs_attention';
    case 'verifying':
      return 'verifying';
    case 'ready':
    case 'working':
    case 'retry_due':
      return statusOfStep(state, phase.step.kind, phase.kind === 'ready' && phase.waiting === 'backoff');
    default:
      return phase satisfies never;
  }
}

function statusOfStep(state: TaskState, step: string, isBackingOff: boolean): TaskStatus {
  if (step === 'plan') return 'proposed';
  if (step === 'rollback') return 'rolling_back';
  if (step === 'resolve') return 'needs_attention';
  if (state.verifyUntil !== null) return 'verifying';
  if (isReconciling(state)) return 'reconciling';
  return isBackingOff ? 'backing_off' : 'running';
}

/** An earlier attempt may have reached the world, or the present one only finds out. */
function isReconciling(state: TaskState): boolean {
  const { phase } = state;
  if (phase.kind === 'working' && phase.step.kind === 'attempt') {
    return phase.step.purpose === 'settle' || hasDoubtBefore(state, phase.attempt);
  }
  return state.inDoubt && hasDoubtBefore(state, state.attempt + 1);
}

function hasDoubtBefore(state: TaskState, attempt: number): boolean {
  const earlier = state.attempts.filter((view) => view.attempt < attempt).at(-1);
  return (
    earlier !== undefined &&
    (earlier.outcome === 'unknown' || earlier.outcome === 'lost' || earlier.outcome === 'busy')
  );
}

/** The effect as far as it is known; null while it can't be told. */
export function effectOf(state: TaskState): TaskEffect | null {
  if (state.end !== null) return state.end.effect;
  if (state.phase.kind === 'finished') return state.phase.end.effect;
  const { phase } = state;
  const isUndoing = 'step' in phase && phase.step.kind === 'rollback';
  return state.inDoubt || isUndoing || phase.kind === 'needs_attention' ? null : 'none';
}

/** The object `call --json` prints and workflow `action` returns. */
export function outcomeOf(state: TaskState): TaskOutcome {
  return {
    taskId: state.taskId,
    operationId: state.operationId ?? '',
    action: state.action,
    status: statusOf(state),
    effect: effectOf(state),
    cause: state.end?.cause ?? null,
    replayed: state.replayed,
    autoRetry: state.plan?.autoRetry ?? true,
    cancelRequested: state.cancelRequested,
    result: state.result,
    error: state.end?.error ?? null,
  };
}
