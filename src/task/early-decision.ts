/**
 * Decisions about steps that a procedure has not begun (S4.3): held until the step begins, then judged by it like any
 * that came early. Pure.
 *
 * Invariants:
 * 1. Held is what may still count: about the first approval of a step that can still begin, and for an approval with the
 *    fingerprint of its call, whose arguments nobody can know yet.
 * 2. So many, and so much together, is held; more is refused.
 * 3. The same `decisionId` gets its first answer.
 */
import { cycleOf, stepOfCallId } from './approval.ts';
import type { DecisionCode, DecisionMessage, DecisionReply } from './approval.ts';
import { hasRoom } from './judge-decision.ts';
import { PROCEDURE_LIMITS } from './procedure-limits.ts';
import { isStopped } from './procedure-state.ts';
import type { ProcedureState } from './procedure-state.ts';

export interface EarlyAnswer {
  reply: Omit<DecisionReply, 'status'>;
  /** Whether it is to be kept. */
  isHeld: boolean;
}

const STEP_NAME = /^[A-Za-z0-9_.-]+(#\d+)?(\/[A-Za-z0-9_.-]+(#\d+)?)*$/;

/** Null: no such approval is to be expected, whatever the code does next. */
export function judgeEarlyDecision(state: ProcedureState, decision: DecisionMessage): EarlyAnswer | null {
  const { callId, by, kind, fingerprint } = decision;
  const step = stepOfCallId(callId);
  if (!isName(step) || hasBegun(state, step) || cycleOf(callId, step) !== 1 || kind === 'edit') return null;
  if (state.plan !== null && by.tenant !== state.plan.principal.tenant) return null;
  const held = state.heldDecisions ?? [];
  if (held.some(({ decisionId }) => decisionId !== undefined && decisionId === decision.decisionId))
    return { reply: HELD, isHeld: false };
  if (isStopped(state) || state.phase.kind === 'returned')
    return refused('already_ended', 'The procedure has ended or is about to; that step does not begin.');
  if (kind === 'approve' && fingerprint === undefined)
    return refused('not_open', 'That step has not begun; in advance it needs the fingerprint of its call.');
  if (!hasRoom([...held, decision]))
    return refused('not_open', 'That step has not begun, and no more decisions can be held for what comes.');
  return { reply: HELD, isHeld: true };
}

const HELD = { accepted: true, code: 'held' } as const;

function refused(code: DecisionCode, message: string): EarlyAnswer {
  return { reply: { accepted: false, code, message }, isHeld: false };
}

function isName(step: string): boolean {
  return step.length <= PROCEDURE_LIMITS.stepNameLengthMax && STEP_NAME.test(step);
}

/** `stepId#n` is the n-th use of its name, which is counted for good (S1.2). */
function hasBegun({ uses }: ProcedureState, step: string): boolean {
  const [, name = step, n = '1'] = /^(.*?)(?:#(\d+))?$/.exec(step) ?? [];
  return Object.hasOwn(uses, name) && (uses[name] ?? 0) >= Number(n);
}
