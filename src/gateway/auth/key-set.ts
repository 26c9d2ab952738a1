/**
 * The authorization server's public keys: fetched when first needed, kept, and fetched again when they are old or a
 * token names a key that is not among them.
 *
 * Invariants:
 * 1. Unknown key ids cause one request in `keySetCooldownMs` at most, and a server that fails is left alone for `keySetRetryMs`:
 *    tokens made up by anyone can't be turned into load on it.
 * 2. That the keys can't be had is never taken for a bad token: `auth_unavailable`.
 */
import { createLocalJWKSet, createRemoteJWKSet, customFetch, errors } from 'jose';
import type { JWTVerifyGetKey } from 'jose';
import { HoldfastError } from '../../contract/error.ts';
import { FIXED_GATEWAY_LIMITS } from '../../contract/gateway-limits.ts';
import type { GatewayLog } from '../log.ts';

const { keySetKeptMs, keySetCooldownMs, keySetFetchMs, keySetRetryMs } = FIXED_GATEWAY_LIMITS;

export type KeySet = { url: string } | { keys: object[] };

export function createKeySource(keySet: KeySet, log: GatewayLog): JWTVerifyGetKey {
  if ('keys' in keySet) return createLocalJWKSet(keySet);
  const remote = createRemoteJWKSet(new URL(keySet.url), {
    cacheMaxAge: keySetKeptMs.value,
    cooldownDuration: keySetCooldownMs.value,
    timeoutDuration: keySetFetchMs.value,
    [customFetch]: sparingFetch(),
  });
  return async (header, token) => {
    try {
      return await remote(header, token);
    } catch (error) {
      if (isTokensFault(error)) throw error;
      if (error !== PAUSE)
        log.warn(
          { url: keySet.url, err: error },
          'the keys that tokens are verified with can not be fetched',
        );
      throw new HoldfastError(
        'auth_unavailable',
        'The keys that tokens are verified with can not be fetched.',
        {
          cause: error,
        },
      );
    }
  };
}

const isTokensFault = (error: unknown): boolean =>
  error instanceof errors.JWKSNoMatchingKey ||
  error instanceof errors.JWKSMultipleMatchingKeys ||
  error instanceof errors.JOSENotSupported;

const PAUSE = new Error('the server of the keys failed a moment ago');

/** Does not ask again for a moment after it failed. */
function sparingFetch(): (url: string, options: RequestInit) => Promise<Response> {
  let failedAt = Number.NEGATIVE_INFINITY;
  return async (url, options) => {
    if (Date.now() - failedAt < keySetRetryMs.value) throw PAUSE;
    try {
      const response = await fetch(url, options);
      if (response.status !== 200) failedAt = Date.now();
      return response;
    } catch (error) {
      failedAt = Date.now();
      throw error;
    }
  };
}
