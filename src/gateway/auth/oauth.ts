/**
 * Tokens of an authorization server (M7.1): JWTs, verified here by its published keys. This gateway issues nothing and
 * asks nobody about a single token, so a revoked one is good until it expires.
 *
 * Verified: signature by an algorithm of the list, `iss`, `aud`, `exp` (required), `nbf`. What a token says is never
 * repeated in an error, a header or a log.
 */
import {
  OAuthError,
  OAuthErrorCode,
  getOAuthProtectedResourceMetadataUrl,
} from '@modelcontextprotocol/server';
import type { AuthInfo, OAuthTokenVerifier } from '@modelcontextprotocol/server';
import { errors, jwtVerify } from 'jose';
import type { JWTPayload, JWTVerifyGetKey } from 'jose';
import { HoldfastError } from '../../contract/error.ts';
import { FIXED_GATEWAY_LIMITS } from '../../contract/gateway-limits.ts';
import {
  isClaimName,
  isIdentifierUrl,
  isScope,
  isSecureUrl,
  isSignatureAlgorithm,
  SIGNATURE_ALGORITHMS,
} from '../../contract/oauth-definition.ts';
import type { SignatureAlgorithm } from '../../contract/oauth-definition.ts';
import type { GatewayLog } from '../log.ts';
import { authInfoOf } from './auth-info.ts';
import { listOf, principalOfClaims } from './claims.ts';
import type { ClaimNames } from './claims.ts';
import { createKeySource } from './key-set.ts';
import type { KeySet } from './key-set.ts';

export interface OAuthSettings {
  /** What `iss` must equal; `https:`, on loopback also `http:`, like every address here. */
  issuer: string;
  /** The address of `/mcp` as clients know it; what RFC 9728's metadata calls `resource`. */
  resource: string;
  /** What `aud` must hold. Default: `resource`, with or without a slash at its end. */
  audience?: string;
  keySet: KeySet;
  algorithms: SignatureAlgorithm[];
  clockToleranceSeconds: number;
  claims: ClaimNames;
  /** Scopes that every token must carry. */
  scopes: string[];
}

export const metadataUrlOf = ({ resource }: OAuthSettings): string =>
  getOAuthProtectedResourceMetadataUrl(new URL(resource));

export function oauthVerifier(oauth: OAuthSettings, log: GatewayLog): OAuthTokenVerifier {
  const key = createKeySource(oauth.keySet, log);
  return { verifyAccessToken: (token) => verify(oauth, key, token) };
}

async function verify(oauth: OAuthSettings, key: JWTVerifyGetKey, token: string): Promise<AuthInfo> {
  if (token.length > FIXED_GATEWAY_LIMITS.tokenLengthMax.value) throw invalidToken('The token is too long.');
  const claims = await claimsOf(oauth, key, token);
  const scopes = [...(listOf(claims['scope']) ?? []), ...(listOf(claims['scp']) ?? [])];
  return authInfoOf(principalOfClaims(claims, oauth.claims), {
    scopes: scopes.filter((scope) => typeof scope === 'string'),
    // The SDK compares it once more, without a tolerance of its own.
    expiresAt: (claims.exp ?? 0) + oauth.clockToleranceSeconds,
  });
}

async function claimsOf(oauth: OAuthSettings, key: JWTVerifyGetKey, token: string): Promise<JWTPayload> {
  try {
    const { payload } = await jwtVerify(token, key, {
      issuer: oauth.issuer,
      audience: oauth.audience ?? withAndWithoutSlash(oauth.resource),
      algorithms: oauth.algorithms,
      clockTolerance: oauth.clockToleranceSeconds,
      requiredClaims: ['exp'],
    });
    return payload;
  } catch (error) {
    if (error instanceof HoldfastError) throw error;
    throw invalidToken(whyInvalid(error));
  }
}

/** In words of ours: the library's own may come to quote a claim. */
function whyInvalid(error: unknown): string {
  if (error instanceof errors.JWTExpired) return 'The token has expired.';
  if (error instanceof errors.JWTClaimValidationFailed)
    return CLAIM_FAULTS[error.claim] ?? 'A claim of the token is not what it must be.';
  if (error instanceof errors.JOSEAlgNotAllowed) return 'The token is signed by an algorithm not taken here.';
  if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys)
    return 'The token names no key of its issuer.';
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'The signature of the token is wrong.';
  return 'The token is not a signed JWT.';
}

const CLAIM_FAULTS: Readonly<Record<string, string>> = {
  iss: 'The token is of another issuer.',
  aud: 'The token is for another audience.',
  nbf: 'The token is not valid yet.',
  exp: 'The token says no time of expiry.',
};

const invalidToken = (why: string) => new OAuthError(OAuthErrorCode.InvalidToken, why);

function withAndWithoutSlash(address: string): string[] {
  const bare = address.replace(/\/$/, '');
  return [bare, `${bare}/`];
}

/** Answers `oauth` itself. Throws `invalid_configuration` naming the first value that could let a forged token in. */
export function checkOAuth(oauth: OAuthSettings): OAuthSettings {
  const { issuer, resource, keySet, algorithms, clockToleranceSeconds, claims, scopes } = oauth;
  const url = 'an https: address (http: on loopback) without credentials, query and fragment';
  check('issuer', isIdentifierUrl(issuer), url);
  check('resource', isIdentifierUrl(resource), url);
  if ('url' in keySet) check('jwksUrl', isSecureUrl(keySet.url), url);
  else check('jwks', keySet.keys.length > 0, 'one key at least');
  check(
    'algorithms',
    algorithms.length > 0 && algorithms.every(isSignatureAlgorithm),
    `one or more of ${SIGNATURE_ALGORITHMS.join(', ')}`,
  );
  check('clockTolerance', clockToleranceSeconds >= 0 && clockToleranceSeconds <= 300, '0 to 300 seconds');
  for (const name of ['tenant', 'subject', 'roles'] as const)
    check(`${name}Claim`, isClaimName(claims[name]), 'the name of a claim, or a JSON pointer to it');
  check('scopes', scopes.every(isScope), 'scopes as RFC 6749 has them');
  return oauth;
}

function check(name: string, holds: boolean, expected: string): void {
  if (holds) return;
  throw new HoldfastError('invalid_configuration', `auth.oauth.${name} must be ${expected}.`, {
    details: { name: `auth.oauth.${name}`, expected },
  });
}
