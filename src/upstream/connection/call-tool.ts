/**
 * One `tools/call`, and the forms with which a server of 2026-07-28 answers it: they can be shown to nobody, so each is
 * answered as dismissed.
 */
import type { Link } from '../../mcp-client/link.ts';
import type { Reply } from '../../mcp-client/reply.ts';
import { isJsonObject } from '../../task/json.ts';
import type { JsonObject } from '../../task/json.ts';
import type { UpstreamCall, UpstreamReply } from '../upstream.ts';
import type { Connection } from './connection.ts';
import { upstreamReply } from './upstream-reply.ts';

export interface CallParts {
  identity: string;
  clean: (text: string) => string;
  isTask: (link: Link, tool: string) => Promise<boolean>;
}

/** How often a server may ask in the midst of one call. */
const ROUNDS_MAX = 3;

export async function callTool(
  connection: Pick<Connection, 'call'>,
  { identity, clean, isTask }: CallParts,
  { tool, args, meta, headers, signal, onProgress }: UpstreamCall,
): Promise<UpstreamReply> {
  let asTask = false;
  const paramsFor = (more: JsonObject) => async (link: Link) => {
    asTask = await isTask(link, tool);
    return {
      ...{ name: tool, arguments: args, ...more },
      ...(meta !== undefined && { _meta: meta }),
      ...(asTask && { task: {} }),
    };
  };
  const request = { signal, ...(onProgress && { onProgress }), ...(headers && { headers }) };
  const names = () => ({ server: identity, tool, asTask });
  // A server that asked has begun: from then on nothing that is said of a message proves anything about the call.
  let hasBegun = false;
  try {
    let reply = await connection.call(paramsFor({}), request);
    for (let round = 1; round <= ROUNDS_MAX; round += 1) {
      const dismissal = dismissalOf(reply);
      if (dismissal === null) break;
      hasBegun = true;
      reply = await connection.call(paramsFor(dismissal), request);
      if (reply.kind === 'error') return undismissed(clean(reply.error.message));
      if (reply.kind === 'failure') return undismissed(clean(reply.message));
    }
    return upstreamReply(reply, names(), clean);
  } catch (error) {
    // The tool's wish for a task could not be read; nothing was sent of this message.
    const message = clean(error instanceof Error ? error.message : String(error));
    return hasBegun ? undismissed(message) : { kind: 'not_sent', message };
  }
}

const undismissed = (why: string): UpstreamReply => ({
  kind: 'in_doubt',
  message: `a form of the server could not be dismissed: ${why}`,
});

/** What goes back to a server of 2026-07-28 that asks with forms alone; null where it asks nothing, or for other things. */
function dismissalOf(reply: Reply): JsonObject | null {
  if (reply.kind !== 'result' || reply.result.resultType !== 'input_required') return null;
  const { inputRequests, requestState } = reply.result;
  const requests = Object.entries(isJsonObject(inputRequests) ? inputRequests : {});
  if (requests.length === 0) return null;
  if (!requests.every(([, request]) => isJsonObject(request) && request.method === 'elicitation/create'))
    return null;
  return {
    inputResponses: Object.fromEntries(requests.map(([key]) => [key, { action: 'cancel' }])),
    ...(requestState !== undefined && { requestState }),
  };
}
