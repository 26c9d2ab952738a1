/**
 * RFC 9728: where a client without a token learns whose it needs. Public, like a health check: it comes before Host and
 * Origin, since web pages of any origin may be OAuth clients.
 */
import { toNodeHandler } from '@modelcontextprotocol/node';
import { oauthMetadataResponse } from '@modelcontextprotocol/server';
import type { AuthMetadataOptions } from '@modelcontextprotocol/server';
import { metadataUrlOf } from '../auth/oauth.ts';
import type { OAuthSettings } from '../auth/oauth.ts';
import type { HttpRoute } from './server.ts';

export function createOAuthMetadataRoute(oauth: OAuthSettings): HttpRoute {
  const { href, pathname } = new URL(metadataUrlOf(oauth));
  const options: AuthMetadataOptions = {
    // Of the authorization server no more is known here, and only this is served.
    oauthMetadata: { issuer: oauth.issuer } as AuthMetadataOptions['oauthMetadata'],
    resourceServerUrl: new URL(oauth.resource),
    ...(oauth.scopes.length > 0 && { scopesSupported: oauth.scopes }),
    dangerouslyAllowInsecureIssuerUrl: true, // checked by `checkOAuth`, for every form of loopback
  };
  const document = toNodeHandler({
    fetch: ({ method, headers }) => {
      const response = oauthMetadataResponse(new Request(href, { method, headers }), options);
      if (!response) throw new Error('the SDK serves metadata at the address that it gives');
      return Promise.resolve(response);
    },
  });
  return {
    path: pathname,
    handle: (request, response) => document(request as Parameters<typeof document>[0], response),
  };
}
