/** What users of the package write against. Other parts of Holdfast import the files themselves. */
export {
  ActionFailure,
  applied,
  fails,
  holds,
  mismatch,
  notApplied,
  notYet,
  remoteTask,
  unknown,
  verified,
} from './handlers.ts';
export type {
  ActionHandlers,
  ExecuteContext,
  LookContext,
  LookupAnswer,
  PreconditionAnswer,
  RemoteTaskStarted,
  VerifyAnswer,
} from './handlers.ts';
export type { Question } from './asked.ts';
export { classifyFailure, fetchFailure } from './classify-failure.ts';
export { defineAction } from './define-action.ts';
export type {
  ActionContract,
  ActionDefinition,
  ApprovalRule,
  DeadlinesDefinition,
  RetryDefinition,
} from './define-action.ts';
export { defineConfig } from './define-config.ts';
export { defineProcedure } from './define-procedure.ts';
export type { ProcedureContract, ProcedureDefinition } from './define-procedure.ts';
export type { AlertMessage, ConfiguredProcedures, HoldfastConfig, TokenDefinition } from './define-config.ts';
export type { Duration } from './duration.ts';
export { ERROR_CODES, HoldfastError } from './error.ts';
export type { ErrorCode } from './error.ts';
export { implementAction } from './implement-action.ts';
export type { Action } from './implement-action.ts';
export type { RehearsedCall, Rehearsal } from './rehearsal.ts';
export type { RemoteTaskHandle } from './remote-server.ts';
export { sensitive } from './sensitive.ts';
export type { UpstreamDefinition, UpstreamToolDefinition } from './upstream-definition.ts';
