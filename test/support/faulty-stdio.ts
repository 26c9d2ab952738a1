/** An MCP server on stdio that dies where the test says: a transport for `McpClient`, one process for each. */
import type { Transport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

/** What becomes of the process when a request of this method is sent. */
export type StdioFault =
  'killed before the request' | 'killed with the request on its way' | 'killed before its response arrives';

export interface FaultyStdio {
  open: () => Transport;
  /** Every message sent to any of the processes. */
  readonly sent: { id?: unknown; method?: string; params?: Record<string, unknown> }[];
  breakNext(method: string, fault: StdioFault): void;
}

export function faultyStdio(command: {
  command: string;
  args: string[];
  env: Record<string, string>;
  cwd?: string;
}): FaultyStdio {
  const sent: FaultyStdio['sent'] = [];
  const faults: { method: string; fault: StdioFault }[] = [];
  const open = (): Transport => {
    const inner = new StdioClientTransport({ ...command, stderr: 'ignore' });
    let swallowed: unknown;
    const kill = () => void (inner.pid !== null && process.kill(inner.pid, 'SIGKILL'));
    const transport: Transport = {
      start() {
        inner.onclose = () => transport.onclose?.();
        inner.onerror = (error) => transport.onerror?.(error);
        inner.onmessage = (message) => {
          if (swallowed === undefined || (message as { id?: unknown }).id !== swallowed)
            transport.onmessage?.(message);
          else kill();
        };
        return inner.start();
      },
      async send(message) {
        const { method = '', id } = message as { method?: string; id?: unknown };
        const place = faults.findIndex((each) => each.method === method);
        const fault = place < 0 ? undefined : faults.splice(place, 1)[0]?.fault;
        if (fault === 'killed before the request') {
          kill();
          return;
        }
        sent.push(message as (typeof sent)[number]);
        if (fault === 'killed before its response arrives') swallowed = id;
        await inner.send(message);
        if (fault === 'killed with the request on its way') kill();
      },
      close: () => inner.close(),
    };
    return transport;
  };
  return { open, sent, breakNext: (method, fault) => void faults.push({ method, fault }) };
}
