/**
 * The task's side of a lease (S8): what it holds or waits for, and what it does about it before an attempt begins and when
 * nothing of it is under way. Pure; part of reducer and decider.
 *
 * Invariants:
 * 1. An attempt or rollback of a plan that names a resource begins only under a grant that was made for it and has not run
 *    out. A worker that outlives it all the same is too late by its fence.
 * 2. A grant under which an attempt may still be at work is never renewed: the next one has a new fence.
 * 3. Nothing is held, or waited for, while a person is waited for, or once the task is over.
 * 4. While another server goes on with an attempt its lease is renewed, whatever that server asks for: the effect is not
 *    over. A renewal of then counts for no attempt: the next one asks again.
 */
import type { EventData, TaskEvent } from './event.ts';
import type { LeaseGrant } from './lease.ts';
import type { HeldLease } from './claim.ts';
import type { Plan } from './plan.ts';
import type { TaskState } from './state.ts';

/** Absent until something was asked for. */
export interface TaskLease {
  id: string;
  resource: string;
  /** How many were made; the newest is the one that counts. */
  requests: number;
  waiting: { since: number; asks: number; askAgainAt: number } | null;
  /** `fresh`: for the attempt that comes next; `used`: for one before, or renewed while another server works; `outrun`: an attempt under it may still be at work. */
  held: { fence: number; until: number; use: 'fresh' | 'used' | 'outrun' } | null;
  /** The newest fence that the ledger told of; the next is higher. */
  above: number;
}

export type LeaseVerdict =
  /** `holding`: renews the grant of this fence. */
  | { do: 'lease'; request: number; holding: number | null }
  | { do: 'release'; id: string; request: number; fence: number | null };

type Leased = Pick<TaskState, 'plan' | 'lease'>;
type Change = Pick<TaskState, 'lease'>;

/** Whoever asked may have been forgotten (the lease's workflow was ended from outside): asked again, ever more rarely. */
const ASK_AGAIN_MS = { initial: 60_000, maximum: 600_000 };
/** Asking itself failed: the engine or the ledger is away. */
const FAILED_MS = { initial: 500, maximum: 30_000 };

/** What comes before an attempt; null when it may begin. */
export function leaseBefore(
  { plan, lease }: Leased,
  now: number,
): Extract<LeaseVerdict, { do: 'lease' }> | { do: 'wait'; until: number; person: false } | null {
  if (plan?.lease == null) return null;
  const { waiting = null, held = null, requests = 0 } = lease ?? {};
  if (waiting !== null) {
    const { askAgainAt } = waiting;
    if (now < askAgainAt) return { do: 'wait', until: askAgainAt, person: false };
    return { do: 'lease', request: requests, holding: null };
  }
  const isRunning = held !== null && now < held.until;
  if (isRunning && held.use === 'fresh') return null;
  return {
    do: 'lease',
    request: requests + 1,
    holding: isRunning && held.use === 'used' ? held.fence : null,
  };
}

/**
 * While another server works under it: renewed once a third has passed, so that two more tries are left. One that ran out
 * all the same (no worker was there) is asked for as by any other. A time: until when nothing is due.
 */
export function leaseMeanwhile(
  { plan, lease }: Leased,
  now: number,
): Extract<LeaseVerdict, { do: 'lease' }> | number | null {
  if (plan?.lease == null || lease === undefined) return null;
  const { waiting, held, requests } = lease;
  if (waiting !== null)
    return now < waiting.askAgainAt ? waiting.askAgainAt : { do: 'lease', request: requests, holding: null };
  if (held === null || now >= held.until) return { do: 'lease', request: requests + 1, holding: null };
  const renewAt = held.until - Math.floor((plan.lease.leaseMs * 2) / 3);
  if (now < renewAt) return renewAt;
  return { do: 'lease', request: requests + 1, holding: held.use === 'outrun' ? null : held.fence };
}

/** When nothing of the task is under way, or will be before a person said so; null when nothing is held. */
export function letGo({ lease }: Leased): LeaseVerdict | null {
  if (lease === undefined || (lease.held === null && lease.waiting === null)) return null;
  const { id, requests, held } = lease;
  return { do: 'release', id, request: requests, fence: held?.fence ?? null };
}

