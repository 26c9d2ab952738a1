/**
 * Writing down what is already known. Once a handler has answered, its answer must not be lost to a ledger that is away
 * for a moment: the write is repeated. Each is guarded by the claim, and the ledger answers a repeat as it did the first.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { HoldfastError } from '../contract/error.ts';

/** Pauses before each repeat; together they fit into the margin of the attempt's budget. */
const REPEAT_AFTER_MS = [50, 200, 800, 2_000];

export async function persist<T>(write: () => Promise<T>): Promise<T> {
  for (const pauseMs of REPEAT_AFTER_MS) {
    try {
      return await write();
    } catch (error) {
      if (error instanceof HoldfastError && !error.retryable) throw error;
      await sleep(pauseMs);
    }
  }
  return write();
}
