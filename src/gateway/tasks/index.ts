/**
 * The seam of the Tasks extension `io.modelcontextprotocol/tasks`. This folder holds all that the SDK does not bring for
 * it yet (facts/mcp-sdk.md, 0.1), so that it can go when the SDK does: the methods `tasks/*`, `subscriptions/listen` with
 * `taskIds`, a task as the wire has it, and who declared the extension. The rest of the gateway reaches it through here.
 *
 * Outside is what calls without the extension need all the same: the dispatch of `tools/call` (call-tool.ts), of whose
 * answers a task is one, and questions to people (approval.ts, questions.ts, request-state.ts).
 */
export { declaresTasks, TASKS_EXTENSION } from './extension.ts';
export { registerTaskListen } from './listen.ts';
export { opensStream, withOwnHeader, withOwnName } from './listen-name.ts';
export { TaskListens } from './listens.ts';
export { registerTaskMethods } from './methods.ts';
export { createTaskResult } from './wire-task.ts';
