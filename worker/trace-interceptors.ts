/**
 * Spans around Temporal: the start by a client, the run of a workflow, each activity, and in it each call of a handler.
 *
 * Of Temporal's own package the interceptors for clients and activities are used. Its workflow interceptor is not: it
 * keeps a span open for the whole run, which may wait for a person for days, it takes OpenTelemetry's SDK into replayed
 * code, and its random span ids shift what a workflow draws after them. workflows/trace-context.ts carries the context.
 *
 * Invariants:
 * 1. What is thrown leaves its type in a span, never its message or stack: either may quote an argument.
 * 2. The span of a run has the id that its run id gives, so that every worker can name it as parent without being told.
 *    It ends when the run has begun; a short span tells the end.
 */
import { context, defaultTextMapGetter, propagation, SpanStatusCode } from '@opentelemetry/api';
import type { Context, Span, Tracer } from '@opentelemetry/api';
import type { WorkflowClientInterceptor } from '@temporalio/client';
import { ApplicationFailure, defaultPayloadConverter } from '@temporalio/common';
import type { Headers } from '@temporalio/common';
import {
  OpenTelemetryActivityInboundInterceptor,
  OpenTelemetryWorkflowClientInterceptor,
} from '@temporalio/interceptors-opentelemetry';
import type { ActivityInterceptorsFactory, InjectedSinks } from '@temporalio/worker';
import type { WorkflowInfo } from '@temporalio/workflow';
import type { HandlerTrace } from '../src/operation/deps.ts';
import { TRACE_HEADER } from '../workflows/trace-context.ts';
import type { TraceCarrier, TraceSinks } from '../workflows/trace-context.ts';
import type { Tracing } from './tracing.ts';

/** Starts alone: reads and messages are many, and the span of their call says enough. */
export function clientTrace({ tracer }: Tracing): WorkflowClientInterceptor {
  const traced = new OpenTelemetryWorkflowClientInterceptor({ tracer: quiet(tracer) });
  return {
    startWithDetails: (input, next) =>
      // Headers stay in the history, unencrypted: of baggage nobody knows what is in it.
      context.with(propagation.deleteBaggage(context.active()), () => traced.startWithDetails(input, next)),
  };
}

export function activityTrace(tracing: Tracing): ActivityInterceptorsFactory {
  const tracer = quiet(tracing.tracer);
  return (ctx) => {
    const traced = new OpenTelemetryActivityInboundInterceptor(ctx, { tracer });
    return {
      inbound: {
        execute(input, next) {
          const { workflowExecution } = ctx.info;
          const headers = underRun(tracing, input.headers, workflowExecution?.runId);
          return traced.execute({ ...input, headers }, next);
        },
      },
    };
  };
}

/** Answers and failures of handlers are told by kind. */
export function handlerTrace({ tracer }: Tracing): HandlerTrace {
  return ({ handler, action, operationId, taskId, attempt }, call) => {
    const attributes = {
      'holdfast.handler': handler,
      'holdfast.action': action,
      'holdfast.operation.id': operationId,
      'holdfast.task.id': taskId,
      'holdfast.attempt': attempt,
    };
    return tracer.startActiveSpan(`${handler} ${action}`, { attributes }, async (span) => {
      try {
        const answer = await call();
        if (answer.kind !== 'returned') fail(span, answer.failure.kind);
        return answer;
      } finally {
        span.end();
      }
    });
  };
}

export function traceSinks(tracing: Tracing): InjectedSinks<TraceSinks> {
  return {
    holdfastTrace: {
      began: { fn: (run, carrier) => tellBegin(tracing, run, carrier), callDuringReplay: false },
      ended: { fn: (run, carrier, end) => tellEnd(tracing, run, carrier, end), callDuringReplay: false },
    },
  };
}

function tellBegin({ tracer, withSpanId }: Tracing, run: WorkflowInfo, carrier: TraceCarrier): void {
  const { runId, parent, runStartTime, workflowType } = run;
  const above = withSpanId && parent ? spanOfRun(carrier, parent.runId) : carrier;
  const options = { startTime: runStartTime, attributes: attributesOf(run) };
  const start = (): Span => tracer.startSpan(`RunWorkflow:${workflowType}`, options, contextOf(above));
  const span = withSpanId === null ? start() : withSpanId(spanIdOfRun(runId), start);
  span.end();
}

function tellEnd(
  { tracer, withSpanId }: Tracing,
  run: WorkflowInfo,
  carrier: TraceCarrier,
  end: Record<string, string>,
): void {
  const above = withSpanId === null ? carrier : spanOfRun(carrier, run.runId);
  const told = Object.entries(end).map(([name, word]) => [`holdfast.task.${name}`, word]);
  const attributes = { ...attributesOf(run), ...(Object.fromEntries(told) as TraceCarrier) };
  const span = tracer.startSpan(`EndWorkflow:${run.workflowType}`, { attributes }, contextOf(above));
  if (end['status'] === 'failed') span.setStatus({ code: SpanStatusCode.ERROR });
  span.end();
}

/** Under the names of Temporal's package. */
const attributesOf = ({ workflowId, runId }: WorkflowInfo) => ({
  temporalWorkflowId: workflowId,
  run_id: runId,
});

const contextOf = (carrier: TraceCarrier): Context =>
  propagation.extract(context.active(), carrier, defaultTextMapGetter);

/** The random half of the run's UUID. */
const spanIdOfRun = (runId: string): string => runId.replaceAll('-', '').slice(16);

function spanOfRun(carrier: TraceCarrier, runId: string): TraceCarrier {
  const { traceparent } = carrier;
  if (traceparent === undefined) return carrier;
  const [version, traceId, , flags] = traceparent.split('-');
  return { ...carrier, traceparent: [version, traceId, spanIdOfRun(runId), flags].join('-') };
}

function underRun({ withSpanId }: Tracing, headers: Headers, runId: string | undefined): Headers {
  const header = headers[TRACE_HEADER];
  if (header === undefined || withSpanId === null || runId === undefined) return headers;
  const carrier = spanOfRun(defaultPayloadConverter.fromPayload<TraceCarrier>(header), runId);
  return { ...headers, [TRACE_HEADER]: defaultPayloadConverter.toPayload(carrier) };
}

/** A tracer whose spans, as the package fills them, hold no text of an error. */
function quiet(tracer: Tracer): Tracer {
  const startActiveSpan = (name: string, work: (span: Span) => unknown): unknown =>
    tracer.startActiveSpan(name, (span) => work(quietSpan(span)));
  return {
    startSpan: tracer.startSpan.bind(tracer),
    startActiveSpan: startActiveSpan as Tracer['startActiveSpan'],
  };
}

function quietSpan(span: Span): Span {
  const own: Pick<Span, 'recordException' | 'setStatus'> = {
    recordException: (error) => void span.setAttribute('error.type', typeOf(error)),
    setStatus: ({ code }) => span.setStatus({ code }),
  };
  return new Proxy(span, {
    get(target, name) {
      if (name === 'recordException' || name === 'setStatus') return own[name];
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? (member.bind(target) as unknown) : member;
    },
  });
}

function typeOf(error: unknown): string {
  if (error instanceof ApplicationFailure && error.type != null) return error.type;
  return error instanceof Error ? error.name : 'unknown';
}

function fail(span: Span, type: string): void {
  span.setAttribute('error.type', type);
  span.setStatus({ code: SpanStatusCode.ERROR });
}
