/**
 * What a client carries from one round of a call to the next while a person is asked (M3.1): signed, so that nothing
 * of it can be changed, bound to the principal it was given to, and to the very call.
 *
 * It holds no secret (the client can read it) and no decision: those are the task's.
 */
import { createHash } from 'node:crypto';
import { createRequestStateCodec } from '@modelcontextprotocol/server';
import type { RequestStateCodec } from '@modelcontextprotocol/server';
import { canonicalJson } from '../contract/canonical.ts';
import { HoldfastError } from '../contract/error.ts';
import { FIXED_GATEWAY_LIMITS } from '../contract/gateway-limits.ts';
import { KEY_META } from '../contract/wire-names.ts';
import type { JsonObject } from '../task/json.ts';
import type { Principal } from '../task/plan.ts';
import type { DecidedCall } from './decide.ts';
import { principalKey } from './places.ts';
import type { AskedSoFar } from './questions.ts';

interface CallState {
  /** `callDigest` of the call that the state belongs to. */
  call: string;
}

/** Of a call whose task waits for a decision, or of one that is asked for what it left out and has no task yet. */
export type RequestState = DecisionState | AskingState;
export type DecisionState = CallState & DecidedCall;
type AskingState = CallState & AskedSoFar & { taskId?: never };

/** People take their time; an approval that has closed meanwhile refuses by itself. */
const TTL_SECONDS = FIXED_GATEWAY_LIMITS.requestStateMs.value / 1000;
export const REQUEST_STATE_KEY_BYTES = 32;

/** For one connection. Cheap: one is made for every HTTP request. */
export const requestStateCodec = (key: Uint8Array, principal: Principal): RequestStateCodec<RequestState> =>
  createRequestStateCodec<RequestState>({
    key,
    ttlSeconds: TTL_SECONDS,
    bind: () => principalKey(principal),
  });

/** Of tool, arguments and the key beside them: under another key it is another call, also with equal arguments (S1.2). */
export function callDigest(tool: string, args: JsonObject, meta: Readonly<Record<string, unknown>>): string {
  const key = meta[KEY_META];
  return createHash('sha256')
    .update(canonicalJson(key === undefined ? [tool, args] : [tool, args, key]))
    .digest('base64url');
}

/** Throws `invalid_configuration` for a key that signs nothing safely. */
export function checkRequestStateKey(key: Uint8Array): Uint8Array {
  if (key.length >= REQUEST_STATE_KEY_BYTES) return key;
  throw new HoldfastError(
    'invalid_configuration',
    `requestStateKey has ${key.length} bytes; at least ${REQUEST_STATE_KEY_BYTES} are needed.`,
    { details: { name: 'requestStateKey', bytesMin: REQUEST_STATE_KEY_BYTES } },
  );
}
