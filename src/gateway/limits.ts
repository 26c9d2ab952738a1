/** The settable limits of one gateway: the defaults of src/contract/gateway-limits.ts with its configuration over them. */
import { HoldfastError } from '../contract/error.ts';
import { GATEWAY_LIMITS } from '../contract/gateway-limits.ts';
import type { GatewayLimitName } from '../contract/gateway-limits.ts';

export type GatewayLimits = { [Name in GatewayLimitName]: number };

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
