/**
 * Whether this process traces, and with which provider: the one that the embedding program has registered with
 * OpenTelemetry's API, else one of ours where the settings ask for it, else none, and then nothing of OpenTelemetry's SDK
 * is even loaded.
 */
import { ProxyTracerProvider, trace } from '@opentelemetry/api';
import type { Tracer } from '@opentelemetry/api';
import type { Config } from './config.ts';
import { configurationError } from './configuration-error.ts';
import type { Log } from './logger.ts';
import { CONFIG } from './settings.ts';

export interface Tracing {
  tracer: Tracer;
  /** Starts one span under this id. Null where the provider is another program's, which chooses ids itself. */
  withSpanId: (<T>(spanId: string, start: () => T) => T) | null;
}

export interface OpenedTracing {
  tracing: Tracing | null;
  /** Sends what is still here, within bounds. A provider of somebody else is left alone. */
  close(): Promise<void>;
}

export type TracingConfig = Pick<
  Config,
  | 'otelDisabled'
  | 'tracesExporter'
  | 'otlpEndpoint'
  | 'otlpTracesEndpoint'
  | 'otlpProtocol'
  | 'otlpTracesProtocol'
>;

/** Of the provider of this module, while it is registered. */
let own: { tracing: Tracing; close(): Promise<void>; users: number } | null = null;

/** Throws `invalid_configuration` where traces are on and gRPC is asked for. */
export async function openTracing(config: TracingConfig, log: Log): Promise<OpenedTracing> {
  if (own === null && !isRegistered()) {
    const url = endpointOf(config);
    if (url === null) return { tracing: null, close: () => Promise.resolve() };
    refuseGrpc(config);
    const { registerProvider } = await import('./trace-provider.ts');
    own = { ...registerProvider(url, log), users: 0 };
  }
  const opened = own;
  if (opened === null) return { tracing: registeredTracing(), close: () => Promise.resolve() };
  opened.users += 1;
  return {
    tracing: opened.tracing,
    async close() {
      opened.users -= 1;
      if (opened.users > 0 || own !== opened) return;
      own = null;
      await opened.close();
    },
  };
}

/** Null: nobody has registered a provider. */
export function registeredTracing(): Tracing | null {
  if (own !== null) return own.tracing;
  return isRegistered() ? { tracer: trace.getTracer('holdfast'), withSpanId: null } : null;
}

/** The API answers a proxy in any case; what stands behind it tells. */
function isRegistered(): boolean {
  const provider = trace.getTracerProvider();
  if (!(provider instanceof ProxyTracerProvider)) return true;
  return provider.getDelegate() !== new ProxyTracerProvider().getDelegate();
}

/** Traces would be lost without a word. The setting for traces alone wins. */
function refuseGrpc({ otlpProtocol, otlpTracesProtocol }: TracingConfig): void {
  if ((otlpTracesProtocol ?? otlpProtocol) !== 'grpc') return;
  const { env, expected, fix } =
    otlpTracesProtocol === null ? CONFIG.otlpProtocol : CONFIG.otlpTracesProtocol;
  throw configurationError([{ name: env, problem: 'gRPC is not spoken', expected, fix }]);
}

const ON_THIS_MACHINE = 'http://localhost:4318';

/** As OpenTelemetry's specification has it: the address for traces as it is, the one for all signals with their path. */
function endpointOf({
  otelDisabled,
  tracesExporter,
  otlpEndpoint,
  otlpTracesEndpoint,
}: TracingConfig): string | null {
  const isAsked = tracesExporter === 'otlp' || otlpEndpoint !== null || otlpTracesEndpoint !== null;
  if (otelDisabled || tracesExporter === 'none' || !isAsked) return null;
  return otlpTracesEndpoint ?? `${(otlpEndpoint ?? ON_THIS_MACHINE).replace(/\/+$/, '')}/v1/traces`;
}
