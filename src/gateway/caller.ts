/** One request's caller, read off the SDK's context once; the rest of the gateway never sees the SDK's. */
import type { ServerContext } from '@modelcontextprotocol/server';
import type { Principal } from '../task/plan.ts';
import type { ProgressToken } from './progress.ts';
import { declaresTasks } from './tasks/extension.ts';

/** Where a server instance sits: one HTTP request, or one stdio connection. */
export interface Connection {
  era: 'legacy' | 'modern';
  transport: 'http' | 'stdio';
  principal: Principal;
}

export interface Caller {
  principal: Principal;
  /** M2.1: this very request declared the Tasks extension. */
  declaresTasks: boolean;
  /** M5.1: the abort of `signal` means that the caller no longer waits. False on legacy HTTP, where a disconnect is not a cancel. */
  abortMeansCancel: boolean;
  signal: AbortSignal;
  meta: Readonly<Record<string, unknown>>;
  progressToken: ProgressToken | undefined;
  sendProgress(params: { progressToken: ProgressToken; progress: number; message: string }): Promise<void>;
}

export function callerOf(context: ServerContext, connection: Connection): Caller {
  const { mcpReq } = context;
  const meta: Readonly<Record<string, unknown>> = mcpReq._meta ?? {};
  return {
    principal: connection.principal,
    declaresTasks: connection.era === 'modern' && declaresTasks(context),
    abortMeansCancel: !(connection.era === 'legacy' && connection.transport === 'http'),
    signal: mcpReq.signal,
    meta,
    progressToken: mcpReq._meta?.progressToken,
    sendProgress: (params) => mcpReq.notify({ method: 'notifications/progress', params }),
  };
}
