/** The phases a task moves through, as the reducer makes them. Pure. */
import { approvalOf, isExecutionAllowed } from './approval.ts';
import type { Step } from './event.ts';
import type { Plan } from './plan.ts';
import type { Phase, TaskState } from './state.ts';

export const EXECUTE: Step = { kind: 'attempt', purpose: 'execute' };
export const PREVIEW: Step = { kind: 'preview' };
export const SETTLE: Step = { kind: 'attempt', purpose: 'settle' };

export function ready(step: Step, notBefore: number): Phase {
  return { kind: 'ready', step, notBefore, waiting: 'no' };
}

/** What a planned task begins with: a person's word where the plan asks for one. */
export function firstStep(plan: Plan): Step {
  return approvalOf(plan) === null ? EXECUTE : PREVIEW;
}

/** An execution, or a person's word before it where that is still to be asked for. */
export function nextExecution(state: TaskState): Step {
  return isExecutionAllowed(state) ? EXECUTE : PREVIEW;
}

/** The step's activity is about to be scheduled. One at a time: anything else is a programmer error. */
export function working(state: TaskState, step: Step, attempt: number): Phase {
  if (state.phase.kind === 'working') throw new Error(`step ${step.kind} begins while another is under way`);
  return { kind: 'working', step, attempt, abortRequested: false, inDoubtBefore: state.inDoubt };
}

/** The step a phase is about; asking when there is none is a programmer error. */
export function stepOf(state: TaskState): Step {
  if ('step' in state.phase) return state.phase.step;
  throw new Error(`no step in phase ${state.phase.kind}`);
}

/** Whether a step would bring about an effect, so that cancel, deadline and budget can stop it. */
export function isExecution(step: Step): boolean {
  return step.kind === 'attempt' && step.purpose === 'execute';
}

/** How it ends is decided, whether or not it has been said. */
export function isOver({ phase }: { phase: { kind: string } }): boolean {
  return phase.kind === 'finished' || phase.kind === 'ended';
}
