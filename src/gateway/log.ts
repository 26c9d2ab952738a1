/** What the gateway logs to; a pino logger fits. On stdio it must not write to stdout, which carries the protocol. */
export interface GatewayLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

const nowhere = () => undefined;
export const silentLog: GatewayLog = { info: nowhere, warn: nowhere, error: nowhere };
