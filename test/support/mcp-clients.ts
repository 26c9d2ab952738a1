/** The SDKs' own clients, connected over HTTP or stdio: v2 on 2026-07-28, v2 as it comes (2025-11-25), and v1. */
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { ClientCapabilities } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as OldStdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { StreamableHTTPClientTransport as OldHttpClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { GatewayLimits } from '../../src/gateway/index.ts';

export const TASKS = 'io.modelcontextprotocol/tasks';
export const TASKS_CAPABILITIES: ClientCapabilities = { extensions: { [TASKS]: {} } };

/** Where the gateway is: a URL with its token, or the limits of one to be started on stdio. */
export type Place =
  | { transport: 'http'; url: string; token?: string }
  | { transport: 'stdio'; limits?: Partial<GatewayLimits> };

export interface ToolAnswer {
  content: { type: string; text?: string }[];
  structuredContent?: Record<string, unknown>;
  isError?: boolean;
  _meta?: Record<string, unknown>;
}

export interface CallOptions {
  signal?: AbortSignal;
  onprogress?: (progress: { progress: number; message?: string | undefined }) => void;
  meta?: Record<string, unknown>;
}

export interface ListedTool {
  name: string;
  inputSchema: object;
  annotations?: object;
}

/** What a test does with any of the clients. */
export interface TestClient {
  listTools(): Promise<ListedTool[]>;
  callTool(name: string, args: Record<string, unknown>, options?: CallOptions): Promise<ToolAnswer>;
  close(): Promise<void>;
}

/** Who sits before a client that takes forms. */
export type Person = (question: string) => {
  action: 'accept' | 'decline' | 'cancel';
  content?: Record<string, string>;
};

export const stdioCommand = (limits: Partial<GatewayLimits> = {}) => ({
  command: process.execPath,
  args: [
    '--experimental-strip-types',
    '--disable-warning=ExperimentalWarning',
    join(import.meta.dirname, 'stdio-gateway.ts'),
    JSON.stringify(limits),
  ],
});

const headers = (token: string | undefined) => ({
  requestInit: { headers: { ...(token && { authorization: `Bearer ${token}` }) } },
});

export async function connectV2(
  place: Place,
  era: 'modern' | 'legacy',
  capabilities: ClientCapabilities = {},
  person?: Person,
): Promise<Client> {
  const client = new Client(
    { name: 'test', version: '1' },
    {
      capabilities: { ...capabilities, ...(person && { elicitation: {} }) },
      ...(era === 'modern' && { versionNegotiation: { mode: 'auto' } }),
    },
  );
  if (person)
    client.setRequestHandler('elicitation/create', ({ params }) => Promise.resolve(person(params.message)));
  await client.connect(
    place.transport === 'http'
      ? new StreamableHTTPClientTransport(new URL(place.url), headers(place.token))
      : new StdioClientTransport(stdioCommand(place.limits)),
  );
  return client;
}

async function connectV1(place: Place, person?: Person): Promise<OldClient> {
  const client = new OldClient(
    { name: 'old', version: '1' },
    { capabilities: { ...(person && { elicitation: {} }) } },
  );
  if (person)
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => Promise.resolve(person(params.message)));
  const transport =
    place.transport === 'http'
      ? new OldHttpClientTransport(new URL(place.url), headers(place.token))
      : new OldStdioClientTransport(stdioCommand(place.limits));
  await client.connect(transport);
  return client;
}

export type ClientKind = 'v2 modern' | 'v2 legacy' | 'v1';

/** With a `person` the client takes forms and puts them to them. */
export async function connect(kind: ClientKind, place: Place, person?: Person): Promise<TestClient> {
  if (kind === 'v1') {
    const client = await connectV1(place, person);
    return {
      listTools: async () => (await client.listTools()).tools as ListedTool[],
      callTool: async (name, args, { meta, ...options } = {}) =>
        (await client.callTool(
          { name, arguments: args, ...(meta && { _meta: meta }) },
          undefined,
          options,
        )) as ToolAnswer,
      close: () => client.close(),
    };
  }
  const client = await connectV2(place, kind === 'v2 modern' ? 'modern' : 'legacy', {}, person);
  return {
    listTools: async () => (await client.listTools()).tools as ListedTool[],
    callTool: async (name, args, { meta, ...options } = {}) =>
      (await client.callTool({ name, arguments: args, ...(meta && { _meta: meta }) }, options)) as ToolAnswer,
    close: () => client.close(),
  };
}
