/**
 * One control call about a task that another server keeps (S8.4): claimed, made under a renewed lease, and its outcome
 * written down. No transaction of the ledger holds the call.
 *
 * Invariants:
 * 1. No call begins before its claim was verified and extended.
 * 2. Once the lease is lost the call is aborted, and whatever it answers is discarded.
 * 3. A call that was stopped from here and failed is given back as if it had not been made. Aborting it never touches the
 *    remote task.
 * 4. A call that does not react to its abort is left behind after the drain bound. It keeps its slot until it settles, and
 *    its claim too where that is still ours.
 */
import type { Clock } from '../contract/clock.ts';
import type {
  RemoteCallOutcome,
  RemoteClaim,
  RemoteClaimAnswer,
  RemoteTaskRow,
  RemoteTasks,
} from '../ledger/remote-tasks.ts';
import type { CallSlots } from './call-slots.ts';
import { HeldLease } from './held-lease.ts';

export interface SupervisionDeps {
  ledger: Pick<RemoteTasks, 'claimRemoteCall' | 'renewRemoteCall' | 'settleRemoteCall' | 'releaseRemoteCall'>;
  clock: Clock;
  slots: CallSlots;
  /** The owner's name; proves nothing, the claim's token does. */
  worker: string;
  leaseMs: number;
  callMs: number;
  drainMs: number;
}

export interface ControlCall extends Pick<RemoteClaim, 'operationId' | 'call'> {
  keys?: readonly string[];
  /** The call itself, and what is to be written of its answer. */
  make(row: RemoteTaskRow, signal: AbortSignal): Promise<RemoteCallOutcome>;
  failed(error: unknown, row: RemoteTaskRow): RemoteCallOutcome;
}

export type SupervisedAnswer =
  | { kind: 'settled'; row: RemoteTaskRow }
  | { kind: 'refused'; answer: Exclude<RemoteClaimAnswer, { kind: 'granted' }> }
  /** Another call about the task is under way in this worker, or does not settle. */
  | { kind: 'under_way' }
  | { kind: 'stopped' }
  | { kind: 'lost' }
  | { kind: 'left_behind' };

type Called = { kind: 'answered'; outcome: RemoteCallOutcome } | { kind: 'threw'; error: unknown };

/** The call's own deadline; counts as its failure. */
class CallTimedOut extends Error {
  override readonly name = 'TimeoutError';
}

const REPEAT_AFTER_MS = 250;

export async function superviseCall(
  deps: SupervisionDeps,
  call: ControlCall,
  stop: AbortSignal,
): Promise<SupervisedAnswer> {
  const slot = await deps.slots.take(call.operationId, stop, call.call === 'cancel');
  if (slot.kind !== 'taken') return slot;
  let unsettled: Promise<unknown> | null = null;
  try {
    const { ledger, clock, leaseMs, worker } = deps;
    const { operationId, call: kind, keys } = call;
    const answer = await ledger.claimRemoteCall({
      ...{ operationId, call: kind, worker, leaseMs },
      ...(keys && { keys }),
    });
    if (answer.kind !== 'granted') return { kind: 'refused', answer };
    const lease = new HeldLease({ ledger, clock, claim: answer.claim, leaseMs });
    try {
      if (!(await lease.confirm())) return { kind: 'lost' };
      const made = await callUnder(deps, call, answer, lease, stop);
      if ('unsettled' in made) ({ unsettled } = made);
      return made.answer;
    } finally {
      lease.letGo();
    }
  } finally {
    if (unsettled === null) slot.giveBack();
    else void unsettled.then(slot.giveBack);
  }
}

type Made = { answer: SupervisedAnswer } | { answer: SupervisedAnswer; unsettled: Promise<unknown> };

async function callUnder(
  deps: SupervisionDeps,
  call: ControlCall,
  { claim, row }: { claim: RemoteClaim; row: RemoteTaskRow },
  lease: HeldLease,
  stop: AbortSignal,
): Promise<Made> {
  const { clock, ledger } = deps;
  const giveBack = () => ledger.releaseRemoteCall(claim).catch(() => false);
  if (stop.aborted) {
    await giveBack();
    return { answer: { kind: 'stopped' } };
  }
  const timeout = new AbortController();
  const callOff = clock.after(deps.callMs, () => timeout.abort(new CallTimedOut('no answer in time')));
  const signal = AbortSignal.any([stop, lease.lost, timeout.signal]);
  const called = settle(call, row, signal);
  const drain = drained(clock, deps.drainMs, signal);
  const first = await Promise.race([called, drain.over]);
  callOff();
  drain.callOff();
  if (first === 'left_behind') {
    // Given back only once the call has settled: until then the lease keeps others away, as after a crash.
    const unsettled = called.then(giveBack);
    return { answer: { kind: 'left_behind' }, unsettled };
  }
  if (lease.isLost) {
    // Where it is ours still (a cancel was asked for meanwhile) whoever comes next need not wait for the lease to pass.
    void giveBack();
    return { answer: { kind: 'lost' } };
  }
  if (first.kind === 'threw' && stop.aborted) {
    await giveBack();
    return { answer: { kind: 'stopped' } };
  }
  const outcome = first.kind === 'answered' ? first.outcome : call.failed(first.error, row);
  const giveUp = drained(clock, deps.drainMs, AbortSignal.any([stop, lease.lost]));
  const answer = await Promise.race([written(deps, claim, outcome, lease), giveUp.over]);
  giveUp.callOff();
  return { answer: answer === 'left_behind' ? { kind: 'lost' } : answer };
}

function settle(call: ControlCall, row: RemoteTaskRow, signal: AbortSignal): Promise<Called> {
  return Promise.resolve()
    .then(() => call.make(row, signal))
    .then(
      (outcome): Called => ({ kind: 'answered', outcome }),
      (error: unknown): Called => ({ kind: 'threw', error }),
    );
}

/** When a call that was aborted has had its time to react. */
function drained(
  clock: Clock,
  drainMs: number,
  signal: AbortSignal,
): { over: Promise<'left_behind'>; callOff: () => void } {
  let callOff: () => void = () => undefined;
  let wait: () => void = () => undefined;
  const over = new Promise<'left_behind'>((resolve) => {
    wait = () => {
      callOff = clock.after(drainMs, () => resolve('left_behind'));
    };
    if (signal.aborted) wait();
    else signal.addEventListener('abort', wait, { once: true });
  });
  return {
    over,
    callOff: () => {
      signal.removeEventListener('abort', wait);
      callOff();
    },
  };
}

/** Until the ledger took it, while the lease is held; a repeat is known by its token. */
async function written(
  { ledger, clock }: SupervisionDeps,
  claim: RemoteClaim,
  outcome: RemoteCallOutcome,
  lease: HeldLease,
): Promise<SupervisedAnswer> {
  const lost = new Promise<null>((resolve) => {
    if (lease.isLost) resolve(null);
    else lease.lost.addEventListener('abort', () => resolve(null), { once: true });
  });
  while (!lease.isLost) {
    const settled = await Promise.race([ledger.settleRemoteCall(claim, outcome).catch(() => 'away'), lost]);
    if (settled === null) return { kind: 'lost' };
    if (typeof settled === 'object')
      return settled.kind === 'written' ? { kind: 'settled', row: settled.row } : { kind: 'lost' };
    const pause = new Promise<void>((resolve) => void clock.after(REPEAT_AFTER_MS, resolve));
    await Promise.race([pause, lost]);
  }
  return { kind: 'lost' };
}
