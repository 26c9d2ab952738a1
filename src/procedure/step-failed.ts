import type { Json, JsonObject } from '../task/json.ts';
import type { TaskError, TerminalCause } from '../task/outcome.ts';

/**
 * A step, approval or child that did not come about: refused, rejected, expired, failed or undone. A procedure that does
 * not catch it fails with it, and what was committed is undone, newest first.
 */
export class StepFailed extends Error {
  override readonly name = 'StepFailed';
  /** The step's whole name, `stepId` or `stepId#n`, behind those of the children it is in. */
  readonly step: string;
  /** Why, as tasks end: `approval_rejected`, `approval_expired`, `precondition_failed`, `permanent_failure`, … */
  override readonly cause: TerminalCause;
  /** The handler's own code, or one of docs/errors.md. */
  readonly code: string;
  readonly details: JsonObject;

  constructor(step: string, cause: TerminalCause, error: TaskError) {
    super(error.message);
    this.step = step;
    this.cause = cause;
    this.code = error.code;
    this.details = error.details ?? {};
  }

  /** How the failure stands in the journal. */
  toTaskError(): TaskError {
    const details: Record<string, Json> = { ...this.details, step: this.step };
    return { code: this.code, message: `Step ${this.step}: ${this.message}`, details };
  }
}
