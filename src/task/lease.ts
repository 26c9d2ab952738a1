/**
 * The lease on one resource: who may work on it, until when, and who is next (S8.1, S8.2). Pure: workflow `lease` feeds it
 * messages and time, and carries out its verdicts.
 *
 * Never decides who is too late: that is the fence's part, in every store that has seen a newer one (S8.3).
 * Invariants:
 * 1. One holder at a time, and each grant's fence is higher than every one before it.
 * 2. First come, first served; whoever waits leaves the queue by a grant or by its own release alone.
 * 3. An owner has one request: of two the one with the higher number, and the same one twice is one.
 * 4. Until its end a lease is never cut short by time: a renewal, or a clock that steps back, only lengthens it (S8.5).
 * 5. A message about another grant or an earlier request than the newest changes nothing.
 *
 * A fence is the engine's time of its grant in milliseconds, or one more than the fence before where that is higher. So it
 * grows too over a workflow that completed and one that began anew, which know nothing of each other: the second grants
 * later. `above`, the newest fence that the ledger has seen, covers an engine whose clock was set back meanwhile.
 */

/** A task, or a step of a procedure. */
export interface LeaseOwner {
  taskId: string;
  step?: string;
}

export interface LeaseRequest extends LeaseOwner {
  /** Counts an owner's requests. */
  request: number;
  leaseMs: number;
  /** Renews the grant of this fence, if it is still the newest; else asks for one as any other does. */
  holding?: number;
  /** The next fence is higher than this one. */
  above?: number;
}

/** `fence` absent: whatever came of the request. */
export interface LeaseRelease extends LeaseOwner {
  request: number;
  fence?: number;
}

/** What a holder is told. */
export interface LeaseGrant {
  request: number;
  fence: number;
  /** By the engine's clock. */
  until: number;
}

export interface LeaseHolder extends LeaseOwner, LeaseGrant {
  isTold: boolean;
}

type Waiter = LeaseOwner & Pick<LeaseRequest, 'request' | 'leaseMs'>;

export interface LeaseState {
  v: 1;
  /** The newest granted, or seen by the ledger; 0 before. */
  fence: number;
  holder: LeaseHolder | null;
  queue: Waiter[];
}

export type LeaseEvent =
  | { type: 'acquire'; request: LeaseRequest; at: number }
  | { type: 'release'; release: LeaseRelease; at: number }
  /** To the first of the queue. */
  | { type: 'granted'; at: number }
  | { type: 'told'; grant: LeaseGrant }
  | { type: 'expired'; fence: number }
  /** The holder's workflow has ended. */
  | { type: 'holder_gone'; fence: number };

export type LeaseVerdict =
  | { do: 'grant' }
  | { do: 'tell'; holder: LeaseHolder }
  | { do: 'expire'; fence: number }
  /** Until the clock reads `until` or a message comes. */
  | { do: 'wait'; until: number }
  /** Nobody holds it and nobody waits. */
  | { do: 'rest' };

/** Beyond it a request is not taken, and its task asks again. They cross continue-as-new in one payload. */
export const LEASE_WAITERS_MAX = 5_000;
/** Of the waiters' names together: what a payload takes, three bytes each and with what stands around them. */
export const LEASE_WAITERS_CHARS_MAX = 500_000;

export const freeLease = (): LeaseState => ({ v: 1, fence: 0, holder: null, queue: [] });

export function reduceLease(state: LeaseState, event: LeaseEvent): LeaseState {
  switch (event.type) {
    case 'acquire':
      return afterAcquire(withoutExpired(atLeast(state, event.request.above), event.at), event);
    case 'release':
      return afterRelease(state, event.release);
    case 'granted': {
      const [first, ...queue] = state.queue;
      if (first === undefined || state.holder !== null) return state;
      return granted({ ...state, queue }, first, event.at);
    }
    case 'told': {
      const { holder } = state;
      const isNewest = holder?.fence === event.grant.fence && holder.request === event.grant.request;
      return isNewest ? { ...state, holder: { ...holder, isTold: true } } : state;
    }
    case 'expired':
    case 'holder_gone':
      return state.holder?.fence === event.fence ? { ...state, holder: null } : state;
    default:
      return event satisfies never;
  }
}

export function decideLease({ holder, queue }: LeaseState, now: number): LeaseVerdict {
  if (holder === null) return { do: queue.length > 0 ? 'grant' : 'rest' };
  if (now >= holder.until) return { do: 'expire', fence: holder.fence };
  return holder.isTold ? { do: 'wait', until: holder.until } : { do: 'tell', holder };
}

function afterAcquire(
  state: LeaseState,
  { request, at }: Extract<LeaseEvent, { type: 'acquire' }>,
): LeaseState {
  const { holder, queue } = state;
  if (holder !== null && isSameOwner(holder, request)) return afterHoldersAcquire(state, holder, request, at);
  const { taskId, step, request: number, leaseMs } = request;
  const waiter: Waiter = { taskId, ...(step !== undefined && { step }), request: number, leaseMs };
  const place = queue.findIndex((known) => isSameOwner(known, request));
  const known = queue[place];
  if (known !== undefined)
    return number > known.request ? { ...state, queue: queue.with(place, waiter) } : state;
  return isFull(queue) ? state : { ...state, queue: [...queue, waiter] };
}

function isFull(queue: readonly Waiter[]): boolean {
  const chars = queue.reduce((sum, { taskId, step = '' }) => sum + taskId.length + step.length, 0);
  return queue.length >= LEASE_WAITERS_MAX || chars >= LEASE_WAITERS_CHARS_MAX;
}

/** It keeps its turn: under the same fence where it renews, else under a new one, which an attempt of its own may be too late for. */
function afterHoldersAcquire(
  state: LeaseState,
  holder: LeaseHolder,
  request: LeaseRequest,
  at: number,
): LeaseState {
  if (request.request < holder.request) return state;
  if (request.request === holder.request) return { ...state, holder: { ...holder, isTold: false } };
  const next = request.holding === holder.fence ? state : granted(state, request, at);
  const fence = next.fence === state.fence ? holder.fence : next.fence;
  // S8.5: a clock that stepped back shortens neither.
  const until = Math.max(holder.until, at + request.leaseMs);
  return { ...next, holder: { ...holder, fence, request: request.request, until, isTold: false } };
}

function afterRelease(state: LeaseState, release: LeaseRelease): LeaseState {
  const { holder } = state;
  const isOurs = (known: LeaseOwner & { request: number }): boolean =>
    isSameOwner(known, release) && known.request <= release.request;
  if (holder !== null && isOurs(holder) && (release.fence === undefined || release.fence === holder.fence))
    return { ...state, holder: null };
  const queue = state.queue.filter((waiter) => !isOurs(waiter));
  return queue.length === state.queue.length ? state : { ...state, queue };
}

function granted(state: LeaseState, { taskId, step, request, leaseMs }: Waiter, at: number): LeaseState {
  const fence = Math.max(state.fence + 1, at);
  const owner = { taskId, ...(step !== undefined && { step }) };
  return { ...state, fence, holder: { ...owner, request, fence, until: at + leaseMs, isTold: false } };
}

function withoutExpired(state: LeaseState, at: number): LeaseState {
  return state.holder !== null && at >= state.holder.until ? { ...state, holder: null } : state;
}

function atLeast(state: LeaseState, above: number | undefined): LeaseState {
  return above !== undefined && above > state.fence ? { ...state, fence: above } : state;
}

const isSameOwner = (one: LeaseOwner, other: LeaseOwner): boolean =>
  one.taskId === other.taskId && one.step === other.step;
