import type { GatewayLog } from './log.ts';

/**
 * What the SDK reports about messages it refused or could not deliver. Cut before the first message or value that it
 * quotes (`{…`, `"…"`, `name=…`): it may be an argument.
 */
export function sdkErrorLogger(log: GatewayLog, transport: 'http' | 'stdio'): (error: Error) => void {
  return (error) =>
    log.warn(
      { transport, reason: (error.message.split(/[{"=]/)[0] ?? '').slice(0, 200) },
      'MCP message refused or lost',
    );
}
