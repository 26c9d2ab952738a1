// What `holdfast/worker` publishes: the composition root of a process that takes work, and its parts.
export { loadConfig } from './config.ts';
export type { Config, LoadConfigOptions } from './config.ts';
export { configurationReference } from './configuration-reference.ts';
export { startWorker } from './create-worker.ts';
export type { HoldfastWorker, WorkerHealth, WorkerOptions } from './create-worker.ts';
export { dataConverterOf } from './data-converter.ts';
export { installDrain } from './drain.ts';
export type { Drain, DrainOptions, DrainStep } from './drain.ts';
export { createLogger } from './logger.ts';
export type { Log, LoggerOptions } from './logger.ts';
export { addSearchAttribute, migrate, SEARCH_ATTRIBUTE_TYPES } from './migrate.ts';
export type { Migrated } from './migrate.ts';
export type { Metrics } from './metrics.ts';
export type { AlertSink } from './outbox-relay.ts';
export { openHoldfast } from './runtime.ts';
export { openUnkeptUpstreams } from './upstreams.ts';
export type { Holdfast, OpenOptions } from './runtime.ts';
