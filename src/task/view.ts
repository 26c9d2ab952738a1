/** What a task's state says to people and callers. Pure. */
import type { EditedFrom, TaskEffect, TaskEnd, TaskOutcome, TaskStatus } from './outcome.ts';
import type { PlanEdit } from './plan.ts';
import type { TaskState } from './state.ts';

/** The status of S3.4. */
export function statusOf(state: TaskState): TaskStatus {
  const { phase } = state;
  switch (phase.kind) {
    case 'ended':
    case 'finished':
      return endOf(state)?.status ?? 'failed';
    case 'needs_attention':
      return 'needs_attention';
    case 'awaiting_approval':
      return 'awaiting_approval';
    case 'verifying':
      return 'verifying';
    case 'remote':
      return 'running';
    case 'ready':
    case 'working':
    case 'retry_due':
      return statusOfStep(state, phase.step.kind, phase.kind === 'ready' && phase.waiting === 'backoff');
    default:
      return phase satisfies never;
  }
}

function statusOfStep(state: TaskState, step: string, isBackingOff: boolean): TaskStatus {
  if (step === 'plan' || step === 'preview') return 'proposed';
  if (step === 'rollback') return 'rolling_back';
  if (step === 'resolve') return 'needs_attention';
  if (state.verifyUntil !== null) return 'verifying';
  if (isReconciling(state)) return 'reconciling';
  return isBackingOff ? 'backing_off' : 'running';
}

/** An earlier attempt may have reached the world, or the present one only finds out. */
function isReconciling({ phase, inDoubt }: TaskState): boolean {
  if (phase.kind !== 'working') return inDoubt;
  return phase.step.kind === 'attempt' && (phase.step.purpose === 'settle' || phase.inDoubtBefore);
}

/** How the task ends, known once it is `finished`; null before. */
function endOf({ phase, end }: TaskState): TaskEnd | null {
  return phase.kind === 'finished' ? phase.end : end;
}

/** The effect as far as it is known; null while it can't be told. */
export function effectOf(state: TaskState): TaskEffect | null {
  const { phase } = state;
  const end = endOf(state);
  if (end !== null) return end.effect;
  const isUndoing = 'step' in phase && phase.step.kind === 'rollback';
  const isPersonAsked =
    phase.kind === 'needs_attention' || ('step' in phase && phase.step.kind === 'resolve');
  return state.inDoubt || isUndoing || isPersonAsked ? null : 'none';
}

/** The object `call --json` prints and workflow `action` returns. */
export function outcomeOf(state: TaskState): TaskOutcome {
  const end = endOf(state);
  const { result, replayed } = state.phase.kind === 'finished' ? state.phase : state;
  return {
    taskId: state.taskId,
    operationId: state.operationId ?? '',
    action: state.action,
    status: statusOf(state),
    effect: effectOf(state),
    cause: end?.cause ?? null,
    replayed,
    autoRetry: state.plan?.autoRetry ?? true,
    cancelRequested: state.cancelRequested,
    result,
    error: end?.error ?? null,
    ...(state.plan?.edited && { editedFrom: editedFrom(state.plan.fingerprint.input, state.plan.edited) }),
  };
}

export function editedFrom(requested: string, { by, callId, fingerprint }: PlanEdit): EditedFrom {
  return { fingerprint: requested, executed: fingerprint.input, by, callId };
}
