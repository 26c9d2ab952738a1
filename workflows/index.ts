/** What the workflow bundle exports: each name here is a workflow type (persisted, never renamed). */
import { procedureWorkflow } from './procedure.ts';
import * as userProcedures from './user-procedures.ts';

export { action } from './action.ts';
export { lease } from './lease.ts';
export { remoteTask } from './remote-task.ts';
export const procedure = procedureWorkflow(userProcedures);
