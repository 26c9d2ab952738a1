/**
 * Requests under the SDK's client, which refuses `resultType: "task"` and never tells that a response stream has broken.
 *
 * It owns the requests it sent, by ids of its own that are never used twice; all else goes on to the SDK's client.
 *
 * Invariants:
 * 1. A request has one end: an answer, a failure or its cancel. Whatever comes under its id afterwards is ignored (M5.5).
 * 2. A stream that ends without the answer is a lost request at once, not after a timeout. Nothing is resumed.
 * 3. Cancelling says so the way the transport has: modern HTTP closes the response stream and POSTs nothing; legacy HTTP
 *    and stdio send `notifications/cancelled`.
 */
import { randomUUID } from 'node:crypto';
import { SdkError, SdkErrorCode, SUBSCRIPTION_ID_META_KEY } from '@modelcontextprotocol/client';
import type { Transport } from '@modelcontextprotocol/client';
import type { JsonObject } from '../task/json.ts';
import { lost, replyOfSendError } from './reply.ts';
import type { Reply, RpcError } from './reply.ts';

export interface WireNotification {
  method: string;
  params: JsonObject;
}

export interface RequestOptions {
  signal: AbortSignal;
  /** Progress of this request alone; a token is sent only with it. */
  onProgress?: (params: { progress: number; total?: number; message?: string }) => void;
  /** What comes over this request as a subscription. */
  onNotification?: (notification: WireNotification) => void;
  /** HTTP: besides the transport's own, which they never replace. */
  headers?: Readonly<Record<string, string>>;
}

export interface Dispatch {
  /** The id that `request` sends next, which is also a subscription's. */
  nextId(): string;
  /** Never rejects. */
  request(method: string, params: JsonObject, options: RequestOptions, id?: string): Promise<Reply>;
  /** False once the transport has closed by itself or by us, or was found to take nothing more. */
  readonly isOpen: boolean;
  /** No request is under way. */
  readonly isIdle: boolean;
  /** Messages received so far, of whatever kind: one that grows is no silent connection. */
  readonly heard: number;
}

interface Pending {
  settle(reply: Reply): void;
  options: RequestOptions;
}

/** `closesToCancel`: 2026-07-28 over HTTP. `inSession`: 2025-11-25 over HTTP, whose server may have forgotten the session. */
export function createDispatch(
  transport: Transport,
  { closesToCancel, inSession = false }: { closesToCancel: boolean; inSession?: boolean },
): Dispatch {
  const prefix = `hf-${randomUUID()}-`;
  const pending = new Map<string, Pending>();
  const { onmessage, onclose } = transport;
  let [sent, heard, isOpen] = [0, 0, true];
  transport.onmessage = (message, extra) => {
    heard += 1;
    if (!receive(message as WireMessage, pending, prefix)) onmessage?.call(transport, message, extra);
  };
  transport.onclose = () => {
    isOpen = false;
    for (const { settle } of [...pending.values()]) settle(lost('the connection closed'));
    onclose?.call(transport);
  };
  const nextId = () => `${prefix}${(sent += 1)}`;
  return {
    nextId,
    get isOpen() {
      return isOpen;
    },
    get isIdle() {
      return pending.size === 0;
    },
    get heard() {
      return heard;
    },
    request: (method, params, options, id = nextId()) =>
      new Promise((resolve) => {
        const { signal } = options;
        const stream = new AbortController();
        const settle = (reply: Reply): void => {
          if (!pending.delete(id)) return;
          signal.removeEventListener('abort', cancel);
          resolve(reply);
        };
        const cancel = (): void => {
          settle({ kind: 'cancelled' });
          if (!closesToCancel) sendCancel(transport, id, signal.reason);
          stream.abort();
        };
        pending.set(id, { settle, options });
        if (signal.aborted) return settle({ kind: 'cancelled' });
        if (!isOpen) return settle(CLOSED);
        signal.addEventListener('abort', cancel, { once: true });
        const { headers } = options;
        const sending = { requestSignal: stream.signal, ...(headers && { headers }) };
        const refused = (error: unknown): void => {
          // It ends just now: the next request must not meet it, while answers to those before may still come.
          if (error instanceof SdkError && error.code === SdkErrorCode.NotConnected) isOpen = false;
          settle(replyOfSendError(error, inSession));
        };
        send(transport, { id, method, params: withToken(params, id, options) }, sending, settle, refused);
      }),
  };
}

const CLOSED: Reply = { kind: 'failure', failure: 'not_sent', message: 'the connection is closed' };

/** Whether the message was about a request of ours, open or over. */
function receive(message: WireMessage, pending: ReadonlyMap<string, Pending>, prefix: string): boolean {
  const { method, id, params = {}, error, result = {} } = message;
  const subject = method === undefined ? id : id === undefined ? subjectOf(method, params) : undefined;
  if (typeof subject !== 'string' || !subject.startsWith(prefix)) return false;
  const request = pending.get(subject);
  if (method !== undefined) deliver(request, method, params);
  else request?.settle(error ? { kind: 'error', error } : { kind: 'result', result });
  return true;
}

function send(
  transport: Transport,
  request: { id: string; method: string; params: JsonObject },
  options: { requestSignal: AbortSignal; headers?: Readonly<Record<string, string>> },
  settle: (reply: Reply) => void,
  refused: (error: unknown) => void,
): void {
  const onRequestStreamEnd = () => settle(lost('the response stream ended without the response'));
  const message = { jsonrpc: '2.0' as const, ...request };
  Promise.resolve()
    .then(() => transport.send(message, { ...options, onRequestStreamEnd }))
    .catch(refused);
}

interface WireMessage {
  id?: string | number | null;
  method?: string;
  params?: JsonObject;
  result?: JsonObject;
  error?: RpcError;
}

/** The id of the request that a notification is about. */
function subjectOf(method: string, params: JsonObject): unknown {
  if (method === 'notifications/progress') return params.progressToken;
  if (method === 'notifications/cancelled') return params.requestId;
  return (params._meta as JsonObject | undefined)?.[SUBSCRIPTION_ID_META_KEY];
}

function deliver(request: Pending | undefined, method: string, params: JsonObject): void {
  if (request === undefined) return;
  const { options, settle } = request;
  if (method === 'notifications/progress') {
    if (typeof params.progress === 'number') options.onProgress?.(params as never);
  } else if (method === 'notifications/cancelled') settle(lost('the server ended the subscription'));
  else options.onNotification?.({ method, params });
}

function withToken(params: JsonObject, id: string, { onProgress }: RequestOptions): JsonObject {
  if (onProgress === undefined) return params;
  return { ...params, _meta: { ...(params._meta as JsonObject | undefined), progressToken: id } };
}

function sendCancel(transport: Transport, requestId: string, reason: unknown): void {
  const params = { requestId, reason: String(reason) };
  Promise.resolve()
    .then(() => transport.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params }))
    .catch(() => undefined); // nobody is there to hear it
}
