/**
 * Whose tokens the gateway takes as an OAuth 2.1 resource server (M7.1): what may be configured, and the bounds of it
 * that configuration and gateway both check.
 */
import type { Duration } from './duration.ts';

/** In `holdfast.config.ts` under `auth.oauth`; docs/configuration.md has the variables, shapes and defaults. */
export interface OAuthDefinition {
  /** What `iss` of every token must equal. */
  issuer?: string;
  /** The address that clients reach `/mcp` under; what `aud` must hold unless `audience` says otherwise. */
  resource?: string;
  audience?: string;
  /** Where the issuer publishes its keys (RFC 7517). */
  jwksUrl?: string;
  /** The keys themselves instead; for tests, and for issuers that never rotate. */
  jwks?: { keys: object[] };
  algorithms?: string[];
  clockTolerance?: Duration;
  /** A claim by its name, or by a JSON pointer (`/realm_access/roles`) where it is nested. */
  tenantClaim?: string;
  subjectClaim?: string;
  rolesClaim?: string;
  /** Scopes that every token must carry. */
  scopes?: string[];
}

/** Signatures by a private key only: with HMAC, whoever can verify could also sign. */
export const SIGNATURE_ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const;
export type SignatureAlgorithm = (typeof SIGNATURE_ALGORITHMS)[number];

export const isSignatureAlgorithm = (name: string): name is SignatureAlgorithm =>
  (SIGNATURE_ALGORITHMS as readonly string[]).includes(name);

const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(['localhost', '::1', '[::1]']);
export const isLoopbackHost = (host: string): boolean =>
  LOOPBACK_HOSTS.has(host) || /^127(\.\d{1,3}){3}$/.test(host);

/** `https:`, on this machine also `http:`; without credentials and fragment. */
export function isSecureUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password, hash } = new URL(text);
  const isSecure = protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));
  return isSecure && [username, password, hash].every((part) => part === '');
}

/** One that names something, and is compared: without a query. */
export const isIdentifierUrl = (text: string): boolean => isSecureUrl(text) && !text.includes('?');

/** What can stand in a `WWW-Authenticate` header between quotes. */
export const isClaimName = (text: string): boolean => /^[\x21\x23-\x5b\x5d-\x7e]{1,255}$/.test(text);
/** RFC 6749, 3.3. */
export const isScope = (text: string): boolean => /^[\x21\x23-\x5b\x5d-\x7e]{1,255}$/.test(text);
