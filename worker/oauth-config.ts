/** The gateway's OAuth settings out of the configuration: all that they need, or none of them. */
import type { HoldfastConfig } from '../src/contract/define-config.ts';
import type { SignatureAlgorithm } from '../src/contract/oauth-definition.ts';
import { configurationError } from './configuration-error.ts';
import type { ConfigurationIssue } from './configuration-error.ts';
import { OAUTH_SETTINGS } from './oauth-settings.ts';
import type { SettingValue } from './settings.ts';

export interface OAuthConfig {
  issuer: string;
  resource: string;
  audience?: string;
  keySet: { url: string } | { keys: object[] };
  algorithms: SignatureAlgorithm[];
  clockToleranceSeconds: number;
  claims: { tenant: string; subject: string; roles: string };
  scopes: string[];
}

export type OAuthSettingValues = { [Name in keyof typeof OAUTH_SETTINGS]: SettingValue<Name> };

/** Null: no authorization server. Throws `invalid_configuration` naming everything that is missing or there twice. */
export function oauthOf(values: OAuthSettingValues, file: HoldfastConfig): OAuthConfig | null {
  const { oauthIssuer: issuer, oauthResource: resource, oauthJwksUrl: url, oauthJwks: jwks } = values;
  if (issuer === null && resource === null && url === null && jwks === null && !file.auth?.oauth) return null;
  const issues: ConfigurationIssue[] = [];
  const wrong = (name: keyof typeof OAUTH_SETTINGS, problem: string): void => {
    const { env, expected, fix } = OAUTH_SETTINGS[name];
    issues.push({ name: env, problem, expected, fix });
  };
  if (issuer === null) wrong('oauthIssuer', 'it is not set, and OAuth is configured');
  if (resource === null) wrong('oauthResource', 'it is not set, and OAuth is configured');
  if (url === null && jwks === null) wrong('oauthJwksUrl', 'it is not set, and OAuth is configured');
  if (url !== null && jwks !== null) wrong('oauthJwks', 'the address of the keys is there too');
  if (file.auth?.tokens) wrong('oauthIssuer', '`auth.tokens` is there too, and a gateway takes one kind');
  const [first, ...others] = issues;
  if (first) throw configurationError([first, ...others]);
  if (issuer === null || resource === null) throw new Error('both are there, or an issue says so');
  return {
    issuer,
    resource,
    ...(values.oauthAudience !== null && { audience: values.oauthAudience }),
    keySet: url !== null ? { url } : { keys: jwks?.keys ?? [] },
    algorithms: values.oauthAlgorithms,
    clockToleranceSeconds: values.oauthClockToleranceMs / 1_000,
    claims: {
      tenant: values.oauthTenantClaim,
      subject: values.oauthSubjectClaim,
      roles: values.oauthRolesClaim,
    },
    scopes: values.oauthScopes,
  };
}
