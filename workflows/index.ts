/** What the workflow bundle exports: each name here is a workflow type (persisted, never renamed). */
export { action } from './action.ts';
