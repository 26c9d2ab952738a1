/** A collector in the test's process: takes traces as OTLP over HTTP in JSON and keeps them. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export interface ReceivedSpan {
  traceId: string;
  spanId: string;
  /** Empty: a root. */
  parentSpanId: string;
  name: string;
  service: string;
  attributes: Readonly<Record<string, unknown>>;
  links: readonly { traceId: string; spanId: string }[];
  durationMs: number;
  isError: boolean;
}

export interface OtlpReceiver {
  url: string;
  spans(): ReceivedSpan[];
  /** Everything that was sent, as it came. */
  raw(): string;
  stop(): Promise<void>;
}

interface WireSpan extends Omit<ReceivedSpan, 'attributes' | 'service'> {
  attributes: WireAttribute[];
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  status: { code?: number };
}
interface WireAttribute {
  key: string;
  value: Record<string, unknown>;
}
interface WireRequest {
  resourceSpans: { resource: { attributes: WireAttribute[] }; scopeSpans: { spans: WireSpan[] }[] }[];
}

export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      if (request.url === '/v1/traces') bodies.push(body);
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: () => bodies.flatMap((body) => spansIn(JSON.parse(body) as WireRequest)),
    raw: () => bodies.join('\n'),
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const spansIn = ({ resourceSpans }: WireRequest): ReceivedSpan[] =>
  resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = String(valuesOf(resource.attributes)['service.name']);
    return scopeSpans.flatMap(({ spans }) => spans.map((span) => received(span, service)));
  });

function received(span: WireSpan, service: string): ReceivedSpan {
  const { traceId, spanId, parentSpanId = '', name, attributes, links = [], status } = span;
  const nanoseconds = BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano);
  return {
    ...{ traceId, spanId, parentSpanId, name, service, links },
    attributes: valuesOf(attributes),
    durationMs: Number(nanoseconds / 1_000_000n),
    isError: status.code === 2,
  };
}

const valuesOf = (attributes: readonly WireAttribute[]): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

/** The names from a span up to the root, or to a parent that was not received. */
export function lineOf(spans: readonly ReceivedSpan[], name: string): string[] {
  const line: string[] = [];
  for (let span = spans.find((each) => each.name === name); span !== undefined;) {
    line.push(span.name);
    const { parentSpanId, traceId } = span;
    span = spans.find((each) => each.spanId === parentSpanId && each.traceId === traceId);
  }
  return line;
}
