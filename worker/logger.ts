/**
 * The structured log: one JSON object a line on standard error (standard output belongs to stdio protocols and to
 * commands' answers). Never arguments, results, keys or tokens: what may not be stored may not be logged (S2.10).
 */
import pino from 'pino';
import type { Logger } from 'pino';
import type { Logger as TemporalLogger, LogLevel, LogMetadata } from '@temporalio/worker';

export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Members of logged objects that are never written, at the first two depths. */
const SECRET_MEMBERS = [
  'args',
  'arguments',
  'input',
  'result',
  'output',
  'token',
  'key',
  'authorization',
  'password',
  'secret',
  'encryptionKey',
  'encryptionKeys',
  'hmacKey',
  'apiKey',
  'databaseUrl',
  'payload',
  'payloads',
];
const paths = SECRET_MEMBERS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]);

export interface LoggerOptions {
  level: string;
  /** Default: standard error. */
  destination?: { write(line: string): void };
}

export function createLogger({ level, destination }: LoggerOptions): Logger {
  return pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths, censor: '[redacted]' },
      serializers: { err: plainError, error: plainError },
      formatters: { level: (label) => ({ level: label }) },
    },
    destination ?? pino.destination({ dest: 2, sync: true }),
  );
}

/** Name, code, message, stack; not the error's own properties, which may hold a request with its secrets. */
function plainError(error: unknown): unknown {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error && typeof error.code !== 'object' ? error.code : undefined;
  return {
    name: error.name,
    code,
    message: error.message,
    stack: error.stack,
    cause: error.cause instanceof Error ? error.cause.message : undefined,
  };
}

/** For `Runtime.install`: Temporal's own log lines, with their metadata reduced to plain names and numbers. */
export function temporalLogger(log: Logger): TemporalLogger {
  const write = (level: LogLevel, message: string, meta?: LogMetadata): void => {
    const target = level.toLowerCase() as 'trace' | 'debug' | 'info' | 'warn' | 'error';
    log[target]({ temporal: plainMetadata(meta) }, message);
  };
  return {
    log: write,
    trace: (message, meta) => write('TRACE', message, meta),
    debug: (message, meta) => write('DEBUG', message, meta),
    info: (message, meta) => write('INFO', message, meta),
    warn: (message, meta) => write('WARN', message, meta),
    error: (message, meta) => write('ERROR', message, meta),
  };
}

function plainMetadata(meta: LogMetadata | undefined): Record<string, unknown> {
  const entries = Object.entries(meta ?? {}).map(
    ([name, value]) => [name, value instanceof Error ? plainError(value) : value] as const,
  );
  return Object.fromEntries(
    entries.filter(
      ([, value]) => value === null || typeof value !== 'object' || 'message' in (value as object),
    ),
  );
}
