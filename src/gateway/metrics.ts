/**
 * What the gateway counts, for Prometheus. Labels take their values from closed lists (the catalogue's tools, our own
 * words): no caller can add a series, and none names a principal or an argument.
 */
import { Counter, Gauge, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';
import type { CallToolResult } from '@modelcontextprotocol/server';
import { isForeignAnswer } from './direct-call.ts';
import { TASK_META } from '../contract/wire-names.ts';

export type CallEnd =
  /** The action's result. */
  | 'completed'
  /** The task ended otherwise; the answer says how. */
  | 'failed'
  /** The task goes on; the caller has its handle. */
  | 'handed_over'
  /** A person is asked through the caller. */
  | 'asked'
  /** Nothing was started, and the answer says why; or the protocol was misused. */
  | 'refused'
  /** The caller did not wait for an answer. */
  | 'abandoned';

/** A limit that was met, by its name in docs/limits.md. */
export type RefusingLimit =
  'callsPerSecondMax' | 'openCallsMax' | 'listensMax' | 'messageBytesMax' | 'messageDepthMax';

export interface GatewayMetrics {
  /** A call that `called` will tell the end of. */
  began(): void;
  called(tool: string, end: CallEnd, ms: number): void;
  refused(limit: RefusingLimit): void;
}

/** No tool can have this name. */
export const UNKNOWN_TOOL = '(unknown)';

const DURATION_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export function createGatewayMetrics(registry: Registry): GatewayMetrics {
  const registers = [registry];
  const calls = new Counter({
    name: 'holdfast_calls_total',
    help: 'Tool calls answered, by how they ended for the caller.',
    labelNames: ['tool', 'outcome'],
    registers,
  });
  const duration = new Histogram({
    name: 'holdfast_call_duration_seconds',
    help: 'How long tool calls took until their answer.',
    labelNames: ['tool'],
    buckets: DURATION_BUCKETS,
    registers,
  });
  const refused = new Counter({
    name: 'holdfast_calls_refused_total',
    help: 'Requests refused by a limit.',
    labelNames: ['limit'],
    registers,
  });
  const open = new Gauge({ name: 'holdfast_open_calls', help: 'Tool calls not answered yet.', registers });
  return {
    began: () => open.inc(),
    called(tool, outcome, ms) {
      open.dec();
      calls.inc({ tool, outcome });
      duration.observe({ tool }, ms / 1_000);
    },
    refused: (limit) => refused.inc({ limit }),
  };
}

const nowhere = () => undefined;
export const silentMetrics: GatewayMetrics = { began: nowhere, called: nowhere, refused: nowhere };

/** Read off the answer, so that what is counted is what the caller was told. */
export function endOf(result: CallToolResult): CallEnd {
  const {
    resultType,
    isError,
    structuredContent: content,
    _meta,
  } = result as CallToolResult & {
    resultType?: string;
  };
  if (resultType === 'task') return 'handed_over';
  if (resultType === 'input_required') return 'asked';
  if (isError) return _meta?.[TASK_META] === undefined && !isForeignAnswer(result) ? 'refused' : 'failed';
  return isHandle(content) ? 'handed_over' : 'completed';
}

/** The handle of a task in words says itself that nothing is done yet. */
const isHandle = (content: unknown): boolean =>
  typeof content === 'object' &&
  content !== null &&
  'done' in content &&
  'callAgain' in content &&
  content.done === false &&
  content.callAgain === false;
