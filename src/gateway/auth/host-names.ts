/** The `Host` names that a gateway answers to, and the addresses it may be bound to. */
import { HoldfastError } from '../../contract/error.ts';
import { isLoopbackHost } from '../../contract/oauth-definition.ts';
import type { GatewayAuth } from './authenticate.ts';

const WILDCARD_HOSTS: ReadonlySet<string> = new Set(['0.0.0.0', '::', '[::]', '']);

/**
 * Of a server bound to `host`: loopback's, its own, that of the OAuth resource, and those configured. Throws
 * `invalid_configuration` for a reachable address without tokens, and for a wildcard address under no name.
 */
export function hostNames(auth: GatewayAuth, host: string, allowedHosts: readonly string[]): string[] {
  const refuse = (name: string, message: string) =>
    new HoldfastError('invalid_configuration', message, { details: { name, host } });
  if (auth.kind === 'loopback' && !isLoopbackHost(host)) {
    throw refuse(
      'auth',
      `Refusing to listen on ${host || 'every address'} without authentication. Configure auth.oauth or auth.tokens, or listen on 127.0.0.1.`,
    );
  }
  const named =
    auth.kind === 'oauth' ? [new URL(auth.oauth.resource).hostname, ...allowedHosts] : allowedHosts;
  if (WILDCARD_HOSTS.has(host) && named.length === 0) {
    throw refuse(
      'gateway.allowedHosts',
      `Listening on every address needs \`gateway.allowedHosts\`: the names, without port, under which clients reach this gateway. Write them into the configuration, or set HOLDFAST_HOST to one address.`,
    );
  }
  const own = WILDCARD_HOSTS.has(host)
    ? []
    : [host.includes(':') && !host.startsWith('[') ? `[${host}]` : host];
  return [...new Set(['localhost', '127.0.0.1', '[::1]', ...own, ...named])];
}
