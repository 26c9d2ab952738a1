/**
 * Who may call over HTTP (M7.1): anyone on this machine, or who holds a configured bearer token.
 *
 * Guarantees: without tokens only loopback addresses are bound; tokens are kept and compared as SHA-256 hashes in
 * constant time; tenant, subject and roles come from the token alone. Does not: expire or issue tokens. OAuth comes in
 * at `TokenVerifier`, which is the SDK's.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { OAuthError, OAuthErrorCode, verifyBearerToken } from '@modelcontextprotocol/server';
import type { AuthInfo } from '@modelcontextprotocol/server';
import { HoldfastError } from '../contract/error.ts';
import { LIMITS } from '../contract/limits.ts';
import { isLongerThan } from '../contract/text.ts';
import type { Principal } from '../task/plan.ts';

export interface StaticToken {
  /** Hex SHA-256 of the token (`printf %s TOKEN | sha256sum`); the token itself is never configured. */
  sha256: string;
  tenant: string;
  subject: string;
  roles?: string[];
}

export type GatewayAuth =
  /** No token; HTTP binds loopback addresses only, and everyone there is `principal`. */
  | { kind: 'loopback'; principal: Principal }
  /** HTTP takes these tokens, on any address. stdio has no tokens: whoever started the process is `stdioPrincipal`. */
  | { kind: 'tokens'; tokens: StaticToken[]; stdioPrincipal?: Principal };

export type Authenticated = { ok: true; principal: Principal } | { ok: false; wwwAuthenticate: string };

export type Authenticate = (authorization: string | undefined) => Promise<Authenticated>;

/** Throws `invalid_configuration` for a malformed or repeated token. */
export function createAuthenticate(auth: GatewayAuth): Authenticate {
  if (auth.kind === 'loopback') return () => Promise.resolve({ ok: true, principal: auth.principal });
  const known = auth.tokens.map(checkToken);
  if (known.length === 0) throw invalidTokens('auth.tokens is empty: nobody could call.');
  if (new Set(known.map((token) => token.hash.toString('hex'))).size < known.length)
    throw invalidTokens('auth.tokens holds one token twice.');
  const verifier = { verifyAccessToken: (token: string) => verify(known, token) };
  return async (authorization) => {
    try {
      const { extra } = await verifyBearerToken(authorization, { verifier });
      return { ok: true, principal: extra?.principal as Principal };
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error;
      const failure = authorization === undefined ? '' : ', error="invalid_token"';
      return { ok: false, wwwAuthenticate: `Bearer realm="holdfast"${failure}` };
    }
  };
}

interface KnownToken {
  hash: Buffer;
  principal: Principal;
}

/** Every known hash is compared, whichever matches: the time says nothing about any of them. */
function verify(known: KnownToken[], token: string): Promise<AuthInfo> {
  const presented = createHash('sha256').update(token, 'utf8').digest();
  let match: KnownToken | null = null;
  for (const each of known) if (timingSafeEqual(each.hash, presented)) match = each;
  if (!match) return Promise.reject(new OAuthError(OAuthErrorCode.InvalidToken, 'unknown token'));
  const { principal } = match;
  return Promise.resolve({
    token: '',
    clientId: principal.subject,
    scopes: principal.roles,
    expiresAt: Number.MAX_SAFE_INTEGER,
    extra: { principal },
  });
}

function checkToken({ sha256, tenant, subject, roles = [] }: StaticToken, index: number): KnownToken {
  if (!/^[0-9a-f]{64}$/i.test(sha256))
    throw invalidTokens(`auth.tokens[${index}].sha256 must be 64 hex digits.`);
  const longest = LIMITS.identityLengthMax.value;
  const isIdentity = (value: unknown) =>
    typeof value === 'string' && value !== '' && !isLongerThan(value, longest);
  if (![tenant, subject, ...roles].every(isIdentity)) {
    throw invalidTokens(
      `auth.tokens[${index}] needs tenant, subject and roles of 1 to ${longest} characters.`,
    );
  }
  return { hash: Buffer.from(sha256, 'hex'), principal: { tenant, subject, roles: [...roles] } };
}

const invalidTokens = (message: string) =>
  new HoldfastError('invalid_configuration', message, { details: { name: 'auth.tokens' } });

const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '::1', '[::1]']);
export const isLoopbackHost = (host: string): boolean =>
  LOOPBACK_HOSTS.has(host) || /^127(\.\d{1,3}){3}$/.test(host);
const WILDCARD_HOSTS: ReadonlySet<string> = new Set(['0.0.0.0', '::', '[::]', '']);

/**
 * The `Host` names a server bound to `host` answers to: loopback's, its own, and those configured. Throws
 * `invalid_configuration` for a reachable address without tokens, and for a wildcard address without configured names.
 */
export function hostNames(auth: GatewayAuth, host: string, allowedHosts: readonly string[]): string[] {
  const refuse = (name: string, message: string) =>
    new HoldfastError('invalid_configuration', message, { details: { name, host } });
  if (auth.kind === 'loopback' && !isLoopbackHost(host)) {
    throw refuse(
      'auth',
      `Refusing to listen on ${host || 'every address'} without authentication. Configure auth.tokens, or listen on 127.0.0.1.`,
    );
  }
  if (WILDCARD_HOSTS.has(host) && allowedHosts.length === 0) {
    throw refuse(
      'http.allowedHosts',
      `Listening on every address needs http.allowedHosts: the names under which clients reach this gateway.`,
    );
  }
  const own = WILDCARD_HOSTS.has(host)
    ? []
    : [host.includes(':') && !host.startsWith('[') ? `[${host}]` : host];
  return [...new Set(['localhost', '127.0.0.1', '[::1]', ...own, ...allowedHosts])];
}
