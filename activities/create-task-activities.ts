/**
 * The activities of workflows `action` and `procedure`: thin adapters between Temporal and the operation protocol. Run at least once, as
 * activities or local activities; whatever runs twice finds in the ledger what the first did.
 */
import { actionNamed, actionsBy } from '../src/contract/action-named.ts';
import { HoldfastError } from '../src/contract/error.ts';
import type { Action } from '../src/contract/implement-action.ts';
import type { Alert, Ledger } from '../src/ledger/ledger.ts';
import { closeOperation } from '../src/operation/close-operation.ts';
import type { HandlerTrace, OperationDeps, OperationLog } from '../src/operation/deps.ts';
import type { FaultPoints } from '../src/operation/faults.ts';
import { performOperation } from '../src/operation/perform-operation.ts';
import { resolveOperation } from '../src/operation/resolve-operation.ts';
import { rollbackOperation } from '../src/operation/rollback-operation.ts';
import type { RemoteServers } from '../src/contract/remote-server.ts';
import type { RemoteCalls } from '../src/remote/remote-calls.ts';
import { createRemoteActivities } from './remote-activities.ts';
import type { ProcedureActivities, RemoteActivities, TaskActivities } from '../src/task/activity-api.ts';
import type { Plan } from '../src/task/plan.ts';
import type { AlertDue } from '../src/task/state.ts';
import { acquireLease } from './acquire-lease.ts';
import type { LeaseDoor } from './acquire-lease.ts';
import { asActivity } from './activity-failure.ts';
import { withRuntime } from './activity-runtime.ts';
import { approvalGate } from './approval-gate.ts';
import { endProcedure } from './end-procedure.ts';
import { performStep } from './perform-step.ts';
import type { StepDeps } from './perform-step.ts';
import { planEdit } from './plan-edit.ts';
import { planTask } from './plan-task.ts';
import { previewOperation } from './preview-operation.ts';

export interface TaskActivityDeps {
  ledger: Ledger;
  actions: readonly Action[];
  /** Others, which may come and go: tools of other people's servers. */
  moreActions?: (name: string) => Action | undefined;
  /** Contracts of procedures, for tasks of theirs that were started bare. */
  procedures?: readonly Action[];
  /** The key of `hashSensitive`; needed where a contract has sensitive input fields. */
  hashKey?: Uint8Array;
  /** Without it no action that names a resource gets to run. */
  leases?: LeaseDoor;
  /** Control calls about tasks that other servers keep. */
  remoteCalls?: RemoteCalls;
  remotes?: RemoteServers;
  faults?: FaultPoints;
  log?: OperationLog;
  trace?: HandlerTrace;
}

/**
 * Throws, as ApplicationFailure with the code as `type`: `unknown_action` where this worker has no such action (another
 * may), `ledger_unavailable`, `internal_error`. The workflow takes each for a lost attempt.
 */
export function createTaskActivities(
  deps: TaskActivityDeps,
): TaskActivities & ProcedureActivities & RemoteActivities {
  const { ledger, log, remotes } = deps;
  const actions = actionsBy([...deps.actions, approvalGate], deps.moreActions);
  const procedures = new Map(deps.procedures?.map((procedure) => [procedure.contract.name, procedure]));
  const optional = {
    ...(remotes && { remotes }),
    ...(deps.faults && { faults: deps.faults }),
    ...(log && { log }),
    ...(deps.trace && { trace: deps.trace }),
  };
  const operationDeps = (name: string): OperationDeps => {
    const { contract, handlers } = actionNamed(actions, name);
    return { ledger, handlers, contract, ...optional };
  };
  return {
    attemptOperation: (request) =>
      asActivity(log, () =>
        withRuntime((runtime) => performOperation(operationDeps(request.plan.action), request, runtime)),
      ),
    rollbackOperation: (request) =>
      asActivity(log, () =>
        withRuntime((runtime) => rollbackOperation(operationDeps(request.plan.action), request, runtime)),
      ),
    closeOperation: (request) => asActivity(log, () => closeOperation({ ledger }, request)),
    resolveOperation: (request) => asActivity(log, () => resolveOperation({ ledger }, request)),
    recordNotes: ({ plan, taskId, journal, alert }) =>
      asActivity(log, () =>
        ledger.appendAudit({
          ...(alert && { alert: alertOf(plan, taskId, alert) }),
          taskId,
          operationId: plan.operationId,
          tenant: plan.principal.tenant,
          notes: journal,
        }),
      ),
    previewOperation: (request) =>
      asActivity(log, () =>
        withRuntime((runtime) => previewOperation(operationDeps(request.plan.action), request, runtime)),
      ),
    planEdit: (request) =>
      asActivity(log, () =>
        Promise.resolve(planEdit(actionNamed(actions, request.plan.action), request, deps.hashKey)),
      ),
    ...createRemoteActivities(deps.remoteCalls ?? null, log),
    ...procedureActivities(deps, (name) => actionNamed(actions, name), operationDeps),
    acquireLease: (request) =>
      asActivity(log, () => acquireLease({ ledger, leases: deps.leases ?? noLeases }, request)),
    planTask: ({ start, taskId }) =>
      asActivity(log, () =>
        planTask(
          { ledger, hashKey: deps.hashKey },
          procedures.get(start.action) ?? actionNamed(actions, start.action),
          start,
          taskId,
        ),
      ),
  };
}

const noLeases: LeaseDoor = {
  acquire: () =>
    Promise.reject(new HoldfastError('internal_error', 'This worker was given no way to leases.')),
};

function procedureActivities(
  { ledger, hashKey, log }: TaskActivityDeps,
  actionNamed: StepDeps['actionNamed'],
  operationDeps: (name: string) => OperationDeps,
): ProcedureActivities {
  const steps = { ledger, hashKey, actionNamed, operationDeps };
  return {
    performStep: (request) =>
      asActivity(log, () => withRuntime((runtime) => performStep(steps, request, runtime))),
    endProcedure: (request) => asActivity(log, () => endProcedure({ ledger }, request)),
  };
}

function alertOf(plan: Plan, taskId: string, { type, message, callId, at }: AlertDue): Alert {
  const { operationId, action, principal } = plan;
  const data = { ...(callId !== null && { callId }), at };
  return { type, message, taskId, operationId, action, tenant: principal.tenant, data };
}
