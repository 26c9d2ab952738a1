import { describe, expect, it } from 'vitest';
import type { Log } from '../../worker/logger.ts';
import { openTracing } from '../../worker/tracing.ts';
import type { TracingConfig } from '../../worker/tracing.ts';

const config = (given: Partial<TracingConfig>): TracingConfig => ({
  ...{ otelDisabled: false, tracesExporter: null, otlpEndpoint: null, otlpTracesEndpoint: null },
  ...{ otlpProtocol: null, otlpTracesProtocol: null, ...given },
});
const log = {} as Log;

describe('OTLP over gRPC, which is not spoken', () => {
  it.each([
    [{ otlpProtocol: 'grpc' as const }, 'OTEL_EXPORTER_OTLP_PROTOCOL'],
    [
      { otlpProtocol: 'http/json' as const, otlpTracesProtocol: 'grpc' as const },
      'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL',
    ],
  ])('is refused by name where traces are on', async (given, name) => {
    const opened = openTracing(config({ otlpEndpoint: 'http://127.0.0.1:4318', ...given }), log);
    await expect(opened).rejects.toMatchObject({ code: 'invalid_configuration', details: { name } });
  });

  it('stops nothing where they are off', async () => {
    const { tracing, close } = await openTracing(config({ otlpProtocol: 'grpc' }), log);
    expect(tracing).toBeNull();
    await close();
  });
});
