// What `holdfast/testing` publishes: a whole Holdfast for a user's own tests.
export { createTestHoldfast } from './create-test-holdfast.ts';
export type { TestHoldfast, TestHoldfastOptions } from './create-test-holdfast.ts';
export { openTestServer } from './test-server.ts';
export type { TestServer, TestServerKind } from './test-server.ts';
export { rehearsalMarkdown } from './rehearsal/markdown.ts';
export { rehearse } from './rehearsal/rehearse.ts';
export type { RehearseOptions } from './rehearsal/rehearse.ts';
export { rehearseProcedure } from './rehearsal/procedure/rehearse-procedure.ts';
export type { RehearseProcedureOptions } from './rehearsal/procedure/rehearse-procedure.ts';
export type { RehearsalReport, ScenarioReport, StepReport } from './rehearsal/report.ts';
