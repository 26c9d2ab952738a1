/** Temporal's side of an attempt: its signal, and a heartbeat dense enough that a cancel is heard within a second (S7.5). */
import { Context } from '@temporalio/activity';
import type { AttemptRuntime } from '../src/operation/deps.ts';

/** The most that may pass between two heartbeats. A cancel travels with the answer to one. */
const HEARTBEAT_MS_MAX = 300;

/**
 * Runs `work` while heartbeating. Work that ends before the first heartbeat is due costs none: each is a durable write
 * of the engine's. A local activity has no heartbeat: its claim lasts as long as its deadlines.
 */
export async function withRuntime<T>(work: (runtime: AttemptRuntime) => Promise<T>): Promise<T> {
  const context = Context.current();
  const { isLocal, heartbeatTimeoutMs } = context.info;
  const heartbeat = isLocal ? () => undefined : () => context.heartbeat();
  const intervalMs = Math.min(HEARTBEAT_MS_MAX, Math.max(1, (heartbeatTimeoutMs ?? Infinity) / 3));
  const timer = isLocal ? undefined : setInterval(heartbeat, intervalMs);
  try {
    return await work({ signal: context.cancellationSignal, heartbeat });
  } finally {
    clearInterval(timer);
  }
}
