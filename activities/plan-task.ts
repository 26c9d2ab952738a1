/**
 * A task started by a bare Temporal client plans and reserves in its first activity, under the workflow's own id
 * (interfaces.md "Workflow action"). Run again (its worker died after the reservation) it answers the same.
 */
import { createHash } from 'node:crypto';
import { HoldfastError } from '../src/contract/error.ts';
import type { ErrorCode } from '../src/contract/error.ts';
import { base32 } from '../src/contract/ids.ts';
import type { Action } from '../src/contract/implement-action.ts';
import { keyAmong } from '../src/contract/key-argument.ts';
import { planOperation } from '../src/contract/plan-operation.ts';
import type { PlannedOperation } from '../src/contract/plan-operation.ts';
import { underStandingRules } from '../src/contract/standing-rule.ts';
import type { Ledger, OperationRow } from '../src/ledger/ledger.ts';
import type { BareStart, PlanTaskResult } from '../src/task/activity-api.ts';
import { alreadyDecided, endedWith } from '../src/task/ends.ts';
import type { JsonObject } from '../src/task/json.ts';
import type { TaskEnd, TerminalCause } from '../src/task/outcome.ts';

interface PlanningDeps {
  ledger: Pick<Ledger, 'reserve' | 'standingRules'>;
  hashKey?: Uint8Array | undefined;
}

/** Refusals that are the caller's to know; any other error means that this worker can't plan it now. */
const REFUSALS: Partial<Record<ErrorCode, TerminalCause>> = {
  invalid_arguments: 'invalid_arguments',
  invalid_key: 'invalid_arguments',
  payload_too_large: 'invalid_arguments',
  approval_required: 'approval_required',
};

/** Null: no fault of the call's. */
export function refusalCause({ code }: HoldfastError): TerminalCause | null {
  return REFUSALS[code] ?? null;
}

export async function planTask(
  { ledger, hashKey }: PlanningDeps,
  action: Action,
  start: BareStart,
  taskId: string,
): Promise<PlanTaskResult> {
  let planned: PlannedOperation;
  try {
    planned = planBare(action, start, taskId, hashKey);
  } catch (error) {
    const cause = error instanceof HoldfastError ? refusalCause(error) : null;
    if (cause === null) throw error;
    return refused(null, endWith(cause, error as HoldfastError));
  }
  const { plan, input, reservation } = await underStandingRules(planned, ledger);
  const reserved = await ledger.reserve({ ...reservation, taskId });
  switch (reserved.kind) {
    case 'fresh':
      return { kind: 'planned', plan, input, ordinal: reserved.ordinal };
    case 'open':
      if (reserved.row.taskId === taskId)
        return { kind: 'planned', plan, input, ordinal: reserved.row.ordinal };
      return refused(plan.operationId, inProgress(reserved.row));
    case 'ended':
      return replayed(reserved.row);
    case 'conflict':
      return refused(plan.operationId, conflict(reserved.paths));
    default:
      return reserved satisfies never;
  }
}

/**
 * S1.7: without a key it runs under a generated one, here derived from the workflow's id, so that planning again, or a
 * reset of the workflow, meets the same operation (S2.12). It is met by no equal call.
 */
function planBare(
  action: Action,
  start: BareStart,
  taskId: string,
  hashKey: Uint8Array | undefined,
): PlannedOperation {
  const request = { args: start.input, principal: start.principal, hashKey, attach: false };
  const key = start.key ?? keyAmong(start.input, action.contract.keyArgument);
  if (key !== undefined) return planOperation(action, { ...request, key });
  const { plan, input, reservation } = planOperation(action, {
    ...request,
    key: `auto_${shortHash(taskId)}`,
  });
  return {
    plan: { ...plan, keyed: false, autoRetry: plan.effect === 'safe' },
    input,
    reservation: { ...reservation, keyed: false, attach: false },
  };
}

const shortHash = (text: string): string => base32(createHash('sha256').update(text).digest());

function refused(operationId: string | null, end: TaskEnd): PlanTaskResult {
  return { kind: 'refused', end, operationId, result: null, replayed: false };
}

function endWith(
  cause: TerminalCause,
  { code, message, details }: { code: string; message: string; details: JsonObject },
): TaskEnd {
  const failure = { kind: 'permanent', code, message, details } as const;
  return endedWith({ plan: null, cancelRequested: false }, cause, message, failure);
}

function inProgress({ taskId }: OperationRow): TaskEnd {
  const message = `Task ${taskId} owns this operation and has not ended.`;
  return endWith('operation_in_progress', { code: 'operation_in_progress', message, details: { taskId } });
}

function conflict(paths: string[]): TaskEnd {
  const message = `The key was used before with other arguments; they differ at ${paths.join(', ') || 'the root'}.`;
  return endWith('idempotency_conflict', { code: 'idempotency_conflict', message, details: { paths } });
}

/** The key is spent: what its task ended with (S2.1). */
function replayed({ end, operationId, result, state }: OperationRow): PlanTaskResult {
  if (end === null) throw new Error(`the row of ${operationId} has ended without an end`);
  return {
    kind: 'refused',
    end: alreadyDecided(end),
    operationId,
    result: state === 'committed' ? result : null,
    replayed: true,
  };
}
