/** Temporal's side of an attempt: its signal, and a heartbeat dense enough that a cancel is heard within a second (S7.5). */
import { Context } from '@temporalio/activity';
import type { AttemptRuntime } from '../src/operation/deps.ts';

/** The most that may pass between two heartbeats. A cancel travels with the answer to one. */
const HEARTBEAT_MS_MAX = 300;

/** Of an attempt that learns only as it goes what its contract allows. */
export interface StepRuntime extends AttemptRuntime {
  /** For an attempt that a cancel leaves to finish: `signal`, but for a cancel, and for what comes after one (S7.4). */
  finishing: AbortSignal;
}

/**
 * Runs `work` while heartbeating. Work that ends before the first heartbeat is due costs none: each is a durable write
 * of the engine's. A local activity has no heartbeat: its claim lasts as long as its deadlines.
 */
export async function withRuntime<T>(work: (runtime: StepRuntime) => Promise<T>): Promise<T> {
  const context = Context.current();
  const { isLocal, heartbeatTimeoutMs } = context.info;
  const heartbeat = isLocal ? () => undefined : () => context.heartbeat();
  const intervalMs = Math.min(HEARTBEAT_MS_MAX, Math.max(1, (heartbeatTimeoutMs ?? Infinity) / 3));
  const timer = isLocal ? undefined : setInterval(heartbeat, intervalMs);
  try {
    return await work({ signal: context.cancellationSignal, finishing: finishing(context), heartbeat });
  } finally {
    clearInterval(timer);
  }
}

function finishing(context: Context): AbortSignal {
  const { cancellationSignal: signal } = context;
  const finishing = new AbortController();
  const hear = (): void => {
    if (context.cancellationDetails?.cancelRequested !== true) finishing.abort(signal.reason);
  };
  if (signal.aborted) hear();
  else signal.addEventListener('abort', hear, { once: true });
  return finishing.signal;
}
