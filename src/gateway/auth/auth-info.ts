/** The caller on their way through the SDK: a principal in `extra`, and never the token. */
import type { AuthInfo } from '@modelcontextprotocol/server';
import type { Principal } from '../../task/plan.ts';

export const authInfoOf = (
  principal: Principal,
  { scopes, expiresAt }: { scopes: string[]; expiresAt: number },
): AuthInfo => ({ token: '', clientId: principal.subject, scopes, expiresAt, extra: { principal } });

/** Put there for every request that was authenticated; no other gets as far as the MCP server. */
export function principalOf(authInfo: AuthInfo | undefined): Principal {
  const principal = authInfo?.extra?.principal as Principal | undefined;
  if (!principal) throw new Error('an unauthenticated request reached the MCP server');
  return principal;
}
