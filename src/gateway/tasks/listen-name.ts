/**
 * How a `subscriptions/listen` that names `taskIds` gets past the SDK, whose routers answer that method themselves, know
 * the four core kinds alone and drop `taskIds` (facts/mcp-sdk.md, section 4): it goes on under a name of our own, which
 * the SDK serves like any custom method. Envelope, header and era checks, streams, keepalives and aborts stay the SDK's.
 *
 * A listen without `taskIds` is the SDK's, untouched. Once the SDK serves `taskIds`, this file goes.
 */
import { hasTaskClientCapabilityV2 } from '@modelcontextprotocol/ext-tasks/core/v2';
import { isJsonObject } from '../../task/json.ts';
import type { Json, JsonObject } from '../../task/json.ts';

const LISTEN = 'subscriptions/listen';
const METHOD_HEADER = 'mcp-method';

/** Never on the wire. */
export const TASK_LISTEN = 'holdfast/listen';

/** The message under our name where it is a listen for tasks, else as it is. */
export const withOwnName = (message: Json): Json =>
  isTaskListen(message) ? { ...message, method: TASK_LISTEN } : message;

/** The same for an HTTP request: its header names the method too. One that does not fit the body is left to the SDK to refuse. */
export function withOwnHeader(request: Request, message: Json): Request {
  if (!isTaskListen(message) || request.headers.get(METHOD_HEADER) !== LISTEN) return request;
  const headers = new Headers(request.headers);
  headers.set(METHOD_HEADER, TASK_LISTEN);
  // Without its body, which has been read.
  return new Request(request.url, { method: request.method, headers, signal: request.signal });
}

/** Answered by a stream from the beginning. Without the extension it is refused, with the HTTP status that fits. */
export const opensStream = (message: Json): boolean =>
  isTaskListen(message) && hasTaskClientCapabilityV2(message['params']);

function isTaskListen(message: Json): message is JsonObject {
  if (!isJsonObject(message) || message['method'] !== LISTEN || !isJsonObject(message['params']))
    return false;
  const { notifications } = message['params'];
  return isJsonObject(notifications) && notifications['taskIds'] !== undefined;
}
