/** The package's root: what a user's actions, handlers and configuration are written with. */
export * from './contract/index.ts';
export type { Failure, FailureKind } from './task/failure.ts';
export type { Json, JsonObject } from './task/json.ts';
export type { EffectClass, Plan, Principal, RollbackKind } from './task/plan.ts';
