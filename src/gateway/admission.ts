/**
 * How many calls one principal may make (M7.2): so many a second, and so many open at one time.
 *
 * Invariants:
 * 1. Principals are counted apart: what one makes is never taken from another's.
 * 2. A call refused for the second counts towards it all the same; nothing waits.
 * 3. A principal is remembered for a second after a call, or while one is open; memory follows the calls, not the callers.
 *
 * Of one gateway: several of them in front of one system allow as many times more.
 */
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { HoldfastError } from '../contract/error.ts';
import { FIXED_GATEWAY_LIMITS } from '../contract/gateway-limits.ts';
import type { Principal } from '../task/plan.ts';
import type { GatewayLimits } from './limits.ts';
import { Places, principalKey } from './places.ts';
import type { Leave } from './places.ts';

export interface Admission {
  /** Of calls that arrive together. Throws `too_many_calls`. */
  count(principal: Principal, calls: number): Promise<void>;
  /** Takes places for calls that end together. Throws `too_many_calls`. */
  open(principal: Principal, calls: number): Leave;
  /** How many principals are remembered; for tests of invariant 3. */
  readonly remembered: number;
}

type AdmissionLimit = 'callsPerSecondMax' | 'openCallsMax';

export interface AdmissionParts {
  limits: Pick<GatewayLimits, AdmissionLimit>;
  refused?: (limit: AdmissionLimit) => void;
}

export function createAdmission({ limits, refused }: AdmissionParts): Admission {
  const { callsPerSecondMax, openCallsMax } = limits;
  const rate = new RateLimiterMemory({ points: callsPerSecondMax, duration: 1, keyPrefix: '' });
  const places = new Places(openCallsMax);
  const refuse = (limit: AdmissionLimit, retryAfterMs: number): HoldfastError => {
    refused?.(limit);
    return tooManyCalls(limit, limits[limit], retryAfterMs);
  };
  return {
    async count(principal, calls) {
      await rate.consume(principalKey(principal), calls).catch((error: unknown) => {
        if (error instanceof RateLimiterRes) throw refuse('callsPerSecondMax', error.msBeforeNext);
        throw error;
      });
    },
    open(principal, calls) {
      const leave = places.take(principal, calls);
      if (leave === null) throw refuse('openCallsMax', FIXED_GATEWAY_LIMITS.retryOpenCallsMs.value);
      return leave;
    },
    get remembered() {
      return new Set([...rate.dump().storage.map(({ key }) => key), ...places.holders]).size;
    },
  };
}

/** Both at once, for one call. */
export async function admitOne(admission: Admission, principal: Principal): Promise<Leave> {
  await admission.count(principal, 1);
  return admission.open(principal, 1);
}

function tooManyCalls(limit: AdmissionLimit, most: number, retryAfterMs: number): HoldfastError {
  const message =
    limit === 'openCallsMax'
      ? `${most} calls of this principal are open, as many as may be. Nothing was started.`
      : `This principal makes more than ${most} calls a second. Nothing was started.`;
  return new HoldfastError('too_many_calls', message, { details: { limit, most, retryAfterMs } });
}