/** The resource that is waited for, for people; null when none is. */
export const waitsFor = ({ lease, phase }: Pick<TaskState, 'lease' | 'phase'>): string | null =>
  lease?.waiting == null || phase.kind === 'remote' ? null : lease.resource;

/** What an attempt is given; undefined where its plan names no resource. */
export function heldLease({ lease }: Leased, plan: Plan): HeldLease | undefined {
  if (plan.lease == null) return undefined;
  if (lease?.held == null) throw new Error('an attempt without the lease that its plan names');
  return { id: lease.id, resource: lease.resource, fence: lease.held.fence };
}

/** `awaited`: answers the newest request; `known`: it is held already, or a newer one is; `unwanted`: to be given back. */
export function judgeGrant(
  { lease }: Leased,
  { request, fence }: LeaseGrant,
): 'awaited' | 'known' | 'unwanted' {
  if (lease === undefined || request !== lease.requests) return 'unwanted';
  if (lease.waiting !== null) return 'awaited';
  return lease.held !== null && fence <= lease.held.fence ? 'known' : 'unwanted';
}

export function afterLeaseRequested(
  { lease }: TaskState,
  { id, resource, request }: EventData['lease_requested'],
  at: number,
): Change {
  const again = lease?.waiting != null && request === lease.requests ? lease.waiting : null;
  const asks = (again?.asks ?? 0) + 1;
  const askAgainAt = at + doubled(ASK_AGAIN_MS, asks - 1);
  const waiting = { since: again?.since ?? at, asks, askAgainAt };
  return { lease: { id, resource, requests: request, waiting, held: null, above: lease?.above ?? 0 } };
}

export function afterLeaseAskFailed(
  { lease }: TaskState,
  { request, isGone }: EventData['lease_ask_failed'],
  at: number,
): Change | object {
  if (lease?.waiting == null || request !== lease.requests) return {};
  const { waiting } = lease;
  const askAgainAt = isGone ? at : at + doubled(FAILED_MS, waiting.asks - 1);
  return { lease: { ...lease, waiting: { ...waiting, askAgainAt } } };
}

export function afterLeaseGranted(state: TaskState, grant: EventData['lease_granted']): Change | object {
  const { lease } = state;
  if (lease === undefined || judgeGrant(state, grant) !== 'awaited') return {};
  const { fence, until } = grant;
  const use = state.phase.kind === 'remote' ? 'used' : 'fresh';
  return { lease: { ...lease, waiting: null, held: { fence, until, use } } };
}

export function afterLeaseReleased({ lease }: TaskState): Change | object {
  return lease === undefined ? {} : { lease: { ...lease, waiting: null, held: null } };
}

/** What an event about an attempt says about the grant that it ran under. */
export function leaseAfter({ lease }: TaskState, event: TaskEvent): Change | object {
  if (lease === undefined) return {};
  const told = leaseFenceIn(event);
  const above = told === undefined ? {} : { above: Math.max(lease.above, told) };
  const use = useAfter(event);
  if (lease.held === null || use === null) return { lease: { ...lease, ...above } };
  return { lease: { ...lease, ...above, held: { ...lease.held, use } } };
}

function leaseFenceIn(event: TaskEvent): number | undefined {
  if (event.type !== 'attempt_finished' && event.type !== 'rollback_finished') return undefined;
  const { outcome } = event.data;
  return outcome.kind === 'fenceStale' ? outcome.leaseFence : undefined;
}

function useAfter(event: TaskEvent): 'used' | 'outrun' | null {
  switch (event.type) {
    case 'attempt_scheduled':
    case 'rollback_scheduled':
      return 'used';
    case 'step_lost':
      return 'outrun';
    case 'attempt_finished':
      return ['unknown', 'fenceStale', 'busy'].includes(event.data.outcome.kind) ? 'outrun' : null;
    case 'rollback_finished':
      return event.data.outcome.kind === 'rolledBack' ? null : 'outrun';
    default:
      return null;
  }
}

function doubled({ initial, maximum }: { initial: number; maximum: number }, times: number): number {
  return Math.min(initial * 2 ** Math.min(times, 20), maximum);
}
