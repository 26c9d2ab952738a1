/**
 * An authorization server as far as a resource server meets one: keys at an address of its own, and tokens signed by
 * them. `requests` counts who asked for the keys; `fail` has it answer 500.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, exportSPKI, generateKeyPair, SignJWT } from 'jose';
import type { CryptoKey, JWK, JWTPayload } from 'jose';

interface IssuerKey {
  publicKey: CryptoKey;
  privateKey: CryptoKey;
  jwk: JWK;
}

export interface TokenOptions {
  /** Which of its keys signs. Default: the newest. */
  kid?: string;
  /** What the header says instead. */
  header?: { alg?: string; kid?: string; typ?: string };
  claims?: JWTPayload & Record<string, unknown>;
  /** Claims to leave out. */
  without?: string[];
}

export class AuthorizationServer {
  readonly keys = new Map<string, IssuerKey>();
  requests = 0;
  fail = false;
  url = '';
  readonly #server = createServer((_request, response) => {
    this.requests += 1;
    if (this.fail) return void response.writeHead(500).end('out of order');
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(this.keySet));
  });

  static async start(): Promise<AuthorizationServer> {
    const server = new AuthorizationServer();
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server, 'listening');
    server.url = `http://127.0.0.1:${(server.#server.address() as AddressInfo).port}`;
    await server.addKey('first');
    return server;
  }

  get issuer(): string {
    return `${this.url}/realm`;
  }

  get jwksUrl(): string {
    return `${this.url}/keys`;
  }

  get keySet(): { keys: JWK[] } {
    return { keys: [...this.keys.values()].map(({ jwk }) => jwk) };
  }

  async addKey(kid: string, alg = 'ES256'): Promise<void> {
    const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
    const jwk = { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' };
    this.keys.set(kid, { publicKey, privateKey, jwk });
  }

  /** Good for an hour, for tenant `acme` and subject `ann`, unless told otherwise. */
  async token(
    audience: string,
    { kid, header = {}, claims = {}, without = [] }: TokenOptions = {},
  ): Promise<string> {
    const name = kid ?? [...this.keys.keys()].at(-1) ?? '';
    const key = this.key(name);
    const now = Math.floor(Date.now() / 1_000);
    const payload = {
      iss: this.issuer,
      aud: audience,
      sub: 'ann',
      tenant: 'acme',
      roles: ['buyer'],
      iat: now,
      exp: now + 3_600,
      ...claims,
    };
    const kept = Object.fromEntries(Object.entries(payload).filter(([claim]) => !without.includes(claim)));
    return new SignJWT(kept)
      .setProtectedHeader({ alg: key.jwk.alg ?? 'ES256', kid: name, ...header })
      .sign(key.privateKey);
  }

  /** Signed by HMAC, with what everyone knows as the secret. */
  async tokenByPublicKey(audience: string, claims: JWTPayload): Promise<string> {
    const secret = new TextEncoder().encode(await exportSPKI(this.key('first').publicKey));
    const now = Math.floor(Date.now() / 1_000);
    return new SignJWT({ iss: this.issuer, aud: audience, exp: now + 3_600, ...claims })
      .setProtectedHeader({ alg: 'HS256', kid: 'first' })
      .sign(secret);
  }

  key(kid: string): IssuerKey {
    const key = this.keys.get(kid);
    if (!key) throw new Error(`there is no key ${kid}`);
    return key;
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }
}
