/**
 * The gateway's limits and time spans, each with its default. All are bounds on one request or one connection; the
 * bounds on arguments, keys and results are the contract's (src/contract/limits.ts).
 */
import { HoldfastError } from '../contract/error.ts';
import { LIMITS } from '../contract/limits.ts';

export interface GatewayLimits {
  /** One HTTP request body, one stdio message. Beyond: HTTP 413 `payload_too_large`; on stdio the same as a JSON-RPC error. */
  messageBytesMax: number;
  /** Arrays and objects inside one another in a whole message; above the arguments' own bound by what the envelope needs. */
  messageDepthMax: number;
  /** M2.1: how long a call of a Tasks client waits for the end before it answers with the task's handle. 0: not at all. */
  inlineWaitMs: number;
  /** M3.1: how long a call of any other client blocks; below the 60 s after which the SDK's clients give up. */
  blockingMs: number;
  /** M4.2: least time between two progress notifications of one token. */
  progressIntervalMs: number;
  /** M6.2: an SSE comment at least this often while a response is open. */
  keepAliveMs: number;
  /** How long a shutdown lets open calls hand over their task before connections are closed. */
  drainMs: number;
}

export const DEFAULT_LIMITS: GatewayLimits = {
  messageBytesMax: 4 * 1024 * 1024,
  messageDepthMax: LIMITS.nestingDepthMax.value + 10,
  inlineWaitMs: 250,
  blockingMs: 45_000,
  progressIntervalMs: 100,
  keepAliveMs: 15_000,
  drainMs: 2_000,
};

/** Largest delay a Node timer keeps; a longer one would fire at once. */
const TIMER_MS_MAX = 2_147_483_647;
const MAY_BE_ZERO: ReadonlySet<string> = new Set(['inlineWaitMs', 'progressIntervalMs', 'drainMs']);

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
