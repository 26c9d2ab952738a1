/**
 * One call of a user's handler under a deadline.
 *
 * Guarantees: answers within `limitMs` plus `graceMs` whatever the handler does. A handler that ignores its
 * signal is left behind, and its late answer is handed on rather than lost (field case 4). Once it has answered nothing
 * here holds it or its signal.
 */
import { classifyFailure } from '../contract/classify-failure.ts';
import { followSignals } from '../contract/follow-signals.ts';
import type { Failure } from '../task/failure.ts';

export type Settled<T> = { kind: 'returned'; value: T } | { kind: 'threw'; failure: Failure };
export type CallAnswer<T> = Settled<T> | { kind: 'leftBehind'; failure: Failure; late: Promise<Settled<T>> };

interface CallLimits {
  limitMs: number;
  /** Each ends the call early. */
  signals: readonly AbortSignal[];
  /** How long the handler may take to react to its abort before it is left behind. */
  graceMs: number;
  /** Takes out of what a handler throws what must not be kept, before it is cut to length. */
  clean?: (text: string) => string;
}

/** Aborts a handler's signal at its deadline. */
class DeadlinePassed extends Error {
  constructor(limitMs: number) {
    super(`no answer within ${limitMs} ms`);
    this.name = 'TimeoutError';
  }
}

export async function callHandler<T>(
  limits: CallLimits,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<CallAnswer<T>> {
  const following = followSignals(limits.signals);
  const { signal } = following;
  const timers = [setTimeout(() => following.abort(new DeadlinePassed(limits.limitMs)), limits.limitMs)];
  const settled = settle(call, signal, limits.clean);
  const leftBehind = new Promise<'leftBehind'>((resolve) => {
    const startGrace = (): void => {
      timers.push(setTimeout(() => resolve('leftBehind'), limits.graceMs));
    };
    if (signal.aborted) startGrace();
    else signal.addEventListener('abort', startGrace, { once: true });
  });
  try {
    const first = await Promise.race([settled, leftBehind]);
    if (first !== 'leftBehind') return first;
    return { kind: 'leftBehind', failure: stopped(signal), late: settled };
  } finally {
    timers.forEach(clearTimeout);
    following.release();
  }
}

async function settle<T>(
  call: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
  clean?: (text: string) => string,
): Promise<Settled<T>> {
  try {
    return { kind: 'returned', value: await call(signal) };
  } catch (error) {
    const failure = classifyFailure(error, clean);
    // What an aborted call throws is mostly the abort itself: say why it was aborted instead.
    return {
      kind: 'threw',
      failure: signal.aborted && failure.kind === 'unknown' ? stopped(signal) : failure,
    };
  }
}

function stopped(signal: AbortSignal): Failure {
  const message =
    signal.reason instanceof DeadlinePassed
      ? `The handler gave ${signal.reason.message}.`
      : 'The handler was stopped before it answered.';
  return { kind: 'unknown', code: 'outcome_unknown', message };
}
