/**
 * One connection to a server: the SDK's client for the handshake, our dispatch for the requests, the Tasks extension's
 * own session for reading, answering and cancelling tasks.
 */
import {
  Client,
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  PROTOCOL_VERSION_META_KEY,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import type { ClientCapabilities, ServerCapabilities, Transport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { createTaskSessionFromClient } from '@modelcontextprotocol/ext-tasks/client';
import type { TaskEnabledSession } from '@modelcontextprotocol/ext-tasks/client';
import { TASKS_EXTENSION_ID_V2 } from '@modelcontextprotocol/ext-tasks/core/v2';
import { fetchFailure } from '../contract/classify-failure.ts';
import { ActionFailure } from '../contract/handlers.ts';
import type { JsonObject } from '../task/json.ts';
import { NEVER } from '../contract/clock.ts';
import { createDispatch } from './dispatch.ts';
import type { Dispatch, RequestOptions } from './dispatch.ts';
import type { FailedRequest, Reply } from './reply.ts';

/** Where the server is. `open` is for transports with OAuth, proxies and the like: it makes a new one each time. */
export type ServerAddress =
  | { url: string | URL; headers?: Readonly<Record<string, string>>; answerBytesMax?: number }
  | { command: string; args?: string[]; env?: Record<string, string>; cwd?: string }
  | { open: () => Transport };

export interface LinkOptions {
  server: ServerAddress;
  info: { name: string; version: string };
  /** Forms are answered by this program (`task.answer`); `with tasks`: not those of 2025-11-25, which come in mid-call. */
  answersInput: boolean | 'with tasks';
  /** How long the handshake may take. */
  openMs: number;
  /** Ends the handshake early. */
  signal?: AbortSignal;
  /** How much of that the server may take to say whether it speaks 2026-07-28. Default: all of it. */
  probeMs?: number;
  /** The server is known not to speak 2026-07-28, and is not asked. */
  isLegacy?: boolean;
  /** False: tasks are read by plain requests; the session reads the server's tools when it is made. Default: true. */
  hasTaskSession?: boolean;
  /** Told whenever the server says that its tools are others; a server of 2026-07-28 is asked to. */
  onToolsChanged?: () => void;
}

export interface Link {
  readonly era: 'modern' | 'legacy';
  /**
   * What stands between two requests: nothing (2026-07-28 over HTTP), a session that the server may forget (2025-11-25 over
   * HTTP), or a pipe that all requests share (stdio).
   */
  readonly between: 'nothing' | 'session' | 'pipe';
  /** Null: the server does not speak the Tasks extension; its tools `task_get` and the like are used. */
  readonly tasks: TaskEnabledSession | null;
  /** As the server told them; undefined where it told none. */
  readonly capabilities?: ServerCapabilities | undefined;
  readonly isOpen: boolean;
  readonly isIdle: boolean;
  readonly heard: number;
  nextId(): string;
  request(method: string, params: JsonObject, options: RequestOptions, id?: string): Promise<Reply>;
  close(): Promise<void>;
}

/** Why a request of the Tasks session brought no answer; the session wraps it. */
export class RequestFailed extends Error {
  readonly reply: FailedRequest | { kind: 'cancelled' };
  constructor(reply: FailedRequest | { kind: 'cancelled' }) {
    super(reply.kind === 'failure' ? reply.message : 'cancelled');
    this.reply = reply;
  }
}

/** Rejects with what the handshake met. */
export async function openLink(options: LinkOptions): Promise<Link> {
  const capabilities: ClientCapabilities = {
    extensions: { [TASKS_EXTENSION_ID_V2]: {} },
    ...(options.answersInput && { elicitation: {} }),
  };
  const { elicitation: _elicitation, ...withoutForms } = capabilities;
  const client = new Client(options.info, {
    // What 2025's `initialize` declares; 2026 declares with each request.
    capabilities: options.answersInput === true ? capabilities : withoutForms,
    versionNegotiation: options.isLegacy
      ? { mode: 'legacy' }
      : { mode: 'auto', probe: { timeoutMs: options.probeMs ?? options.openMs } },
  });
  // 2025 asks in the midst of a call; left open there, the question comes back with the task (M3.1).
  if (options.answersInput === true)
    client.setRequestHandler('elicitation/create', () => Promise.resolve({ action: 'cancel' }));
  const { onToolsChanged } = options;
  if (onToolsChanged) client.setNotificationHandler('notifications/tools/list_changed', onToolsChanged);
  const transport = openTransport(options.server);
  const stop = () => void transport.close().catch(() => undefined);
  options.signal?.addEventListener('abort', stop, { once: true });
  try {
    options.signal?.throwIfAborted();
    await client.connect(transport, { timeout: options.openMs });
  } catch (error) {
    await client.close().catch(() => undefined);
    throw error;
  } finally {
    options.signal?.removeEventListener('abort', stop);
  }
  const link = linkOver(client, transport, options, capabilities);
  if (onToolsChanged && link.era === 'modern' && link.capabilities?.tools?.listChanged === true)
    client.listen({ toolsListChanged: true }).catch(() => undefined); // it is a hint, never the truth
  return link;
}

function linkOver(
  client: Client,
  transport: Transport,
  { info, hasTaskSession = true }: LinkOptions,
  capabilities: ClientCapabilities,
): Link {
  const era = client.getProtocolEra() === 'modern' ? 'modern' : 'legacy';
  const isHttp = transport.hasPerRequestStream === true;
  const between = !isHttp ? 'pipe' : era === 'modern' ? 'nothing' : 'session';
  const dispatch = createDispatch(transport, {
    closesToCancel: between === 'nothing',
    inSession: between === 'session',
  });
  const framing = {
    protocolVersion: client.getNegotiatedProtocolVersion() ?? '',
    clientInfo: info,
    clientCapabilities: capabilities as JsonObject,
  };
  const framed = (params: JsonObject): JsonObject => {
    const meta = params._meta as JsonObject | undefined;
    if (era === 'legacy') return params;
    const envelope = {
      [PROTOCOL_VERSION_META_KEY]: framing.protocolVersion,
      [CLIENT_INFO_META_KEY]: framing.clientInfo,
      [CLIENT_CAPABILITIES_META_KEY]: framing.clientCapabilities,
    };
    return { ...params, _meta: { ...meta, ...envelope } };
  };
  const hasTasks =
    hasTaskSession &&
    era === 'modern' &&
    client.getServerCapabilities()?.extensions?.[TASKS_EXTENSION_ID_V2] !== undefined;
  const tasks = hasTasks ? taskSession(client, dispatch, framing) : null;
  return {
    era,
    between,
    tasks,
    capabilities: client.getServerCapabilities(),
    get isOpen() {
      return dispatch.isOpen;
    },
    get isIdle() {
      return dispatch.isIdle;
    },
    get heard() {
      return dispatch.heard;
    },
    nextId: () => dispatch.nextId(),
    request: (method, params, options, id) => dispatch.request(method, framed(params), options, id),
    async close() {
      await tasks?.close();
      await client.close();
    },
  };
}

function taskSession(
  client: Client,
  dispatch: Dispatch,
  framing: { protocolVersion: string; clientInfo: LinkOptions['info']; clientCapabilities: JsonObject },
): TaskEnabledSession {
  return createTaskSessionFromClient(client, {
    endpointId: 'holdfast/mcp-client',
    v2RequestFraming: framing,
    // The session has framed it.
    rawDispatch: async (request, { signal } = {}) => {
      const { method, params } = request as { method: string; params: JsonObject };
      const reply = await dispatch.request(method, params, { signal: signal ?? NEVER });
      if (reply.kind === 'result' || reply.kind === 'error') return reply as never;
      throw new RequestFailed(reply);
    },
  });
}

function openTransport(server: ServerAddress): Transport {
  if ('open' in server) return server.open();
  if ('command' in server) return new StdioClientTransport({ ...server, stderr: 'inherit' });
  return new StreamableHTTPClientTransport(new URL(server.url), {
    // No redirect is followed: what fails after the first request must not look as if nothing was sent.
    requestInit: { headers: { ...server.headers }, redirect: 'manual' },
    fetch: (url, init) => fetchHearingLater(url, init, server.answerBytesMax),
    // No `Last-Event-ID` (M6.3): a broken stream is a lost request.
    reconnectionOptions: {
      maxRetries: 0,
      initialReconnectionDelay: 1,
      maxReconnectionDelay: 1,
      reconnectionDelayGrowFactor: 1,
    },
  });
}

/** The transport keeps no headers of a refusal; `Retry-After` is one that counts. */
async function fetchHearingLater(
  url: string | URL,
  init?: RequestInit,
  bytesMax = Number.POSITIVE_INFINITY,
): Promise<Response> {
  const response = await fetch(url, init);
  const failure = fetchFailure(response);
  if (failure?.kind !== 'rateLimited')
    return init?.method === 'POST' ? bounded(response, bytesMax) : response;
  await response.body?.cancel();
  throw new ActionFailure(failure);
}

/** Its body breaks off beyond the bound, as one of a lost connection does. */
function bounded(response: Response, bytesMax: number): Response {
  if (response.body === null || bytesMax === Number.POSITIVE_INFINITY) return response;
  let bytes = 0;
  const body = response.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        bytes += chunk.byteLength;
        if (bytes > bytesMax) controller.error(new Error(`the response is larger than ${bytesMax} bytes`));
        else controller.enqueue(chunk);
      },
    }),
  );
  const { status, statusText, headers } = response;
  return new Response(body, { status, statusText, headers });
}
