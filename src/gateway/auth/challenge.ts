/** The `WWW-Authenticate` of RFC 6750 and RFC 9728. */

export interface Challenge {
  error?: string | undefined;
  description?: string | undefined;
  scopes: readonly string[];
  resourceMetadataUrl: string | undefined;
}

export function challenge({ error, description, scopes, resourceMetadataUrl }: Challenge): string {
  const parameters = {
    realm: 'holdfast',
    error,
    error_description: description,
    scope: scopes.length > 0 ? scopes.join(' ') : undefined,
    resource_metadata: resourceMetadataUrl,
  };
  const written = Object.entries(parameters)
    .filter((entry): entry is [string, string] => entry[1] !== undefined)
    .map(([name, value]) => `${name}="${value.replaceAll(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, '?')}"`);
  return `Bearer ${written.join(', ')}`;
}
