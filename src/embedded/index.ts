// The Temporal server for one machine: found or fetched, started, and stopped with us. Stands alone.
export { EmbeddedError } from './embedded-error.ts';
export { findTemporal, findTestServer } from './find.ts';
export type { FindOptions } from './find.ts';
export { startEmbeddedTemporal } from './server.ts';
export type { EmbeddedOptions, EmbeddedTemporal } from './server.ts';
