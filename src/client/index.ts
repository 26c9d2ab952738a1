// What `holdfast/client` publishes: tasks from any program that reaches Temporal and the ledger.
export { deriveHmacKey, parseEncryptionKeys } from './encryption-keys.ts';
export type { EncryptionKey } from './encryption-keys.ts';
export { createHints } from './hints.ts';
export type { Hint, HintListener, Hints } from './hints.ts';
export { openPostgresHints } from './postgres-hints.ts';
export type { HintBus, PostgresHintsOptions } from './postgres-hints.ts';
export { HoldfastClient } from './holdfast-client.ts';
export type { HoldfastClientOptions } from './holdfast-client.ts';
export { EncryptionCodec } from './payload-codec.ts';
export type { Comparison, Coverage, StandingRule } from '../contract/standing-rule.ts';
export type { RuleInput } from './standing-rulebook.ts';
export type * from './task-client.ts';
