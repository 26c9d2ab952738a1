/**
 * What a procedure keeps of steps that its continue-as-new leaves behind: people's time (S5.3), first answers and closed
 * approvals (S4.3). Pure.
 */
import { callIdOf, cycleOf, stepOfCallId } from './approval.ts';
import type { DecisionMessage, DecisionReply } from './approval.ts';
import { closedCode, closedReply } from './judge-decision.ts';
import type { ClosedCode } from './judge-decision.ts';
import type { ProcedureState } from './procedure-state.ts';
import type { TaskState } from './state.ts';

export interface PastSteps {
  humanWaitMs: number;
  /** First answers by decisionId, the newest 200. */
  answers: (TaskState['answers'][number] & { step: string })[];
  /** The last approval of each step that had any, and why nobody can decide it any more; the newest 200. */
  closed: { callId: string; code: ClosedCode }[];
}

const KEPT_MAX = 200;

/** The state as it crosses without these steps. */
export function withPast(state: ProcedureState, left: readonly TaskState[]): ProcedureState {
  if (left.length === 0) return state;
  const before = state.past ?? { humanWaitMs: 0, answers: [], closed: [] };
  const answers = left.flatMap((step) => step.answers.map((answer) => ({ ...answer, step: nameOf(step) })));
  const closed = left.flatMap((step) => {
    const callId = callIdOf(step.approvalCycle, nameOf(step));
    return step.approvalCycle === 0 ? [] : [{ callId, code: closedCode(step, callId) }];
  });
  const past = {
    humanWaitMs: left.reduce((sum, step) => sum + step.humanWaitMs, before.humanWaitMs),
    answers: [...before.answers, ...answers].slice(-KEPT_MAX),
    closed: [...before.closed, ...closed].slice(-KEPT_MAX),
  };
  return { ...state, past };
}

/** What the step would have answered; null where none of that name was left behind. */
export function judgePast(
  { past, plan }: ProcedureState,
  { callId, decisionId, by }: DecisionMessage,
): { reply: Omit<DecisionReply, 'status'>; isFirst: boolean } | null {
  if (past === undefined || by.tenant !== plan?.principal.tenant) return null;
  const step = stepOfCallId(callId);
  const first = past.answers.find((known) => known.step === step && known.decisionId === decisionId);
  if (first !== undefined) {
    const { step: _step, decisionId: _id, ...reply } = first;
    return { reply, isFirst: true };
  }
  const closed = past.closed.find((known) => stepOfCallId(known.callId) === step);
  const [cycle, last] = [cycleOf(callId, step), closed && cycleOf(closed.callId, step)];
  if (closed === undefined || cycle === null || cycle > (last ?? 0)) return null;
  const code = cycle === last ? closed.code : 'already_decided';
  return { reply: closedReply(code), isFirst: false };
}

const nameOf = ({ stepId, action }: TaskState): string => stepId ?? action;
