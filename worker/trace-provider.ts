/** A provider of our own: spans go in batches, as OTLP over HTTP in JSON, to one address. Loaded only where it is asked for. */
import { context, diag, DiagLogLevel, propagation, trace } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { detectResourcesSync, envDetectorSync, Resource } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor, RandomIdGenerator } from '@opentelemetry/sdk-trace-base';
import type { IdGenerator } from '@opentelemetry/sdk-trace-base';
import { AsyncContext } from './async-context.ts';
import type { Log } from './logger.ts';
import type { Tracing } from './tracing.ts';

/** A collector that is away delays a shutdown by this at most. */
const FLUSH_MS = 2_000;

export function registerProvider(url: string, log: Log): { tracing: Tracing; close(): Promise<void> } {
  diag.setLogger(oneWarning(log), { logLevel: DiagLogLevel.ERROR, suppressOverrideMessage: true });
  const ids = new ChosenIds();
  const provider = new BasicTracerProvider({
    idGenerator: ids,
    // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win.
    resource: new Resource({ 'service.name': 'holdfast' }).merge(
      detectResourcesSync({ detectors: [envDetectorSync] }),
    ),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url }))],
  });
  provider.register({
    contextManager: new AsyncContext(),
    propagator: new W3CTraceContextPropagator(),
  });
  const tracing: Tracing = {
    tracer: trace.getTracer('holdfast'),
    withSpanId: (spanId, start) => ids.with(spanId, start),
  };
  return {
    tracing,
    async close() {
      for (const api of [trace, context, propagation, diag]) api.disable();
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise((resolve) => (timer = setTimeout(resolve, FLUSH_MS)));
      await Promise.race([provider.shutdown().catch(() => undefined), late]);
      clearTimeout(timer);
    },
  };
}

/** Random ids, but for one span that is to be found by who knows its run. */
class ChosenIds implements IdGenerator {
  readonly #random = new RandomIdGenerator();
  #chosen: string | null = null;

  generateTraceId = (): string => this.#random.generateTraceId();
  generateSpanId = (): string => this.#chosen ?? this.#random.generateSpanId();

  /** `start` starts the one span, and nothing else. */
  with<T>(spanId: string, start: () => T): T {
    this.#chosen = spanId;
    try {
      return start();
    } finally {
      this.#chosen = null;
    }
  }
}

/** What the exporter has to say may quote what it sent, or an address with credentials in it. */
function oneWarning(log: Log) {
  let isTold = false;
  const error = (): void => {
    if (!isTold)
      log.warn({}, 'traces can not be delivered to the OTLP endpoint; later failures are not told');
    isTold = true;
  };
  const nothing = (): void => undefined;
  return { error, warn: nothing, info: nothing, debug: nothing, verbose: nothing };
}
