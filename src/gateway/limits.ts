/**
 * The gateway's limits and time spans, each with its default. All are bounds on one request or one connection; the
 * bounds on arguments, keys and results are the contract's (src/contract/limits.ts).
 */
import { HoldfastError } from '../contract/error.ts';
import { LIMITS } from '../contract/limits.ts';

interface GatewayLimit {
  value: number;
  unit: 'bytes' | 'calls' | 'frames' | 'levels' | 'listens' | 'ms' | 'sessions' | 'tasks';
  what: string;
}

/** Every one, once; docs/limits.md is generated from this table. */
export const GATEWAY_LIMITS = {
  messageBytesMax: {
    value: 4 * 1024 * 1024,
    unit: 'bytes',
    what: 'One HTTP request body, one stdio message. Beyond: HTTP 413 `payload_too_large`, on stdio the same as a JSON-RPC error.',
  },
  messageDepthMax: {
    value: LIMITS.nestingDepthMax.value + 10,
    unit: 'levels',
    what: 'Arrays and objects inside one another in a whole message; above the arguments’ own bound by what the envelope needs.',
  },
  callsPerSecondMax: {
    value: 1_000,
    unit: 'calls',
    what: 'M7.2: calls of one principal within a second, in one gateway. Beyond: `too_many_calls`, over HTTP 429 with `Retry-After`.',
  },
  openCallsMax: {
    value: 1_000,
    unit: 'calls',
    what: 'M7.2: calls of one principal that are open at one time, in one gateway; listens have a bound of their own. Beyond: the same.',
  },
  inlineWaitMs: {
    value: 250,
    unit: 'ms',
    what: 'M2.1: how long a call of a Tasks client waits for the end before it answers with the task’s handle. 0: not at all.',
  },
  blockingMs: {
    value: 45_000,
    unit: 'ms',
    what: 'M3.1: how long a call of any other client blocks; below the 60 s after which the SDK’s clients give up.',
  },
  idleMs: {
    value: 45_000,
    unit: 'ms',
    what: 'M4.1: how long a call blocks while no progress is sent to its caller. Tells on calls where `blockingMs` is longer than this.',
  },
  abandonMs: {
    value: 30_000,
    unit: 'ms',
    what: 'M5.3: how long nobody must have waited for a task of a tool with `onAbandon: cancel` before it is asked to cancel.',
  },
  progressIntervalMs: {
    value: 100,
    unit: 'ms',
    what: 'M4.2: least time between two progress notifications of one token.',
  },
  keepAliveMs: {
    value: 15_000,
    unit: 'ms',
    what: 'M6.2: an SSE comment at least this often while a response is open.',
  },
  streamBytesMax: {
    value: 1024 * 1024,
    unit: 'bytes',
    what: 'M6.1: what waits for one reader of an SSE response. Beyond: progress is coalesced, then dropped and the stream marked; a response never.',
  },
  streamFramesMax: {
    value: 256,
    unit: 'frames',
    what: 'M6.1: the same, counted in messages.',
  },
  stalledReaderMs: {
    value: 30_000,
    unit: 'ms',
    what: 'M6.1: how long a reader of an SSE response may take nothing while something waits for it. Beyond: it is disconnected.',
  },
  legacySessionsMax: {
    value: 32,
    unit: 'sessions',
    what: 'Sessions a principal has at one gateway (clients of 2025-11-25 and older over HTTP). One more ends the one idle longest. 0: none; such clients are then served without elicitation and cancel, by any of several gateways.',
  },
  legacySessionIdleMs: {
    value: 30 * 60 * 1000,
    unit: 'ms',
    what: 'A session in which nothing was open for so long is ended; its client gets 404 and initializes anew.',
  },
  listenTaskIdsMax: {
    value: 100,
    unit: 'tasks',
    what: 'M2.5: tasks that one `subscriptions/listen` names. Beyond: invalid params, -32602.',
  },
  listensMax: {
    value: 16,
    unit: 'listens',
    what: 'M7.2: open listens of one principal in one gateway. Beyond: `too_many_listens`.',
  },
  listenPollMs: {
    value: 5_000,
    unit: 'ms',
    what: 'M2.5: how often a task that somebody listens to is read without a hint, once for all who listen to it.',
  },
  drainMs: {
    value: 2_000,
    unit: 'ms',
    what: 'How long a shutdown lets open calls hand over their task before connections are closed.',
  },
} as const satisfies Record<string, GatewayLimit>;

export type GatewayLimits = { [Name in keyof typeof GATEWAY_LIMITS]: number };

export const DEFAULT_LIMITS = Object.fromEntries(
  Object.entries(GATEWAY_LIMITS).map(([name, { value }]) => [name, value]),
) as GatewayLimits;

/** Largest delay a Node timer keeps; a longer one would fire at once. */
const TIMER_MS_MAX = 2_147_483_647;
const MAY_BE_ZERO: ReadonlySet<string> = new Set([
  'inlineWaitMs',
  'progressIntervalMs',
  'drainMs',
  'legacySessionsMax',
]);

/** The defaults with `given` over them. Throws `invalid_configuration` naming the first value out of range. */
export function resolveLimits(given: Partial<GatewayLimits> = {}): GatewayLimits {
  const limits = { ...DEFAULT_LIMITS, ...given };
  for (const [name, value] of Object.entries(limits) as [keyof GatewayLimits, number][]) {
    const least = MAY_BE_ZERO.has(name) ? 0 : 1;
    if (Number.isInteger(value) && value >= least && value <= TIMER_MS_MAX) continue;
    throw new HoldfastError(
      'invalid_configuration',
      `gateway limit ${name} must be an integer from ${least} to ${TIMER_MS_MAX}.`,
      {
        details: { name: `limits.${name}`, least, most: TIMER_MS_MAX },
      },
    );
  }
  return limits;
}
