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
import type { Principal } from '../task/plan.ts';
import type { GatewayLimits } from './limits.ts';

/** Ends the calls; calling it again does nothing. */
export type Leave = () => void;

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

/** When an open call ends, nobody knows. */
const RETRY_OPEN_MS = 1_000;

export function createAdmission({ limits, refused }: AdmissionParts): Admission {
  const { callsPerSecondMax, openCallsMax } = limits;
  const rate = new RateLimiterMemory({ points: callsPerSecondMax, duration: 1, keyPrefix: '' });
  const openOf = new Map<string, number>();
  const refuse = (limit: AdmissionLimit, retryAfterMs: number): HoldfastError => {
    refused?.(limit);
    return tooManyCalls(limit, limits[limit], retryAfterMs);
  };
  const change = (key: string, by: number): void => {
    const open = (openOf.get(key) ?? 0) + by;
    if (open === 0) openOf.delete(key);
    else openOf.set(key, open);
  };
  return {
    async count(principal, calls) {
      await rate.consume(keyOf(principal), calls).catch((error: unknown) => {
        if (error instanceof RateLimiterRes) throw refuse('callsPerSecondMax', error.msBeforeNext);
        throw error;
      });
    },
    open(principal, calls) {
      const key = keyOf(principal);
      if (calls > 0 && (openOf.get(key) ?? 0) + calls > openCallsMax)
        throw refuse('openCallsMax', RETRY_OPEN_MS);
      if (calls > 0) change(key, calls);
      let isOpen = calls > 0;
      return () => {
        if (isOpen) change(key, -calls);
        isOpen = false;
      };
    },
    get remembered() {
      return new Set([...rate.dump().storage.map(({ key }) => key), ...openOf.keys()]).size;
    },
  };
}

/** Both at once, for one call. */
export async function admitOne(admission: Admission, principal: Principal): Promise<Leave> {
  await admission.count(principal, 1);
  return admission.open(principal, 1);
}

const keyOf = ({ tenant, subject }: Principal): string => JSON.stringify([tenant, subject]);

function tooManyCalls(limit: AdmissionLimit, most: number, retryAfterMs: number): HoldfastError {
  const message =
    limit === 'openCallsMax'
      ? `${most} calls of this principal are open, as many as may be. Nothing was started.`
      : `This principal makes more than ${most} calls a second. Nothing was started.`;
  return new HoldfastError('too_many_calls', message, { details: { limit, most, retryAfterMs } });
}
