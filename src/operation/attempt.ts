/** One attempt at an operation: what every part of the protocol needs at hand. */
import assert from 'node:assert/strict';
import type { ExecuteContext, LookContext } from '../contract/handlers.ts';
import type { AuditNote } from '../task/activity-api.ts';
import type { Claim, HeldLease } from '../task/claim.ts';
import { fenceOf } from '../task/claim.ts';
import type { Failure } from '../task/failure.ts';
import type { Json } from '../task/json.ts';
import type { Plan } from '../task/plan.ts';
import { ABORT_GRACE_MS, TRANSACTION_GRACE_MS, openBudget } from './budget.ts';
import type { Budget } from './budget.ts';
import type { AttemptRuntime, HandlerCall, HandlerName, OperationDeps } from './deps.ts';
import { noFaults } from './faults.ts';
import type { FaultPoint } from './faults.ts';
import { callHandler } from './handler-call.ts';
import type { CallAnswer } from './handler-call.ts';
import { HeldClaim } from './held-claim.ts';
import { Secrets } from './secrets.ts';

/** What an attempt at an effect and one at its rollback have in common. */
interface AttemptScope {
  plan: Plan;
  input: Json;
  taskId: string;
  ordinal: number;
  attempt: number;
  lease?: HeldLease;
  journal: AuditNote[];
}

export class Attempt<Request extends AttemptScope = AttemptScope> {
  readonly deps: OperationDeps;
  readonly request: Request;
  readonly runtime: AttemptRuntime;
  readonly plan: Plan;
  readonly about: 'effect' | 'rollback';
  /** What handlers know the operation by; a rollback's own while rolling back. */
  readonly operationId: string;
  readonly secrets = new Secrets();
  /** This attempt called `execute` or `rollback`, so that what it can't write any more is worth keeping (S2.7). */
  hasSent = false;
  /** What a fault point threw, since a ledger transaction may make another error of it. */
  fault: { error: unknown } | null = null;
  private readonly budget: Budget;

  constructor(deps: OperationDeps, request: Request, runtime: AttemptRuntime, rollbackId?: string) {
    this.deps = deps;
    this.request = request;
    this.runtime = runtime;
    this.plan = request.plan;
    this.about = rollbackId === undefined ? 'effect' : 'rollback';
    this.operationId = rollbackId ?? request.plan.operationId;
    this.budget = openBudget(request.plan, this.about === 'rollback' ? 2 : request.attempt);
    this.secrets.add(request.input, request.plan.sensitive.input);
  }

  async reach(point: FaultPoint): Promise<void> {
    const { taskId, attempt } = this.request;
    const { about, operationId } = this;
    try {
      await (this.deps.faults ?? noFaults)({ point, about, operationId, taskId, attempt });
    } catch (error) {
      this.fault = { error };
      throw error;
    }
  }

  /** A copy for one handler, so that what it does to it is seen by no other (S2.9). */
  input(): never {
    return structuredClone(this.request.input) as never;
  }

  /** One handler call within its deadline, its failure cleaned of secrets. */
  async call<T>(
    name: HandlerName,
    signals: readonly AbortSignal[],
    handler: (signal: AbortSignal) => Promise<T>,
  ): Promise<CallAnswer<T>> {
    // A transactional handler holds the ledger's transaction: it is left behind at once (S2.8).
    const graceMs = this.plan.transactional ? TRANSACTION_GRACE_MS : ABORT_GRACE_MS;
    const clean = (text: string): string => this.secrets.clean(text);
    const call = () => callHandler<T>({ limitMs: this.budget.callMs(), graceMs, signals, clean }, handler);
    const { trace } = this.deps;
    const answer = await (trace === undefined ? call() : trace(this.callOf(name), call));
    return answer.kind === 'returned' ? answer : { ...answer, failure: this.clean(answer.failure) };
  }

  private callOf(handler: HandlerName): HandlerCall {
    const { taskId, attempt } = this.request;
    return { handler, action: this.plan.action, operationId: this.operationId, taskId, attempt };
  }

  clean(failure: Failure): Failure {
    return this.secrets.cleanFailure(failure);
  }

  lookContext(signal: AbortSignal, tx?: unknown): LookContext {
    const { taskId, plan } = this.request;
    const principal = structuredClone(plan.principal);
    return { operationId: this.operationId, taskId, principal, signal, ...(tx !== undefined && { tx }) };
  }

  executeContext(
    signal: AbortSignal,
    claim: Claim,
    assertOwner: () => Promise<void>,
    { isFirstSend, tx }: { isFirstSend: boolean; tx?: unknown },
  ): ExecuteContext {
    const { lease } = this.request;
    return {
      ...this.lookContext(signal, tx),
      attempt: this.request.attempt,
      isFirstSend,
      fence: fenceOf(claim),
      lease: lease === undefined ? null : { resource: lease.resource, fence: lease.fence },
      heartbeat: this.runtime.heartbeat,
      assertOwner,
    };
  }

  /** Ends renewal with `letGo`. */
  hold(claim: Claim, isInline: boolean): HeldClaim {
    const { ledger, log } = this.deps;
    const { heartbeat } = this.runtime;
    return new HeldClaim({
      ledger,
      claim,
      claimMs: claimMsOf(this.plan, isInline),
      renews: !isInline,
      heartbeat,
      log,
    });
  }
}

/** An inline claim isn't heartbeated: it lasts its deadlines plus a margin (interfaces.md "Inline"). */
export function claimMsOf(plan: Plan, isInline: boolean): number {
  const { attemptMs, verifyMs, heartbeatMs } = plan.deadlines;
  return isInline ? attemptMs + verifyMs + heartbeatMs : heartbeatMs;
}

/** S8.1: what names a resource never runs without its grant. */
export function assertLease({ plan, lease }: Pick<AttemptScope, 'plan' | 'lease'>): void {
  assert.equal(lease?.id, plan.lease?.id, 'an attempt runs under the lease that its plan names');
}
