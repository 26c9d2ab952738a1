/**
 * Carries the caller's trace context, as it came in the header of the start, to every activity, child and next run. So a
 * trace goes on after days without a span that is open for days.
 *
 * Invariants:
 * 1. Reads no clock, draws no random number and adds no turn of the event loop: with a header and without one a history
 *    replays alike, and tracing can be switched on or off under open tasks.
 * 2. Makes no span. The worker does, told through a sink that no replay calls.
 */
import { defaultPayloadConverter } from '@temporalio/common';
import type { Payload } from '@temporalio/common';
import { proxySinks } from '@temporalio/workflow';
import type {
  Headers,
  Sinks,
  WorkflowInboundCallsInterceptor,
  WorkflowInterceptors,
  WorkflowOutboundCallsInterceptor,
} from '@temporalio/workflow';

/** The name under which Temporal's SDKs in all languages send it. */
export const TRACE_HEADER = '_tracer-data';

/** `traceparent` and `tracestate` of W3C Trace Context. */
export type TraceCarrier = Record<string, string>;

export interface TraceSinks extends Sinks {
  holdfastTrace: {
    began(carrier: TraceCarrier): void;
    ended(carrier: TraceCarrier, end: Record<string, string>): void;
  };
}

export const interceptors = (): WorkflowInterceptors => {
  const trace = new TraceContext();
  return { inbound: [trace.inbound], outbound: [trace.outbound] };
};

class TraceContext {
  #header: Payload | undefined;

  readonly inbound: WorkflowInboundCallsInterceptor = {
    execute: (input, next) => {
      this.#header = input.headers[TRACE_HEADER];
      const running = next(input);
      if (this.#header !== undefined) tell(defaultPayloadConverter.fromPayload(this.#header), running);
      return running;
    },
  };

  readonly outbound: WorkflowOutboundCallsInterceptor = {
    scheduleActivity: (input, next) => next(this.#with(input)),
    scheduleLocalActivity: (input, next) => next(this.#with(input)),
    startChildWorkflowExecution: (input, next) => next(this.#with(input)),
    continueAsNew: (input, next) => next(this.#with(input)),
  };

  #with<Input extends { headers: Headers }>(input: Input): Input {
    if (this.#header === undefined) return input;
    return { ...input, headers: { ...input.headers, [TRACE_HEADER]: this.#header } };
  }
}

function tell(carrier: TraceCarrier, running: Promise<unknown>): void {
  const { holdfastTrace } = proxySinks<TraceSinks>();
  holdfastTrace.began(carrier);
  running.then(
    (outcome) => holdfastTrace.ended(carrier, endIn(outcome)),
    // Misuse, or the next run's turn: in neither is there an outcome to tell.
    () => undefined,
  );
}

/** Our own words about it alone. */
function endIn(outcome: unknown): Record<string, string> {
  const { status, effect, cause } = (outcome ?? {}) as Record<string, unknown>;
  const told = Object.entries({ status, effect, cause });
  return Object.fromEntries(told.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}
