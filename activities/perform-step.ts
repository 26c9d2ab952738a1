/**
 * A procedure's step in one activity (architecture.md, idea 1): planned, reserved and performed; where policy asks for a
 * person it is reserved and nothing is claimed. Run again it finds in the ledger what the first run did.
 */
import { decisionBudget } from '../src/contract/decision-budget.ts';
import { HoldfastError } from '../src/contract/error.ts';
import { operationIdOf } from '../src/contract/ids.ts';
import type { Action } from '../src/contract/implement-action.ts';
import { planOperation } from '../src/contract/plan-operation.ts';
import type { PlannedOperation } from '../src/contract/plan-operation.ts';
import { underStandingRules } from '../src/contract/standing-rule.ts';
import type { Ledger, RowState } from '../src/ledger/ledger.ts';
import type { AttemptRuntime, OperationDeps } from '../src/operation/deps.ts';
import { performOperation } from '../src/operation/perform-operation.ts';
import type { StepAnswer, StepRequest } from '../src/task/activity-api.ts';
import { endedWith } from '../src/task/ends.ts';
import type { TaskEnd } from '../src/task/outcome.ts';
import type { PlanDecision } from '../src/task/plan.ts';
import { refusalCause } from './plan-task.ts';

export interface StepDeps {
  ledger: Pick<Ledger, 'reserveStep' | 'find' | 'standingRules'>;
  hashKey: Uint8Array | undefined;
  /** Throws `unknown_action`. */
  actionNamed(name: string): Action;
  operationDeps(name: string): OperationDeps;
}

/** A step that no retry would plan. */
const BEYOND_PLANNING: readonly string[] = ['unknown_action', 'invalid_contract'];
const NOTHING_SENT: readonly RowState[] = ['reserved', 'released'];

export async function performStep(
  deps: StepDeps,
  request: StepRequest,
  runtime: AttemptRuntime,
): Promise<StepAnswer> {
  const { start, taskId, ordinal, attempt, purpose, journal } = request;
  const planned = await planStep(deps, request);
  if ('refused' in planned) return { kind: 'refused', end: planned.refused };
  const { input, reservation, plan: ruled } = await underStandingRules(planned, deps.ledger);
  const budget = planned.decision && { decision: planned.decision };
  const plan = { ...ruled, inline: false, stepOf: start.parent, ...budget };
  const parent = { operationId: start.parent, taskId, ordinal };
  const reserved = await deps.ledger.reserveStep({ parent, reservation, notes: journal });
  if (reserved.kind === 'superseded')
    return { kind: 'refused', end: endWith('superseded', 'Another run of the procedure took over.') };
  if (reserved.kind === 'conflict') {
    const { paths } = reserved;
    return { kind: 'performed', plan, input, ordinal, outcome: { kind: 'conflict', paths } };
  }
  if (plan.approval && NOTHING_SENT.includes(reserved.row.state) && purpose === 'execute')
    return { kind: 'asks', plan, input, ordinal };
  if (plan.lease != null)
    return { kind: 'leases', plan, input, ordinal, inDoubt: !NOTHING_SENT.includes(reserved.row.state) };
  const outcome = await performOperation(
    deps.operationDeps(plan.action),
    { plan, input, taskId, ordinal, attempt, purpose, inline: false, verifyFinal: false, journal: [] },
    runtime,
  );
  return { kind: 'performed', plan, input, ordinal, outcome };
}

/**
 * What is refused here was never reserved. A step of which something was sent under other terms is not refused: it waits
 * for a worker whose contracts still take it.
 */
async function planStep(
  { ledger, hashKey, actionNamed }: StepDeps,
  { start }: StepRequest,
): Promise<(PlannedOperation & { decision: PlanDecision | null }) | { refused: TaskEnd }> {
  const { action: name, args, key, principal, parent } = start;
  try {
    const action = actionNamed(name);
    const planned = planOperation(action, { args, principal, key, hashKey, attach: false });
    const isDecision = start.decision === true;
    return { ...planned, decision: isDecision ? decisionBudget(action.contract, planned.input) : null };
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    const cause = BEYOND_PLANNING.includes(error.code) ? 'permanent_failure' : refusalCause(error);
    const row = await ledger.find(operationIdOf(principal.tenant, name, key));
    if (cause === null || (row !== null && row.parentOperationId === parent)) throw error;
    return { refused: endWith(cause, error.message, error) };
  }
}

function endWith(
  cause: TaskEnd['cause'],
  message: string,
  error?: Pick<HoldfastError, 'code' | 'details'>,
): TaskEnd {
  return endedWith({ plan: null, cancelRequested: false }, cause, message, error);
}
