/** `tools/list` as the server sent it: the SDK's own answer has its members in the order of the SDK's schema. */
import type { Client } from '@modelcontextprotocol/client';
import type { JsonObject } from '../../src/task/json.ts';

export interface ListedTool {
  name: string;
  description?: string;
  inputSchema: JsonObject;
}

export async function listedTools(client: Client): Promise<ListedTool[]> {
  const { transport } = client;
  const pass = transport?.onmessage;
  if (!transport || !pass) throw new Error('the client is not connected');
  const listed: ListedTool[] = [];
  transport.onmessage = (message, ...extra) => {
    const { tools } = ('result' in message ? message.result : {}) as { tools?: ListedTool[] };
    listed.push(...(tools ?? []));
    pass(message, ...extra);
  };
  try {
    await client.listTools();
    return listed;
  } finally {
    transport.onmessage = pass;
  }
}
