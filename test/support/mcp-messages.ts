/** MCP 2026-07-28 messages as bytes, for what no client would send. */
export const PROTOCOL = '2026-07-28';

export const envelope = (capabilities: object = {}) => ({
  'io.modelcontextprotocol/protocolVersion': PROTOCOL,
  'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': capabilities,
});

export interface RawMessage {
  method: string;
  params?: Record<string, unknown>;
  capabilities?: object;
  id?: string | number;
  meta?: object;
}

export const rawMessage = ({ method, params = {}, capabilities, id = 1, meta }: RawMessage) => ({
  jsonrpc: '2.0',
  id,
  method,
  params: { ...params, _meta: { ...envelope(capabilities), ...meta } },
});

/** The headers that 2026-07-28 asks for beside the body. */
export const rawHeaders = ({ method, params = {} }: RawMessage): Record<string, string> => {
  const name = params.name ?? params.taskId;
  return {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': PROTOCOL,
    'mcp-method': method,
    ...(typeof name === 'string' && { 'mcp-name': name }),
  };
};

export const post = (
  url: string,
  message: RawMessage,
  init: RequestInit & { text?: string } = {},
): Promise<Response> =>
  fetch(url, {
    ...init,
    method: 'POST',
    headers: { ...rawHeaders(message), ...(init.headers as Record<string, string> | undefined) },
    body: init.text ?? JSON.stringify(rawMessage(message)),
  });

export interface RpcResponse {
  id?: string | number | null;
  result?: Record<string, unknown>;
  error?: { code: number; message: string; data?: Record<string, unknown> };
  method?: string;
  params?: Record<string, unknown>;
}

/** Every JSON-RPC message of a response, JSON or SSE. */
export async function messagesOf(response: Response): Promise<RpcResponse[]> {
  const text = await response.text();
  if (!response.headers.get('content-type')?.startsWith('text/event-stream'))
    return [JSON.parse(text) as RpcResponse];
  return text
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => JSON.parse(line.slice('data: '.length)) as RpcResponse);
}

/** The response to the request itself: the last message. */
export async function answerOf(response: Response): Promise<RpcResponse> {
  const last = (await messagesOf(response)).at(-1);
  if (!last) throw new Error('a response without a message');
  return last;
}
