/** What a procedure says about itself, in the words of a task: whoever reads a task reads a procedure. Pure. */
import { approvalOf, openApproval } from './approval.ts';
import type { TaskEffect, TaskEnd, TaskError, TerminalCause } from './outcome.ts';
import { EXECUTE, isOver } from './phase.ts';
import type { ProcedureState } from './procedure-state.ts';
import { initialState } from './reduce.ts';
import type { Phase, StepView, TaskState } from './state.ts';
import { effectOf, outcomeOf } from './view.ts';

/** How a procedure ends whose code returned. */
export function returnedEnd(steps: readonly TaskState[]): TaskEnd {
  const isApplied = steps.some((step) => effectOf(step) === 'applied');
  return {
    status: 'completed',
    effect: isApplied ? 'applied' : 'none',
    cause: 'committed',
    error: null,
    cancelRequested: false,
  };
}

/** How a procedure ends that was stopped, once what could be undone was (S6.3). `cancelled` never hides an effect (S3.4). */
export function stoppedEnd(state: ProcedureState, steps: readonly TaskState[]): TaskEnd {
  const effect = remainingEffect(steps);
  const { cause, error } = stopCause(state, effect);
  const isCancelled = state.failure === null && (effect === 'none' || effect === 'rolled_back');
  return {
    status: isCancelled ? 'cancelled' : 'failed',
    effect,
    cause,
    error,
    cancelRequested: state.cancelRequested,
  };
}

function remainingEffect(steps: readonly TaskState[]): TaskEffect {
  const effects = steps.map(effectOf);
  if (effects.some((effect) => effect === 'unknown' || effect === null)) return 'unknown';
  if (effects.includes('applied')) return 'applied';
  return effects.includes('rolled_back') ? 'rolled_back' : 'none';
}

function stopCause(
  { failure }: ProcedureState,
  effect: TaskEffect,
): { cause: TerminalCause; error: TaskError } {
  if (failure !== null) return failure;
  switch (effect) {
    case 'none':
      return {
        cause: 'cancelled',
        error: { code: 'cancelled', message: 'Cancelled before anything was applied.' },
      };
    case 'rolled_back':
      return {
        cause: 'cancelled_after_commit',
        error: { code: 'cancelled', message: 'Cancelled; what was committed was undone, newest first.' },
      };
    case 'applied':
      return {
        cause: 'cancelled_after_commit',
        error: {
          code: 'rollback_failed',
          message: 'Cancelled; a person let a step stand that was to be undone.',
        },
      };
    case 'unknown':
      return {
        cause: 'abandoned',
        error: {
          code: 'operation_abandoned',
          message: 'Cancelled; a person gave a step up with its effect unknown.',
        },
      };
    default:
      return effect satisfies never;
  }
}

/**
 * The procedure as a task. Where steps wait for a person it shows the first of them, plan and approval included, and the
 * approvals of the others beside it; else the one step that is under way, if there is just one.
 */
export function viewOf(state: ProcedureState, steps: readonly TaskState[]): TaskState {
  const open = steps.filter((step) => !isOver(step));
  const shown = open.find(isPersonAwaited) ?? (open.length === 1 ? open[0] : undefined);
  const focus = isOver(state) ? undefined : shown;
  const { taskId, procedure, ordinal, plan, startedAt } = state;
  const begun = { taskId, action: procedure, ordinal, plan };
  return {
    ...(focus ?? initialState(begun, startedAt)),
    ...begun,
    operationId: state.operationId,
    plan: focus?.plan ?? plan,
    seq: state.seq,
    startedAt,
    updatedAt: state.updatedAt,
    phase: focus?.phase ?? phaseOf(state),
    inDoubt: !isOver(state) && steps.some((step) => effectOf(step) !== 'none'),
    cancelRequested: state.cancelRequested,
    interrupted: state.interrupted,
    ...(state.slaMissed !== undefined && { slaMissed: true as const }),
    answers: [...pastAnswers(state), ...heldAnswers(state), ...steps.flatMap(({ answers }) => answers)],
    end: state.end,
    result: state.result,
    replayed: state.replayed,
    steps: steps.map(stepView),
    ...othersOf(open, focus),
  };
}

function othersOf(
  open: readonly TaskState[],
  focus: TaskState | undefined,
): Pick<TaskState, 'otherApprovals'> {
  const others = open.flatMap((step) => {
    const approval = step === focus ? null : openApproval(step);
    const rule = approvalOf(step.plan);
    return focus === undefined || approval === null || rule === null
      ? []
      : [{ approval, rule, action: step.action }];
  });
  return others.length > 0 ? { otherApprovals: others } : {};
}

function pastAnswers({ past }: ProcedureState): TaskState['answers'] {
  return (past?.answers ?? []).map(({ step: _step, ...answer }) => answer);
}

/** The first answers to decisions that no step has taken over yet. */
function heldAnswers({ heldDecisions = [] }: ProcedureState): TaskState['answers'] {
  return heldDecisions.flatMap(({ decisionId }) =>
    decisionId === undefined ? [] : [{ decisionId, accepted: true, code: 'held' as const }],
  );
}

function isPersonAwaited({ phase }: TaskState): boolean {
  return phase.kind === 'awaiting_approval' || phase.kind === 'needs_attention';
}

function phaseOf({ phase }: ProcedureState): Phase {
  switch (phase.kind) {
    case 'planning':
      return working({ kind: 'plan' });
    case 'running':
    case 'returned':
      return working(EXECUTE);
    case 'undoing':
      return working({ kind: 'rollback', reason: phase.reason });
    case 'finished':
    case 'ended':
      return phase;
    default:
      return phase satisfies never;
  }
}

function working(step: Extract<Phase, { kind: 'working' }>['step']): Phase {
  return { kind: 'working', step, attempt: 0, abortRequested: false, inDoubtBefore: false };
}

function stepView(step: TaskState): StepView {
  const { status, effect, error, operationId } = outcomeOf(step);
  return {
    step: step.stepId ?? step.action,
    action: step.action,
    status,
    effect,
    operationId: operationId === '' ? null : operationId,
    attempts: step.attempt,
    error,
  };
}
