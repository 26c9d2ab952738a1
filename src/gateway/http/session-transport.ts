/**
 * The SDK's transport of one 2025 session, with what it lacks: it ends the stream of a POST when each request in it was
 * answered, but nothing answers one that was cancelled (M5.1), and it takes an id that is under way for a new one.
 *
 * Invariants:
 * 1. A request is under way until it was answered or cancelled, or the session ended; not until its reader has gone, for
 *    that is no cancel.
 * 2. The stream of a POST ends when nothing of it is under way.
 * 3. No two requests under way have one id.
 */
import {
  isJSONRPCErrorResponse,
  isJSONRPCResultResponse,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import type { AuthInfo, JSONRPCMessage, RequestId } from '@modelcontextprotocol/server';
import { isJsonObject } from '../../task/json.ts';
import type { Json } from '../../task/json.ts';
import { idInUse } from '../error-mapping.ts';

/** What came with one POST. */
interface Post {
  readonly ids: readonly RequestId[];
  readonly underWay: Set<RequestId>;
  readonly cancelled: RequestId[];
  settle(): void;
}

export interface Exchange {
  response: Response;
  /** Nothing that came with the request is under way. */
  settled: Promise<void>;
}

export class SessionTransport extends WebStandardStreamableHTTPServerTransport {
  /** Each under all its ids until nothing of it is under way. */
  readonly #posts = new Map<RequestId, Post>();

  /** As `handleRequest`, of a body that was read already. */
  async exchange(
    request: Request,
    { parsedBody, authInfo }: { parsedBody?: Json; authInfo?: AuthInfo } = {},
  ): Promise<Exchange> {
    const messages = (Array.isArray(parsedBody) ? parsedBody : [parsedBody]).filter(isJsonObject);
    const ids = messages.flatMap(({ method, id }) => (method !== undefined && isId(id) ? [id] : []));
    const twice = ids.find((id, index) => this.#posts.has(id) || ids.indexOf(id) < index);
    if (twice !== undefined) {
      const { status, body } = idInUse(twice);
      return { response: Response.json(body, { status }), settled: Promise.resolve() };
    }
    const { post, settled } = this.#begin(ids);
    const response = await super.handleRequest(request, {
      ...(parsedBody !== undefined && { parsedBody }),
      ...(authInfo && { authInfo }),
    });
    const wasTaken = response.status === 202 || isStream(response);
    if (!wasTaken) this.#end(post);
    for (const { method, params } of messages)
      if (wasTaken && method === 'notifications/cancelled' && isJsonObject(params) && isId(params.requestId))
        this.#over(params.requestId, 'cancelled');
    return { response, settled };
  }

  override async send(message: JSONRPCMessage, options?: { relatedRequestId?: RequestId }): Promise<void> {
    await super.send(message, options);
    const isAnswer = isJSONRPCResultResponse(message) || isJSONRPCErrorResponse(message);
    if (isAnswer && message.id !== undefined) this.#over(message.id, 'answered');
  }

  override async close(): Promise<void> {
    await super.close();
    for (const post of this.#posts.values()) this.#end(post);
  }

  #begin(ids: readonly RequestId[]): { post: Post; settled: Promise<void> } {
    let settle = (): void => undefined;
    const settled = new Promise<void>((resolve) => (settle = resolve));
    const post: Post = { ids, underWay: new Set(ids), cancelled: [], settle };
    for (const id of ids) this.#posts.set(id, post);
    if (ids.length === 0) settle();
    return { post, settled };
  }

  #over(id: RequestId, how: 'answered' | 'cancelled'): void {
    const post = this.#posts.get(id);
    if (!post?.underWay.delete(id)) return;
    if (how === 'cancelled') post.cancelled.push(id);
    if (post.underWay.size === 0) this.#end(post);
  }

  #end(post: Post): void {
    for (const id of post.ids) this.#posts.delete(id);
    for (const id of post.cancelled) {
      this.closeSSEStream(id);
      // With its stream closed nobody is sent this: the SDK's transport forgets an id when it is answered, and not before.
      void super.send({ jsonrpc: '2.0', id, error: { code: 0, message: 'cancelled' } });
    }
    post.settle();
  }
}

const isId = (id: Json | undefined): id is RequestId => typeof id === 'string' || typeof id === 'number';

const isStream = (response: Response): boolean =>
  response.headers.get('content-type')?.startsWith('text/event-stream') === true;
