/**
 * The span of one `tools/call`: OpenTelemetry's API alone, so without a registered provider nothing is recorded.
 *
 * Invariant: an attribute is one of our own words, the name of a known tool, or an id that we made. No argument, result,
 * key or message of an error becomes one.
 */
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Attributes, Context, Link, Span } from '@opentelemetry/api';
import type { CallToolResult } from '@modelcontextprotocol/server';
import { endOf, UNKNOWN_TOOL } from './metrics.ts';
import { TASK_META } from '../contract/wire-names.ts';

export interface CallOrigin {
  /** `UNKNOWN_TOOL` where there is none of that name. */
  tool: string;
  isHttp: boolean;
  /** `params._meta`, in which a caller may name its trace. */
  meta: Readonly<Record<string, unknown>>;
  headers: Headers | undefined;
  signal: AbortSignal;
}

export async function inCallSpan(
  origin: CallOrigin,
  call: () => Promise<CallToolResult>,
): Promise<CallToolResult> {
  const { tool, isHttp, signal } = origin;
  const isKnown = tool !== UNKNOWN_TOOL;
  const { parent, links } = callersTrace(origin);
  const attributes: Attributes = {
    'mcp.method.name': 'tools/call',
    'gen_ai.operation.name': 'execute_tool',
    'network.transport': isHttp ? 'tcp' : 'pipe',
    ...(isKnown && { 'gen_ai.tool.name': tool }),
  };
  const options = { kind: SpanKind.SERVER, attributes, links };
  const name = isKnown ? `tools/call ${tool}` : 'tools/call';
  return trace.getTracer('holdfast').startActiveSpan(name, options, parent, async (span) => {
    try {
      const result = await call();
      if (span.isRecording()) tellResult(span, result);
      return result;
    } catch (error) {
      span.setAttribute('error.type', signal.aborted ? 'abandoned' : errorTypeOf(error));
      if (!signal.aborted) span.setStatus({ code: SpanStatusCode.ERROR });
      throw error;
    } finally {
      span.end();
    }
  });
}

/** The message's own word comes first; the connection it came over is linked then, as the conventions for MCP have it. */
function callersTrace({ meta, headers }: CallOrigin): { parent: Context; links: Link[] } {
  const active = context.active();
  const around = trace.getSpan(active) ? active : extract(active, (name) => headers?.get(name));
  const told = extract(active, (name) => meta[name]);
  if (told === active) return { parent: around, links: [] };
  const other = trace.getSpanContext(around);
  return { parent: told, links: other ? [{ context: other }] : [] };
}

/** What is no W3C trace context leaves the context as it is. Baggage is not taken: what is in it is nobody's to keep. */
function extract(active: Context, read: (name: string) => unknown): Context {
  const carrier: Record<string, string> = {};
  for (const name of ['traceparent', 'tracestate']) {
    const value = read(name);
    if (typeof value === 'string') carrier[name] = value;
  }
  return carrier['traceparent'] === undefined ? active : propagation.extract(active, carrier);
}

function tellResult(span: Span, result: CallToolResult): void {
  span.setAttribute('holdfast.call.outcome', endOf(result));
  const facts = (result._meta?.[TASK_META] ?? {}) as Record<string, unknown>;
  for (const [attribute, fact] of Object.entries(FACTS)) {
    const value = facts[fact];
    if (typeof value === 'string' || typeof value === 'boolean') span.setAttribute(attribute, value);
  }
  if (!result.isError) return;
  const { error } = (result.structuredContent ?? {}) as { error?: { code?: unknown } };
  span.setAttribute('error.type', typeof error?.code === 'string' ? error.code : 'tool_error');
  span.setStatus({ code: SpanStatusCode.ERROR });
}

const FACTS: Readonly<Record<string, string>> = {
  'holdfast.task.id': 'taskId',
  'holdfast.operation.id': 'operationId',
  'holdfast.task.status': 'status',
  'holdfast.task.effect': 'effect',
  'holdfast.task.cause': 'cause',
  'holdfast.task.replayed': 'replayed',
};

/** A refusal in the protocol: its number. */
function errorTypeOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'number' ? String(code) : 'internal_error';
}
