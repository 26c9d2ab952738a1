/**
 * What a user's handlers are given and what they answer. No I/O here: types and the small constructors of answers.
 */
import type { Failure } from '../task/failure.ts';
import type { Fence } from '../task/claim.ts';
import type { Json, JsonObject } from '../task/json.ts';
import type { Principal } from '../task/plan.ts';
import type { RemoteTaskHandle } from './remote-server.ts';

/** Given to every handler. */
export interface LookContext {
  /** S1.3: pass this to the provider as its idempotency key. */
  operationId: string;
  taskId: string;
  principal: Principal;
  /** Aborts at the attempt's deadline, on cancel where the contract allows it, and when the claim is lost. */
  signal: AbortSignal;
  /** Transactional actions only (S2.8): the open ledger transaction (Kysely). Await nothing else. */
  tx?: unknown;
}

/** Given to `execute` and `rollback`. */
export interface ExecuteContext extends LookContext {
  attempt: number;
  /**
   * `execute`: no earlier execution of this operation can have applied anything. False where that can't be told, and
   * always in a `rollback`.
   */
  isFirstSend: boolean;
  /** `ordinal.attempt.generation`; a store that keeps the highest it has seen refuses a stale writer (S8). */
  fence: Fence;
  /**
   * S8: what the task holds while it works, where its contract names a resource. `fence` is a whole number that grows with
   * each grant, below 2^53: hand it to a store that keeps the highest it has seen and refuses a lower one.
   */
  lease: { resource: string; fence: number } | null;
  /** Says "still at work"; needed only by handlers that run longer than a few seconds without awaiting. */
  heartbeat: () => void;
  /** Throws when the claim is no longer ours. Call it between two calls of one handler (S2.5). */
  assertOwner: () => Promise<void>;
}

export type PreconditionAnswer = { kind: 'holds' } | { kind: 'fails'; reason: string };
export type LookupAnswer<Output> =
  { kind: 'applied'; result: Output } | { kind: 'not_applied' } | { kind: 'unknown'; reason?: string };
export type VerifyAnswer =
  { kind: 'verified' } | { kind: 'mismatch'; reason: string } | { kind: 'not_yet'; reason?: string };

export const holds = (): PreconditionAnswer => ({ kind: 'holds' });
export const fails = (reason: string): PreconditionAnswer => ({ kind: 'fails', reason });
export const applied = <Output>(result: Output): LookupAnswer<Output> => ({ kind: 'applied', result });
export const notApplied = (): LookupAnswer<never> => ({ kind: 'not_applied' });
export const unknown = (reason?: string): LookupAnswer<never> =>
  reason === undefined ? { kind: 'unknown' } : { kind: 'unknown', reason };
export const verified = (): VerifyAnswer => ({ kind: 'verified' });
export const mismatch = (reason: string): VerifyAnswer => ({ kind: 'mismatch', reason });
export const notYet = (reason?: string): VerifyAnswer =>
  reason === undefined ? { kind: 'not_yet' } : { kind: 'not_yet', reason };

const REMOTE_TASK: unique symbol = Symbol.for('holdfast/remoteTask') as never;

/** What `remoteTask` makes. Marked by a symbol, which no JSON has, so that no result is ever taken for one. */
export interface RemoteTaskStarted {
  readonly [REMOTE_TASK]: RemoteTaskHandle;
}

/**
 * Returned by `execute`: the server has taken the request and goes on with it as a task of its own, which is supervised
 * from here on (M8.4, S8.4). `execute` is not called again while that task may be alive.
 */
export const remoteTask = (handle: RemoteTaskHandle): RemoteTaskStarted => ({
  [REMOTE_TASK]: { ...handle },
});

/** The handle in what `execute` returned; null when that is a result. */
export function remoteTaskIn(answer: unknown): RemoteTaskHandle | null {
  if (typeof answer !== 'object' || answer === null) return null;
  return (answer as Partial<RemoteTaskStarted>)[REMOTE_TASK] ?? null;
}

/**
 * Thrown by `execute` or `rollback` to say what is known (S5). Any other exception means: outcome unknown.
 *
 * `notSent` nothing reached the target; `rateLimited` the target said later before applying; `permanent` the target
 * refused for good. Each asserts that nothing was applied: throw none of them when that is a guess.
 */
export class ActionFailure extends Error {
  readonly failure: Failure;
  constructor(failure: Failure) {
    super(failure.message);
    this.name = 'ActionFailure';
    this.failure = failure;
  }
  static notSent(message: string, details?: JsonObject): ActionFailure {
    return new ActionFailure({
      kind: 'notApplied',
      code: 'attempt_failed',
      message,
      ...(details && { details }),
    });
  }
  static rateLimited(message: string, retryAfterMs?: number): ActionFailure {
    return new ActionFailure({
      kind: 'rateLimited',
      code: 'rate_limited',
      message,
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    });
  }
  static permanent(message: string, code = 'permanent_failure', details?: JsonObject): ActionFailure {
    return new ActionFailure({ kind: 'permanent', code, message, ...(details && { details }) });
  }
}

/** The deed behind a promise (architecture.md "What a user writes"). Run as activities: at least once. */
export interface ActionHandlers<Input, Output> {
  precondition?(input: Input, context: LookContext): Promise<PreconditionAnswer>;
  execute(input: Input, context: ExecuteContext): Promise<Output | RemoteTaskStarted>;
  /**
   * Makes the result out of what a completed remote task gave (`content`, `structuredContent`, `isError`), and throws as
   * `execute` does where that is a failure. Must itself change nothing. Without it the given object is the result.
   */
  remoteResult?(
    input: Input,
    given: JsonObject,
    context: LookContext & Pick<ExecuteContext, 'isFirstSend' | 'assertOwner'>,
  ): Promise<Output>;
  /** Was the effect of `context.operationId` applied? Must itself change nothing. */
  lookup?(context: LookContext & { input: Input }): Promise<LookupAnswer<Output>>;
  /** Re-reads the target. Required unless the contract says why there is none (S2.6). */
  verify?(input: Input, result: Output, context: LookContext): Promise<VerifyAnswer>;
  /** The plan of S6.1 for `inBand` and `compensate`; idempotent by `context.operationId` (the rollback's own). */
  rollback?(
    input: Input,
    result: Output,
    context: ExecuteContext & { originalOperationId: string },
  ): Promise<{ remains?: string } | void>;
  /** Re-reads the target after a rollback. Without it `lookup` answering `not_applied` is the proof. */
  verifyRollback?(
    input: Input,
    result: Output,
    context: LookContext & { originalOperationId: string },
  ): Promise<VerifyAnswer>;
}

export type AnyHandlers = ActionHandlers<never, Json>;
