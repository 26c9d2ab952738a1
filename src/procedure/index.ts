/**
 * What a procedure is written with (`holdfast/procedure`). Runs as workflow code: replayed, so it holds no package, no
 * clock and no I/O.
 */
export { procedure } from './procedure.ts';
export type {
  ApprovalRequest,
  ProcedureCode,
  ProcedureHandle,
  ResultReference,
  StepArguments,
  StepResult,
} from './procedure.ts';
export { StepFailed } from './step-failed.ts';
