/** `/mcp`: the token, then the principal's limits, then the body within its bounds, then the SDK. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, isJsonContentType } from '@modelcontextprotocol/server';
import type { AuthInfo, McpHttpHandler, McpServerFactory } from '@modelcontextprotocol/server';
import { isJsonObject } from '../../task/json.ts';
import type { Json } from '../../task/json.ts';
import type { Principal } from '../../task/plan.ts';
import type { Admission } from '../admission.ts';
import type { Authenticate } from '../auth/authenticate.ts';
import { authInfoOf } from '../auth/auth-info.ts';
import { encodedBody, httpMessageRefusal, shuttingDown, unknownSession } from '../error-mapping.ts';
import type { HttpRefusal } from '../error-mapping.ts';
import type { GatewayMetrics } from '../metrics.ts';
import { sdkErrorLogger } from '../sdk-errors.ts';
import { opensStream, withOwnHeader, withOwnName } from '../tasks/index.ts';
import { readBody } from './body.ts';
import { withFlowControl } from './flow-control.ts';
import type { FlowParts } from './flow-control.ts';
import { sendJson } from './send-json.ts';
import { createSessions, isLegacyInitialize, isModern } from './sessions.ts';
import type { Session, SessionFace, SessionParts, Sessions } from './sessions.ts';
import { Visit } from './visit.ts';

export interface McpRouteParts extends FlowParts {
  /** The principal comes as `authInfo.extra.principal`. */
  factory: McpServerFactory;
  sessionServerFor: SessionParts['serverFor'];
  /** False for tools that answer at once, if only with a task or -32021, whose HTTP status is then their own (400). */
  mayBlock: (tool: string) => boolean;
  authenticate: Authenticate;
  admission: Admission;
  metrics: GatewayMetrics;
  isClosing: () => boolean;
}

export interface McpRoute {
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** Cuts what is still open. */
  close(): Promise<void>;
}

export function createMcpRoute(parts: McpRouteParts): McpRoute {
  const node = {
    maxRequestBodySize: parts.limits.messageBytesMax,
    onerror: sdkErrorLogger(parts.log, 'http'),
  };
  const options = { ...node, keepAliveMs: parts.limits.keepAliveMs };
  const mcp = {
    auto: createMcpHandler(parts.factory, options),
    stream: createMcpHandler(parts.factory, { ...options, responseMode: 'sse' }),
  };
  const { sessionServerFor: serverFor, limits, clock } = parts;
  const sessions = createSessions({ serverFor, limits, clock });
  return {
    handle: (request, response) => serveMcp(parts, { ...mcp, sessions, node }, request, response),
    async close() {
      await Promise.all([mcp.auto.close(), mcp.stream.close(), sessions.close()]);
    },
  };
}

interface McpHandlers {
  /** One JSON body, or a stream from the first notification on. */
  auto: McpHttpHandler;
  /** A stream from the beginning: for what may take longer than proxies wait (M6.2). */
  stream: McpHttpHandler;
  /** 2025's clients that keep one. */
  sessions: Sessions;
  /** The same for every request. */
  node: NonNullable<Parameters<typeof toNodeHandler>[1]>;
}

async function serveMcp(
  parts: McpRouteParts,
  mcp: McpHandlers,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const visit = new Visit(parts.admission, response);
  if (parts.isClosing()) return refuse(response, shuttingDown());
  const authenticated = await parts.authenticate(request.headers.authorization);
  if (!authenticated.ok) return refuse(response, authenticated.refusal);
  const { principal, expiresAt } = authenticated;
  const authInfo = authInfoOf(principal, { scopes: [], expiresAt });
  const contentType = request.headers['content-type'];
  const serve = (handler: SessionFace, body?: Json) =>
    forward({ parts, node: mcp.node, handler, authInfo }, request, response, body);
  const sessionId = singleHeader(request, 'mcp-session-id');
  // No body, or none of JSON: the SDK answers 405 and 415.
  if (request.method !== 'POST' || !isJsonContentType(contentType)) {
    if (sessionId === null) return serve(mcp.auto);
    const session = mcp.sessions.find(sessionId, principal);
    return session ? session.during('stream', (face) => serve(face)) : refuse(response, unknownSession());
  }
  const refused = await visit.arrive(principal);
  if (refused) return refuse(response, refused);
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') return refuse(response, encodedBody());
  const { messageBytesMax, messageDepthMax } = parts.limits;
  const body = await readBody(request, parts.limits);
  switch (body.kind) {
    case 'message': {
      const { value } = body;
      const isSessions = sessionId !== null && !isModern(value);
      const known = isSessions ? mcp.sessions.find(sessionId, principal) : null;
      const tooMany = await visit.begin(principal, value, known ? 'end' : 'response');
      if (tooMany) return refuse(response, tooMany);
      if (known) return known.during('call', (face) => serve(face, value)).finally(() => visit.end());
      if (isSessions) return refuse(response, unknownSession());
      const opened = await openFor(mcp, value, principal);
      if (opened) return opened.during('call', (face) => serve(face, value));
      const tool = calledTool(value);
      const isStream = (tool !== null && parts.mayBlock(tool)) || opensStream(value);
      return serve(isStream ? mcp.stream : mcp.auto, value);
    }
    case 'gone':
      return;
    case 'inexact':
      return refuse(
        response,
        httpMessageRefusal(body.kind, { id: body.id, limit: 0, path: body.issue.path }),
      );
    case 'too_deep':
      parts.metrics.refused('messageDepthMax');
      return refuse(response, httpMessageRefusal(body.kind, { id: null, limit: messageDepthMax }));
    case 'body_too_large':
      parts.metrics.refused('messageBytesMax');
      return refuse(response, httpMessageRefusal(body.kind, { id: null, limit: messageBytesMax }));
    case 'not_json':
      return refuse(response, httpMessageRefusal(body.kind, { id: null, limit: messageBytesMax }));
  }
}

const openFor = (
  { sessions }: McpHandlers,
  message: Json,
  principal: Principal,
): Promise<Session | null> | null => (isLegacyInitialize(message) ? sessions.open(principal) : null);

function singleHeader(request: IncomingMessage, name: string): string | null {
  const value = request.headers[name];
  return typeof value === 'string' ? value : null;
}

interface Forwarding {
  parts: McpRouteParts;
  node: McpHandlers['node'];
  handler: SessionFace;
  authInfo: AuthInfo;
}

function forward(
  { parts, node, handler, authInfo }: Forwarding,
  request: IncomingMessage,
  response: ServerResponse,
  body?: Json,
): Promise<void> {
  const serve = (web: Request): Promise<Response> =>
    body === undefined
      ? handler.fetch(web, { authInfo })
      : handler.fetch(withOwnHeader(web, body), { authInfo, parsedBody: withOwnName(body) });
  const face = { fetch: async (web: Request) => withFlowControl(await serve(web), response, parts) };
  return toNodeHandler(face, node)(request as NodeRequest, response, body);
}

/** The SDK types its request with `exactOptionalPropertyTypes` off. */
type NodeRequest = Parameters<ReturnType<typeof toNodeHandler>>[0];

function calledTool(body: Json): string | null {
  if (!isJsonObject(body) || body.method !== 'tools/call') return null;
  const name = isJsonObject(body.params) ? body.params.name : null;
  return typeof name === 'string' ? name : '';
}

const refuse = (response: ServerResponse, { status, headers, body }: HttpRefusal): void =>
  sendJson(response, status, body, headers);
