/** MCP over stdio: one connection, one principal, whoever started the process. */
import type { Readable, Writable } from 'node:stream';
import type { McpServerFactory } from '@modelcontextprotocol/server';
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import type { GatewayLimits } from './limits.ts';
import type { GatewayLog } from './log.ts';
import { sdkErrorLogger } from './sdk-errors.ts';
import { StdioLines } from './stdio-lines.ts';
import { withOwnName } from './tasks/index.ts';

export interface StdioOptions {
  /** Default: the process's own. Nothing else may write to stdout. */
  stdin?: Readable;
  stdout?: Writable;
}

export interface StdioServing {
  /** Settles when the client closed its end, or `close` was called. */
  readonly closed: Promise<void>;
}

export interface RunningStdio extends StdioServing {
  close(): Promise<void>;
}

export function startStdio(
  { factory, limits, log }: { factory: McpServerFactory; limits: GatewayLimits; log: GatewayLog },
  options: StdioOptions,
): RunningStdio {
  const { stdin = process.stdin, stdout = process.stdout } = options;
  let announceClosed = (): void => undefined;
  const closed = new Promise<void>((resolve) => {
    announceClosed = resolve;
  });
  const lines = new StdioLines({
    ...limits,
    answer: (error) => stdout.write(`${JSON.stringify(error)}\n`),
    rewrite: withOwnName,
  });
  stdin.once('end', announceClosed);
  stdin.once('close', () => {
    lines.end(); // closed without an end, as a broken pipe is
    announceClosed();
  });
  const handle = serveStdio(factory, {
    transport: new StdioServerTransport(stdin.pipe(lines), stdout),
    onerror: sdkErrorLogger(log, 'stdio'),
  });
  return {
    closed,
    async close() {
      await handle.close();
      stdin.unpipe(lines);
      stdin.pause(); // or the process would wait for a client that has no more to say
      announceClosed();
    },
  };
}
