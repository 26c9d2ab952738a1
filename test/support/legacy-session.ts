/** 2025-11-25 over Streamable HTTP as bytes: a session begun by hand. */
export const OLD_PROTOCOL = '2025-11-25';

export const oldHeaders: Readonly<Record<string, string>> = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  'mcp-protocol-version': OLD_PROTOCOL,
};

/** The two messages that begin a connection. */
export const oldInitialize = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: {
    protocolVersion: OLD_PROTOCOL,
    capabilities: {},
    clientInfo: { name: 'raw', version: '1' },
  },
};
export const oldInitialized = { jsonrpc: '2.0', method: 'notifications/initialized' };

/** The headers of everything that follows in the session. */
export async function beginSession(url: string): Promise<Record<string, string>> {
  const send = (body: object, headers: Record<string, string>) =>
    fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  const opened = await send(oldInitialize, oldHeaders);
  await opened.text();
  const id = opened.headers.get('mcp-session-id');
  if (id === null) throw new Error('initialize opens a session');
  const headers = { ...oldHeaders, 'mcp-session-id': id };
  await (await send(oldInitialized, headers)).text();
  return headers;
}
