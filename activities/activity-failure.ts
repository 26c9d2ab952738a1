/**
 * What crosses from an activity to the workflow when it has no outcome: the code as `type`, the message, and nothing
 * else. No stack, no cause, no text of a foreign error: each may hold what was sent (S2.10).
 */
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { HoldfastError } from '../src/contract/error.ts';
import type { ErrorCode } from '../src/contract/error.ts';
import type { OperationLog } from '../src/operation/deps.ts';

/** Runs `work`; what it throws becomes an ApplicationFailure, a cancellation stays one. */
export async function asActivity<T>(log: OperationLog | undefined, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CancelledFailure || error instanceof ApplicationFailure) throw error;
    if (error instanceof HoldfastError) throw failureOf(error);
    log?.warn({ error: nameOf(error), at: placeOf(error) }, 'an activity ended with a defect');
    throw failureOf(new HoldfastError('internal_error', `A defect in Holdfast (${nameOf(error)}).`));
  }
}

/** Never retried by the engine: retries belong to the workflow (architecture.md, idea 3). */
function failureOf({ code, message, details }: HoldfastError): ApplicationFailure {
  const failure = ApplicationFailure.create({
    type: code satisfies ErrorCode,
    message,
    nonRetryable: true,
    details: [details],
  });
  failure.stack = `${code}: ${message}`;
  return failure;
}

const nameOf = (error: unknown): string => (error instanceof Error ? error.name : typeof error);

/** The place of a defect, without its message. */
function placeOf(error: unknown): string | undefined {
  return error instanceof Error
    ? error.stack
        ?.split('\n')
        .find((line) => /^\s+at /.test(line))
        ?.trim()
    : undefined;
}
