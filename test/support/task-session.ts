/**
 * The Tasks extension's own client over the SDK's: `Client.request` refuses `resultType: "task"`, so the host gives the
 * session a way under it.
 */
import type { Client, ClientCapabilities, McpSubscription, Transport } from '@modelcontextprotocol/client';
import { createTaskSessionFromClient } from '@modelcontextprotocol/ext-tasks/client';
import type { TaskEnabledSession } from '@modelcontextprotocol/ext-tasks/client';
import { connectV2, TASKS_CAPABILITIES } from './mcp-clients.ts';
import type { Place } from './mcp-clients.ts';
import { envelope, PROTOCOL } from './mcp-messages.ts';
import type { RpcResponse } from './mcp-messages.ts';

export interface TaskClientUnderTest {
  session: TaskEnabledSession;
  /** `subscriptions/listen`, as the SDK's own client opens it. */
  listen(filter: object): Promise<McpSubscription>;
  /** Every message from the server, in order. */
  readonly received: RpcResponse[];
  /** Of a gateway on stdio. */
  readonly pid: number | null;
  /** One raw request in the envelope of a client that declared Tasks, or in another's. */
  request(method: string, params: object, capabilities?: object): Promise<RpcResponse>;
  close(): Promise<void>;
}

export async function connectTaskClient(
  place: Place,
  declared: ClientCapabilities = TASKS_CAPABILITIES,
): Promise<TaskClientUnderTest> {
  const client = await connectV2(place, 'modern', declared);
  const received: RpcResponse[] = [];
  const send = rawSender(client, received);
  const clientInfo = { name: 'test', version: '1' };
  const session = createTaskSessionFromClient(client, {
    endpointId: 'driven',
    rawDispatch: async (message) => {
      const { result, error } = await send(message as object);
      return (error ? { kind: 'error', error } : { kind: 'result', result }) as never;
    },
    v2RequestFraming: {
      protocolVersion: PROTOCOL,
      clientInfo,
      clientCapabilities: declared as never,
    },
  });
  return {
    session,
    received,
    pid: (client.transport as { pid?: number | null }).pid ?? null,
    listen: (filter) => client.listen(filter),
    request: (method, params, capabilities = declared) =>
      send({ method, params: { ...params, _meta: envelope(capabilities) } }),
    async close() {
      await session.close();
      await client.close();
    },
  };
}

/** Sends with ids of its own, which the SDK's client never sees answered. */
function rawSender(client: Client, received: RpcResponse[]): (message: object) => Promise<RpcResponse> {
  const transport = client.transport as Transport;
  const deliver = transport.onmessage?.bind(transport);
  const waiting = new Map<string, (response: RpcResponse) => void>();
  let sent = 0;
  transport.onmessage = (message, extra) => {
    received.push(message as RpcResponse);
    const id = 'id' in message && !('method' in message) ? String(message.id) : '';
    const resolve = waiting.get(id);
    if (!resolve) return deliver?.(message, extra);
    waiting.delete(id);
    resolve(message as RpcResponse);
  };
  return (message) =>
    new Promise((resolve, reject) => {
      const id = `raw-${(sent += 1)}`;
      waiting.set(id, resolve);
      transport
        .send({ jsonrpc: '2.0', id, ...message } as never)
        .catch((error: { data?: { text?: string } }) => {
          // Over HTTP an error under 4xx comes as an exception with the body.
          waiting.delete(id);
          if (error.data?.text === undefined) reject(error);
          else resolve(JSON.parse(error.data.text) as RpcResponse);
        });
    });
}
