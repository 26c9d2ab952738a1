/** A small MCP server on stdio with so many tools that only read; argument: how many. */
import { fromJsonSchema, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const tools = Number(process.argv[2] ?? 15);
const inputSchema = fromJsonSchema({
  type: 'object',
  properties: { sku: { type: 'string' } },
  required: ['sku'],
});

serveStdio(() => {
  const server = new McpServer({ name: 'shelf', version: '1.0.0' }, { capabilities: { tools: {} } });
  for (let at = 0; at < tools; at += 1)
    server.registerTool(`read_${at}`, { description: 'Reads a shelf.', inputSchema }, () => ({
      content: [{ type: 'text', text: 'three widgets' }],
    }));
  return server;
});
