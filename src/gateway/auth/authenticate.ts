/**
 * Who may call over HTTP (M7.1): anyone on this machine, who holds a configured bearer token, or whom an authorization
 * server vouches for.
 *
 * Guarantees: without tokens only loopback addresses are bound; tenant, subject and roles come from the token alone; no
 * token and nothing of its content is kept, logged or answered. Does not: issue tokens.
 */
import { OAuthError, OAuthErrorCode, verifyBearerToken } from '@modelcontextprotocol/server';
import type { BearerAuthOptions } from '@modelcontextprotocol/server';
import { HoldfastError } from '../../contract/error.ts';
import type { Principal } from '../../task/plan.ts';
import { authUnavailable, forbidden, unauthorized } from '../error-mapping.ts';
import type { HttpRefusal } from '../error-mapping.ts';
import type { GatewayLog } from '../log.ts';
import { principalOf } from './auth-info.ts';
import { challenge } from './challenge.ts';
import { checkOAuth, metadataUrlOf, oauthVerifier } from './oauth.ts';
import type { OAuthSettings } from './oauth.ts';
import { staticTokenVerifier } from './static-tokens.ts';
import type { StaticToken } from './static-tokens.ts';

export type GatewayAuth =
  /** No token; HTTP binds loopback addresses only, and everyone there is `principal`. */
  | { kind: 'loopback'; principal: Principal }
  /** HTTP takes these tokens, on any address. stdio has no tokens: whoever started the process is `stdioPrincipal`. */
  | { kind: 'tokens'; tokens: StaticToken[]; stdioPrincipal?: Principal }
  /** HTTP takes the tokens of an authorization server, on any address. */
  | { kind: 'oauth'; oauth: OAuthSettings; stdioPrincipal?: Principal };

export type Authenticated =
  /** `expiresAt`: when the token ends, in seconds since 1970. Listens end with it. */
  { ok: true; principal: Principal; expiresAt: number } | { ok: false; refusal: HttpRefusal };

const NEVER = Number.MAX_SAFE_INTEGER;

export type Authenticate = (authorization: string | undefined) => Promise<Authenticated>;

/** Throws `invalid_configuration` for what could not authenticate anyone safely. */
export function createAuthenticate(auth: GatewayAuth, log: GatewayLog): Authenticate {
  switch (auth.kind) {
    case 'loopback':
      return () => Promise.resolve({ ok: true, principal: auth.principal, expiresAt: NEVER });
    case 'tokens':
      return bearer({ verifier: staticTokenVerifier(auth.tokens) });
    case 'oauth': {
      const oauth = checkOAuth(auth.oauth);
      return bearer({
        verifier: oauthVerifier(oauth, log),
        requiredScopes: oauth.scopes,
        resourceMetadataUrl: metadataUrlOf(oauth),
      });
    }
  }
}

function bearer(options: BearerAuthOptions): Authenticate {
  return async (authorization) => {
    try {
      const authInfo = await verifyBearerToken(authorization, options);
      return { ok: true, principal: principalOf(authInfo), expiresAt: authInfo.expiresAt ?? NEVER };
    } catch (error) {
      return { ok: false, refusal: refusalOf(error, authorization, options) };
    }
  };
}

/** 401: another token may do. 403: this one is genuine and does not suffice. 503: nobody can tell just now. */
function refusalOf(
  error: unknown,
  authorization: string | undefined,
  { requiredScopes: scopes = [], resourceMetadataUrl }: BearerAuthOptions,
): HttpRefusal {
  const header = (reason: { error?: string; description?: string }) =>
    challenge({ ...reason, scopes, resourceMetadataUrl });
  if (error instanceof OAuthError) {
    const { message: description } = error;
    if (error.code === OAuthErrorCode.InsufficientScope) {
      const message = 'The token lacks a scope that this gateway requires.';
      return forbidden(header({ error: 'insufficient_scope', description: message }), message, { scopes });
    }
    // RFC 6750, 3.1: a request without a token is told no error.
    return unauthorized(
      header(authorization === undefined ? {} : { error: 'invalid_token', description }),
      description,
    );
  }
  if (error instanceof HoldfastError && error.code === 'forbidden') {
    const { message, details } = error;
    return forbidden(header({ error: 'invalid_token', description: message }), message, details);
  }
  if (error instanceof HoldfastError && error.code === 'auth_unavailable')
    return authUnavailable(error.message);
  throw error;
}
