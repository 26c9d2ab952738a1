/** One request's caller, read off the SDK's context once; the rest of the gateway never sees the SDK's. */
import { CLIENT_CAPABILITIES_META_KEY, SdkError, SdkErrorCode } from '@modelcontextprotocol/server';
import type { ClientCapabilities, McpServer, ServerContext } from '@modelcontextprotocol/server';
import type { Principal } from '../task/plan.ts';
import type { Leave } from './places.ts';
import type { ProgressToken } from './progress.ts';
import type { RequestState } from './request-state.ts';
import { declaresTasks } from './tasks/index.ts';

/** Where a server instance sits: one HTTP request, one session of a 2025 client over HTTP, or one stdio connection. */
export interface Connection {
  era: 'legacy' | 'modern';
  transport: 'http' | 'http-session' | 'stdio';
  principal: Principal;
  /** On stdio, where no request is seen before it is a call: takes a place among the open ones (M7.2). */
  admit?: () => Promise<Leave>;
}

export interface Caller {
  principal: Principal;
  /** M2.1: this very request declared the Tasks extension. */
  declaresTasks: boolean;
  /** A person can be asked in the midst of this call: a form may be sent, and its answer comes back to this handler. */
  canElicit: boolean;
  /** Of a call that goes on after a person was asked; verified (M3.1). */
  requestState: RequestState | undefined;
  inputResponses: unknown;
  /** M5.1: whether the abort of `signal` for this reason says that the caller no longer waits. */
  abortMeansCancel(reason: unknown): boolean;
  signal: AbortSignal;
  meta: Readonly<Record<string, unknown>>;
  progressToken: ProgressToken | undefined;
  sendProgress(params: { progressToken: ProgressToken; progress: number; message: string }): Promise<void>;
}

export function callerOf(context: ServerContext, connection: Connection, mcp: McpServer): Caller {
  const { mcpReq } = context;
  const meta: Readonly<Record<string, unknown>> = mcpReq._meta ?? {};
  return {
    principal: connection.principal,
    declaresTasks: connection.era === 'modern' && declaresTasks(context),
    canElicit: takesForms(capabilitiesOf(context, connection, mcp)),
    requestState: mcpReq.requestState<RequestState>(),
    inputResponses: mcpReq.inputResponses,
    abortMeansCancel: (reason) => !isOldHttp(connection) || !isConnectionEnd(reason),
    signal: mcpReq.signal,
    meta,
    progressToken: mcpReq._meta?.progressToken,
    sendProgress: (params) => mcpReq.notify({ method: 'notifications/progress', params }),
  };
}

/** There a disconnect or the end of a session aborts too, and neither is a cancel (M5.1). */
const isOldHttp = ({ era, transport }: Connection): boolean => era === 'legacy' && transport !== 'stdio';

const isConnectionEnd = (reason: unknown): boolean =>
  reason instanceof SdkError && reason.code === SdkErrorCode.ConnectionClosed;

/** Those of the request itself; on 2025's stdio and in its sessions those of the connection; without a session none are known. */
function capabilitiesOf(
  { mcpReq }: ServerContext,
  { era }: Connection,
  mcp: McpServer,
): ClientCapabilities | undefined {
  if (era === 'legacy') return mcp.server.getClientCapabilities();
  const envelope = mcpReq.envelope as Record<string, unknown> | undefined;
  return envelope?.[CLIENT_CAPABILITIES_META_KEY] as ClientCapabilities | undefined;
}

/** An empty `elicitation` means forms; one that names modes means those. */
function takesForms(capabilities: ClientCapabilities | undefined): boolean {
  const elicitation = capabilities?.elicitation;
  return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
}
