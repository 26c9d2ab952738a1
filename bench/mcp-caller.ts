/** An MCP client cut down to what is measured: one message, one answer, over a kept-alive connection. */
import { Agent, request } from 'node:http';
import type { IncomingMessage } from 'node:http';

const PROTOCOL = '2026-07-28';
const TASKS = 'io.modelcontextprotocol/tasks';

const ENVELOPE = {
  'io.modelcontextprotocol/protocolVersion': PROTOCOL,
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': { extensions: { [TASKS]: {} } },
};

export interface ToolAnswer {
  status?: string;
  isError?: boolean;
  structuredContent?: unknown;
}

export class McpCaller {
  readonly #url: string;
  readonly #agent = new Agent({ keepAlive: true });
  #id = 0;

  /** `url`: of the gateway, without a path. */
  constructor(url: string) {
    this.#url = `${url}/mcp`;
  }

  /** The result, or throws what the gateway answered instead. */
  getTask(taskId: string): Promise<ToolAnswer> {
    return this.#send('tasks/get', taskId, { taskId });
  }

  /** Without a key where the tool is safe. */
  callTool(name: string, args: object, idempotencyKey?: string): Promise<ToolAnswer> {
    const keyed = idempotencyKey === undefined ? args : { ...args, idempotencyKey };
    return this.#send('tools/call', name, { name, arguments: keyed });
  }

  listTools(): Promise<ToolAnswer> {
    return this.#send('tools/list', undefined, {});
  }

  close(): void {
    this.#agent.destroy();
  }

  async #send(method: string, name: string | undefined, params: object): Promise<ToolAnswer> {
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: (this.#id += 1),
      method,
      params: { ...params, _meta: ENVELOPE },
    });
    const text = await this.#post(body, {
      'mcp-method': method,
      ...(name !== undefined && { 'mcp-name': name }),
    });
    const { result, error } = lastMessage(text);
    if (result === undefined) throw new Error(`${method} answered ${JSON.stringify(error) ?? text}`);
    return result;
  }

  async #post(body: string, headers: Record<string, string>): Promise<string> {
    for (;;) {
      const answer = await this.#postOnce(body, headers);
      if (answer !== null) return answer;
    }
  }

  /** Null: the gateway closed the kept connection as it was used again. All that is sent here may be sent again. */
  #postOnce(body: string, headers: Record<string, string>): Promise<string | null> {
    return new Promise((resolve, reject) => {
      const sent = request(this.#url, {
        method: 'POST',
        agent: this.#agent,
        headers: {
          ...headers,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          accept: 'application/json, text/event-stream',
          'mcp-protocol-version': PROTOCOL,
        },
      });
      sent.once('error', (error: NodeJS.ErrnoException) => {
        if (sent.reusedSocket && error.code === 'ECONNRESET') resolve(null);
        else reject(error);
      });
      sent.once('response', (response) => void textOf(response).then(resolve, reject));
      sent.end(body);
    });
  }
}

async function textOf(response: IncomingMessage): Promise<string> {
  response.setEncoding('utf8');
  let text = '';
  for await (const chunk of response) text += chunk as string;
  return text;
}

/** The answer is the last message of a stream, or the whole body. */
function lastMessage(text: string): { result?: ToolAnswer; error?: unknown } {
  const data = text.startsWith('{')
    ? text
    : (text
        .match(/^data: .*$/gm)
        ?.at(-1)
        ?.slice(6) ?? '{}');
  return JSON.parse(data) as { result?: ToolAnswer; error?: unknown };
}
