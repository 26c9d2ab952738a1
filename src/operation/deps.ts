/** What the operation protocol is given from outside. It knows no Temporal (architecture.md, idea 5). */
import type { ActionContract } from '../contract/define-action.ts';
import type { AnyHandlers } from '../contract/handlers.ts';
import type { RemoteServers } from '../contract/remote-server.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { FaultPoints } from './faults.ts';
import type { CallAnswer } from './handler-call.ts';

/** Where diagnostics go; pino fits. Fields and messages hold no argument, no result and no error text of a handler. */
export interface OperationLog {
  warn(fields: Record<string, unknown>, message: string): void;
}

export type HandlerName =
  'precondition' | 'execute' | 'remoteResult' | 'lookup' | 'verify' | 'rollback' | 'verifyRollback';

export interface HandlerCall {
  handler: HandlerName;
  action: string;
  operationId: string;
  taskId: string;
  attempt: number;
}

/** Runs one call of a handler where it can be watched, and answers what it answered. */
export type HandlerTrace = <T>(
  about: HandlerCall,
  call: () => Promise<CallAnswer<T>>,
) => Promise<CallAnswer<T>>;

export interface OperationDeps {
  ledger: Ledger;
  handlers: AnyHandlers;
  /** Its output schema checks what handlers return. Without it any JSON is taken. */
  contract?: ActionContract;
  /** Where the result of a remote task is fetched again that the ledger does not keep. */
  remotes?: RemoteServers;
  faults?: FaultPoints;
  log?: OperationLog;
  /** Absent: nobody watches. */
  trace?: HandlerTrace;
}

/** The calling activity, or whatever else runs the attempt. */
export interface AttemptRuntime {
  /** Aborts on cancel (where the contract allows it), loss of the worker's claim on the work, and shutdown. */
  signal: AbortSignal;
  heartbeat: () => void;
}
