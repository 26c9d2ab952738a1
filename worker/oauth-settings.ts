/** `auth.oauth`: the authorization server whose tokens the gateway takes (M7.1), and what of their claims is read. */
import { z } from 'zod';
import {
  isClaimName,
  isIdentifierUrl,
  isScope,
  isSecureUrl,
  isSignatureAlgorithm,
  SIGNATURE_ALGORITHMS,
} from '../src/contract/oauth-definition.ts';
import type { SignatureAlgorithm } from '../src/contract/oauth-definition.ts';
import { duration, setting, text, words } from './setting.ts';

const CLOCK_TOLERANCE_MS_MAX = 300_000;
const publicKey = z.looseObject({ kty: z.enum(['RSA', 'EC', 'OKP']) }).refine((key) => !('d' in key));
const PUBLIC_KEYS = z.object({ keys: z.array(publicKey).min(1).max(100) });

const claim = (name: 'tenant' | 'subject' | 'roles', fallback: string, meaning: string) =>
  setting({
    env: `HOLDFAST_OAUTH_${name.toUpperCase()}_CLAIM`,
    key: `auth.oauth.${name}Claim`,
    schema: text.refine(isClaimName),
    expected: 'the name of a claim, or a JSON pointer to it',
    fix: `for example \`${fallback}\`, or \`/realm_access/roles\` where it is nested`,
    meaning,
    defaultText: `\`${fallback}\``,
    default: () => fallback,
  });

export const OAUTH_SETTINGS = {
  oauthIssuer: setting({
    env: 'HOLDFAST_OAUTH_ISSUER',
    key: 'auth.oauth.issuer',
    schema: text.refine(isIdentifierUrl).nullable(),
    expected: 'an `https://…` address (`http://` on this machine) without query and fragment',
    fix: 'copy `issuer` from the authorization server’s own metadata, to the letter',
    meaning:
      'The authorization server whose tokens HTTP takes: what their `iss` must be. Needs the resource, and the keys or where they are published.',
    defaultText: 'none: `auth.tokens`, or anyone on this machine',
    default: () => null,
  }),
  oauthResource: setting({
    env: 'HOLDFAST_OAUTH_RESOURCE',
    key: 'auth.oauth.resource',
    schema: text.refine(isIdentifierUrl).nullable(),
    expected: 'an `https://…` address (`http://` on this machine) without query and fragment',
    fix: 'the address of `/mcp` as clients reach it, such as `https://tools.example.com/mcp`',
    meaning:
      'This gateway as a protected resource (RFC 9728). Clients ask for tokens for it; its host counts as one of `gateway.allowedHosts`.',
    defaultText: 'none',
    default: () => null,
  }),
  oauthJwksUrl: setting({
    env: 'HOLDFAST_OAUTH_JWKS_URL',
    key: 'auth.oauth.jwksUrl',
    schema: text.refine(isSecureUrl).nullable(),
    expected: 'an `https://…` address (`http://` on this machine)',
    fix: 'copy `jwks_uri` from the authorization server’s own metadata',
    meaning: 'Where its public keys are. Kept for ten minutes, and read again when a token names a new one.',
    defaultText: 'none',
    default: () => null,
  }),
  oauthJwks: setting({
    env: 'HOLDFAST_OAUTH_JWKS',
    key: 'auth.oauth.jwks',
    schema: z
      .union([z.string().transform(parsedJson), z.unknown()])
      .pipe(PUBLIC_KEYS)
      .nullable(),
    expected: 'a JWK set of public keys: `{"keys": […]}`',
    fix: 'use the address of the keys instead, unless they never change',
    meaning: 'The public keys themselves, instead of their address.',
    defaultText: 'none',
    default: () => null,
  }),
  oauthAudience: setting({
    env: 'HOLDFAST_OAUTH_AUDIENCE',
    key: 'auth.oauth.audience',
    schema: text.max(255).nullable(),
    expected: 'text of 1 to 255 characters',
    fix: 'leave it out, unless the authorization server names this gateway otherwise than by its address',
    meaning: 'What `aud` of a token must hold.',
    defaultText: 'the resource',
    default: () => null,
  }),
  oauthAlgorithms: setting({
    env: 'HOLDFAST_OAUTH_ALGORITHMS',
    key: 'auth.oauth.algorithms',
    schema: words(isSignatureAlgorithm, SIGNATURE_ALGORITHMS.length).transform(
      (names) => names as SignatureAlgorithm[],
    ),
    expected: `comma-separated, of ${SIGNATURE_ALGORITHMS.join(', ')}`,
    fix: 'name what the authorization server signs with; `none` and HMAC are never taken',
    meaning: 'The signature algorithms that are taken.',
    defaultText: '`RS256,PS256,ES256,EdDSA`',
    default: (): SignatureAlgorithm[] => ['RS256', 'PS256', 'ES256', 'EdDSA'],
  }),
  oauthClockToleranceMs: setting({
    env: 'HOLDFAST_OAUTH_CLOCK_TOLERANCE',
    key: 'auth.oauth.clockTolerance',
    schema: duration(0, CLOCK_TOLERANCE_MS_MAX),
    expected: 'a duration such as `5s`, at most `5m`',
    fix: 'set the clocks right and leave it out',
    meaning: 'How far the clocks of the authorization server and this machine may be apart.',
    defaultText: '`5s`',
    default: () => 5_000,
  }),
  oauthTenantClaim: claim('tenant', 'tenant', 'Whose tasks the caller’s are. A token without it is refused.'),
  oauthSubjectClaim: claim('subject', 'sub', 'Who the caller is. A token without it is refused.'),
  oauthRolesClaim: claim('roles', 'roles', 'The caller’s roles: a list, or words with spaces between them.'),
  oauthScopes: setting({
    env: 'HOLDFAST_OAUTH_SCOPES',
    key: 'auth.oauth.scopes',
    schema: z.union([z.array(z.never()).length(0), words(isScope, 100)]),
    expected: 'comma-separated scopes',
    fix: 'for example `mcp`; leave it out if tokens need none',
    meaning: 'Scopes (`scope` or `scp`) that every token must carry.',
    defaultText: 'none',
    default: (): string[] => [],
  }),
} as const;

/** What is no JSON stays text, which is no key set either. */
function parsedJson(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return 'no JSON';
  }
}
