/** One operation on stage: its identity, what may be done to it, and what it was seen to do. */
import type { HoldfastClient } from '../../client/index.ts';
import type { MessageAnswer, TaskAnswer } from '../../client/task-client.ts';
import { operationIdOf, taskIdOf } from '../../contract/ids.ts';
import type { Action } from '../../contract/implement-action.ts';
import { planOperation } from '../../contract/plan-operation.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { FaultPoints } from '../../operation/faults.ts';
import { performOperation } from '../../operation/perform-operation.ts';
import { rollbackOperation } from '../../operation/rollback-operation.ts';
import type { JsonObject } from '../../task/json.ts';
import type { OperationOutcome, RollbackOutcome } from '../../task/outcome.ts';
import type { Principal } from '../../task/plan.ts';
import type { CleanRun } from './forge.ts';
import type { Part } from './scripts.ts';
import type { Terms } from './terms.ts';

/** What a scene is played with. */
export interface Props {
  /** With this operation's contract and the scripted handlers. */
  action: Action;
  terms: Terms;
  client: HoldfastClient;
  /** As another process would have it. */
  otherClient: HoldfastClient;
  ledger: Ledger;
  principal: Principal;
  hashKey: Uint8Array | undefined;
  patienceMs: number;
  key: string;
  args: JsonObject;
  /** Undefined before it. */
  clean: CleanRun | undefined;
}

export class Scene {
  readonly props: Props;
  readonly operationId: string;
  readonly taskId: string;
  readonly part: Part = { script: {}, calls: {} };
  /** What the scenario itself saw go wrong. */
  readonly objections: string[] = [];

  constructor(props: Props) {
    this.props = props;
    const { principal, action, key } = props;
    this.operationId = operationIdOf(principal.tenant, action.contract.name, key);
    this.taskId = taskIdOf(this.operationId, 1);
  }

  start(client = this.props.client): Promise<TaskAnswer> {
    const { action, args, key, principal } = this.props;
    return client.start({ action: action.contract.name, args, key, principal });
  }

  /** Until the task has ended or needs a person. */
  wait(): Promise<TaskAnswer> {
    const { client, principal, patienceMs } = this.props;
    return client.wait(this.taskId, principal, { timeoutMs: patienceMs });
  }

  /** Until its status is that, or can't become that any more. */
  async waitFor(status: string): Promise<void> {
    const { client, principal, patienceMs } = this.props;
    const seen = new AbortController();
    const onChange = (answer: TaskAnswer): void => {
      if (answer.status === status) seen.abort();
    };
    await client.wait(this.taskId, principal, { timeoutMs: patienceMs, signal: seen.signal, onChange });
  }

  cancel(): Promise<MessageAnswer> {
    return this.props.client.cancel(this.taskId, this.props.principal, 'rehearsed');
  }

  expect(isAsPromised: boolean, objection: string): void {
    if (!isAsPromised) this.objections.push(objection);
  }

  /** An attempt delivered by nobody's workflow: a stale or a second one (S2.7). */
  deliver(attempt: number, faults?: FaultPoints): Promise<OperationOutcome> {
    const request = {
      ...this.#request(attempt),
      purpose: 'execute',
      inline: false,
      verifyFinal: false,
    } as const;
    return performOperation(this.#deps(faults), request, NOBODYS);
  }

  deliverRollback(attempt: number): Promise<RollbackOutcome> {
    const request = { ...this.#request(attempt), reason: 'cancelled', final: false } as const;
    return rollbackOperation(this.#deps(), request, NOBODYS);
  }

  #request(attempt: number) {
    const { action, args, key, principal, hashKey } = this.props;
    const { plan, input } = planOperation(action, { args, key, principal, hashKey });
    return { plan, input, taskId: this.taskId, ordinal: 1, attempt, journal: [] };
  }

  #deps(faults?: FaultPoints) {
    const { ledger, action } = this.props;
    const { handlers, contract } = action;
    return { ledger, handlers, contract, ...(faults && { faults }) };
  }
}

const NOBODYS = { signal: new AbortController().signal, heartbeat: () => undefined };
