/** An operation's activity delivered by nobody's workflow: a stale or a second one (S2.7). */
import type { FaultPoints } from '../../operation/faults.ts';
import { performOperation } from '../../operation/perform-operation.ts';
import { rollbackOperation } from '../../operation/rollback-operation.ts';
import type { OperationOutcome, RollbackOutcome } from '../../task/outcome.ts';
import type { Scene } from './scene.ts';

const NOBODYS = { signal: new AbortController().signal, heartbeat: () => undefined };

export function deliverAttempt(
  scene: Scene,
  attempt: number,
  faults?: FaultPoints,
): Promise<OperationOutcome> {
  const request = {
    ...requestOf(scene, attempt),
    purpose: 'execute',
    inline: false,
    verifyFinal: false,
  } as const;
  return performOperation(depsOf(scene, faults), request, NOBODYS);
}

export function deliverRollback(scene: Scene, attempt: number): Promise<RollbackOutcome> {
  const request = { ...requestOf(scene, attempt), reason: 'cancelled', final: false } as const;
  return rollbackOperation(depsOf(scene), request, NOBODYS);
}

function requestOf(scene: Scene, attempt: number) {
  const { plan, input } = scene.planned();
  return { plan, input, taskId: scene.taskId, ordinal: 1, attempt, journal: [] };
}

function depsOf({ props: { ledger, action } }: Scene, faults?: FaultPoints) {
  const { handlers, contract } = action;
  return { ledger, handlers, contract, ...(faults && { faults }) };
}
