/**
 * Workflow `lease`: the lease on one resource of a tenant (S8.2). Begun by whoever first asks for it (signal-with-start),
 * over once nobody has held it or waited for it for a while.
 *
 * Owns the order of grants (src/task/lease.ts). Never knows what is done under one, and refuses no write: stores do, by the
 * fence (S8.1, S8.3).
 * Invariants:
 * 1. A grant is in the state before its holder is told; one whose workflow has ended is passed over.
 * 2. A lease ends by release, by a durable timer on the engine's time, or with its holder's workflow; by nothing else, a
 *    cancel of this workflow included.
 * 3. Queue, holder and newest fence cross continue-as-new; a message that comes meanwhile is the next run's.
 * Anyone may signal anything: what is no request is dropped.
 */
import {
  CancellationScope,
  condition,
  continueAsNew,
  getExternalWorkflowHandle,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { decideLease, freeLease, reduceLease } from '../src/task/lease.ts';
import type {
  LeaseEvent,
  LeaseHolder,
  LeaseOwner,
  LeaseRelease,
  LeaseRequest,
  LeaseState,
} from '../src/task/lease.ts';
import { isHistoryLong } from './history.ts';
import {
  leaseAcquireSignal,
  leaseGrantedSignal,
  leaseQuery,
  leaseReleaseSignal,
  leaseRenewSignal,
} from './messages.ts';
import type { LeaseArgument } from './messages.ts';
import { fieldsOf } from './requests.ts';

/** Nobody holds it or waits: a resource in steady use need not begin a workflow for each use. */
const REST_MS = 60_000;
/** A workflow id may be as long. */
const OWNER_CHARS_MAX = 1_000;
const LEASE_MS_MAX = 3 * 86_400_000;

export async function lease(argument: LeaseArgument): Promise<void> {
  await CancellationScope.nonCancellable(() => new Lease(argument).live());
}

class Lease {
  readonly #argument: LeaseArgument;
  #state: LeaseState;

  constructor(argument: LeaseArgument) {
    this.#argument = argument;
    this.#state = argument.carried ?? freeLease();
    const acquire = (message: unknown): void => {
      const request = requestOf(message);
      if (request !== null) this.#apply({ type: 'acquire', request, at: Date.now() });
    };
    setHandler(leaseAcquireSignal, acquire);
    setHandler(leaseRenewSignal, acquire);
    setHandler(leaseReleaseSignal, (message) => {
      const release = releaseOf(message);
      if (release !== null) this.#apply({ type: 'release', release, at: Date.now() });
    });
    const { v, tenant, resource } = argument;
    setHandler(leaseQuery, () => ({ v, tenant, resource, state: this.#state }));
  }

  async live(): Promise<void> {
    for (;;) {
      if (isHistoryLong()) await this.#startAfresh();
      const verdict = decideLease(this.#state, Date.now());
      switch (verdict.do) {
        case 'grant':
          this.#apply({ type: 'granted', at: Date.now() });
          break;
        case 'tell':
          await this.#tell(verdict.holder);
          break;
        case 'expire':
          this.#apply({ type: 'expired', fence: verdict.fence });
          break;
        case 'wait':
          await this.#changed(verdict.until - Date.now());
          break;
        case 'rest':
          if (!(await this.#changed(REST_MS))) return;
          break;
        default:
          verdict satisfies never;
      }
    }
  }

  async #tell({ taskId, step, request, fence, until }: LeaseHolder): Promise<void> {
    const grant = { request, fence, until };
    const message = { ...grant, id: workflowInfo().workflowId, ...(step !== undefined && { step }) };
    const isTold = await getExternalWorkflowHandle(taskId)
      .signal(leaseGrantedSignal, message)
      .then(
        () => true,
        () => false,
      );
    this.#apply(isTold ? { type: 'told', grant } : { type: 'holder_gone', fence });
  }

  /** False once so much time went by without a message that changed anything. */
  #changed(withinMs: number): Promise<boolean> {
    const before = this.#state;
    return condition(() => this.#state !== before || isHistoryLong(), Math.max(1, withinMs));
  }

  #startAfresh(): Promise<never> {
    const { v, tenant, resource } = this.#argument;
    return continueAsNew<typeof lease>({ v, tenant, resource, carried: this.#state });
  }

  #apply(event: LeaseEvent): void {
    this.#state = reduceLease(this.#state, event);
  }
}

function requestOf(message: unknown): LeaseRequest | null {
  const { request, leaseMs, holding, above } = fieldsOf(message);
  const owner = ownerOf(message);
  if (owner === null || !isWhole(request) || !isWhole(leaseMs) || leaseMs < 1 || leaseMs > LEASE_MS_MAX)
    return null;
  return {
    ...owner,
    request,
    leaseMs,
    ...(isWhole(holding) && { holding }),
    ...(isWhole(above) && { above }),
  };
}

function releaseOf(message: unknown): LeaseRelease | null {
  const { request, fence } = fieldsOf(message);
  const owner = ownerOf(message);
  if (owner === null || !isWhole(request) || (fence !== undefined && !isWhole(fence))) return null;
  return { ...owner, request, ...(fence !== undefined && { fence }) };
}

function ownerOf(message: unknown): LeaseOwner | null {
  const { taskId, step } = fieldsOf(message);
  if (!isName(taskId) || (step !== undefined && !isName(step))) return null;
  return { taskId, ...(step !== undefined && { step }) };
}

const isName = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= OWNER_CHARS_MAX;

const isWhole = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;
