/** Bearer tokens that are configured as their SHA-256 hashes, and compared as hashes in constant time. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { OAuthError, OAuthErrorCode } from '@modelcontextprotocol/server';
import type { AuthInfo, OAuthTokenVerifier } from '@modelcontextprotocol/server';
import { HoldfastError } from '../../contract/error.ts';
import { isIdentity } from '../../contract/ids.ts';
import { LIMITS } from '../../contract/limits.ts';
import type { Principal } from '../../task/plan.ts';
import { authInfoOf } from './auth-info.ts';

export interface StaticToken {
  /** Hex SHA-256 of the token (`printf %s TOKEN | sha256sum`); the token itself is never configured. */
  sha256: string;
  tenant: string;
  subject: string;
  roles?: string[];
}

interface KnownToken {
  hash: Buffer;
  principal: Principal;
}

/** Throws `invalid_configuration` for no tokens, and for a malformed or repeated one. */
export function staticTokenVerifier(tokens: readonly StaticToken[]): OAuthTokenVerifier {
  const known = tokens.map(checkToken);
  if (known.length === 0) throw invalidTokens('auth.tokens is empty: nobody could call.');
  if (new Set(known.map((token) => token.hash.toString('hex'))).size < known.length)
    throw invalidTokens('auth.tokens holds one token twice.');
  return { verifyAccessToken: (token) => verify(known, token) };
}

/** Every known hash is compared, whichever matches: the time says nothing about any of them. */
function verify(known: KnownToken[], token: string): Promise<AuthInfo> {
  const presented = createHash('sha256').update(token, 'utf8').digest();
  let match: KnownToken | null = null;
  for (const each of known) if (timingSafeEqual(each.hash, presented)) match = each;
  if (!match)
    return Promise.reject(new OAuthError(OAuthErrorCode.InvalidToken, 'The token is unknown here.'));
  return Promise.resolve(authInfoOf(match.principal, { scopes: [], expiresAt: Number.MAX_SAFE_INTEGER }));
}

function checkToken({ sha256, tenant, subject, roles = [] }: StaticToken, index: number): KnownToken {
  if (!/^[0-9a-f]{64}$/i.test(sha256))
    throw invalidTokens(`auth.tokens[${index}].sha256 must be 64 hex digits.`);
  if (![tenant, subject, ...roles].every(isIdentity)) {
    throw invalidTokens(
      `auth.tokens[${index}] needs tenant, subject and roles of 1 to ${LIMITS.identityLengthMax.value} characters.`,
    );
  }
  return { hash: Buffer.from(sha256, 'hex'), principal: { tenant, subject, roles: [...roles] } };
}

const invalidTokens = (message: string) =>
  new HoldfastError('invalid_configuration', message, { details: { name: 'auth.tokens' } });
