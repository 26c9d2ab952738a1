/** The gateway as an OAuth 2.1 resource server, against a real server of keys, and tokens that want in. */
import { UnsecuredJWT } from 'jose';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { gatewayOf, listen } from '../../src/cli/serve-gateway.ts';
import type { HoldfastClient } from '../../src/client/index.ts';
import type { OAuthSettings } from '../../src/gateway/index.ts';
import { createLogger, loadConfig } from '../../worker/index.ts';
import { createMetrics } from '../../worker/metrics.ts';
import { AuthorizationServer } from '../support/authorization-server.ts';
import type { TokenOptions } from '../support/authorization-server.ts';
import { drivenGateway } from '../support/driven-gateway.ts';
import type { DrivenGateway } from '../support/driven-gateway.ts';
import { answerOf, messagesOf, post } from '../support/mcp-messages.ts';
import type { RawMessage } from '../support/mcp-messages.ts';

const RESOURCE = 'https://tools.example.com/mcp';
const METADATA = 'https://tools.example.com/.well-known/oauth-protected-resource/mcp';
const TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
const transfer = { method: 'tools/call', params: { name: 'transfer', arguments: { to: 'bob', amount: 5 } } };

let issuer: AuthorizationServer;
let driven: DrivenGateway;
let base: string;
const newLog = () => ({ info: vi.fn<Write>(), warn: vi.fn<Write>(), error: vi.fn<Write>() });
type Write = (fields: object, message: string) => void;
let log: ReturnType<typeof newLog>;

const settings = (change: Partial<OAuthSettings> = {}): OAuthSettings => ({
  issuer: issuer.issuer,
  resource: RESOURCE,
  keySet: { url: issuer.jwksUrl },
  algorithms: ['ES256', 'RS256'],
  clockToleranceSeconds: 5,
  claims: { tenant: 'tenant', subject: 'sub', roles: 'roles' },
  scopes: [],
  ...change,
});

async function serve(change: Partial<OAuthSettings> = {}): Promise<void> {
  log = newLog();
  driven = drivenGateway({
    auth: { kind: 'oauth', oauth: settings(change) },
    log,
    limits: { inlineWaitMs: 0 },
  });
  driven.client.immediate.set('transfer', () => ({ status: 'completed' }));
  base = (await driven.gateway.serveHttp({ port: 0 })).url;
}

beforeEach(async () => {
  issuer = await AuthorizationServer.start();
});
afterEach(async () => {
  vi.useRealTimers();
  await driven.gateway.close();
  await issuer.close();
});

const call = (token: string | null, message: RawMessage = transfer) =>
  post(`${base}/mcp`, message, { headers: token === null ? {} : { authorization: `Bearer ${token}` } });
const token = (options?: TokenOptions) => issuer.token(RESOURCE, options);
const inSeconds = (seconds: number) => Math.floor(Date.now() / 1_000) + seconds;

/** Everything but the status line that anyone could read. */
async function whatWasSaid(response: Response): Promise<string> {
  return JSON.stringify([
    await response.text(),
    [...response.headers],
    Object.values(log).map((write) => write.mock.calls.map(([fields, message]) => [String(message), fields])),
  ]);
}

describe('a token of the configured issuer', () => {
  it('is listened with for as long as it is good: the listen then ends, the task goes on [M7.1] [M2.5]', async () => {
    await serve({ clockToleranceSeconds: 0 });
    driven.client.immediate.delete('transfer');
    const capabilities = TASKS;
    const { result = {} } = await answerOf(await call(await token(), { ...transfer, capabilities }));
    const notifications = { taskIds: [result.taskId] };
    const listen = { method: 'subscriptions/listen', params: { notifications }, capabilities };
    const said = await messagesOf(await call(await token({ claims: { exp: inSeconds(3) } }), listen));
    expect(said).toMatchObject([
      { params: { notifications } },
      { method: 'notifications/tasks', params: { taskId: result.taskId, status: 'working' } },
      { id: 1, result: { resultType: 'complete' } },
    ]);
    expect(driven.client).toMatchObject({ subscribers: 0, openTasks: 1, cancels: [] });
  });

  it('lets in whom its claims name, and nothing else does [M7.1]', async () => {
    await serve();
    expect((await answerOf(await call(await token()))).result).toHaveProperty('content');
    expect(driven.client.starts[0]?.principal).toEqual({ tenant: 'acme', subject: 'ann', roles: ['buyer'] });
  });

  it('is taken for this resource among other audiences, with or without a slash [M7.1]', async () => {
    await serve();
    for (const aud of [`${RESOURCE}/`, ['https://other.example', RESOURCE]])
      expect((await call(await token({ claims: { aud } }))).status).toBe(200);
  });

  it('has its tenant, subject and roles read where the configuration says [M7.1]', async () => {
    await serve({
      claims: { tenant: 'https://acme.example/org', subject: 'oid', roles: '/realm_access/roles' },
      audience: 'api://holdfast',
    });
    const claims = {
      aud: 'api://holdfast',
      'https://acme.example/org': 'globex',
      oid: 'u-1',
      realm_access: { roles: 'operator buyer' },
    };
    expect((await call(await token({ claims }))).status).toBe(200);
    expect(driven.client.starts[0]?.principal).toEqual({
      tenant: 'globex',
      subject: 'u-1',
      roles: ['operator', 'buyer'],
    });
  });

  it('is verified by inline keys just as well [M7.1]', async () => {
    await serve({ keySet: issuer.keySet });
    expect((await call(await token())).status).toBe(200);
    expect((await call(`${await token()}x`)).status).toBe(401);
    expect(issuer.requests).toBe(0);
  });

  it('shows the tasks of its own tenant and of no other [M2.6] [M7.1]', async () => {
    await serve();
    driven.client.immediate.delete('transfer');
    const started = await answerOf(await call(await token(), { ...transfer, capabilities: TASKS }));
    const taskId = started.result?.taskId as string;
    const get = async (id: string, by: TokenOptions) =>
      answerOf(
        await call(await token(by), { method: 'tasks/get', params: { taskId: id }, capabilities: TASKS }),
      );
    expect((await get(taskId, {})).result).toMatchObject({ taskId });
    const foreign = await get(taskId, { claims: { tenant: 'globex' } });
    expect(foreign.error).toEqual({ code: -32602, message: 'task not found' });
    expect(await get('task_nobody_has', { claims: { tenant: 'globex' } })).toEqual(foreign);
  });
});

describe('what is refused with 401', () => {
  const hostile: [string, () => Promise<string>, string][] = [
    ['the algorithm none', () => Promise.resolve(unsecured()), 'algorithm|signed JWT'],
    [
      'HMAC with the public key as its secret',
      () => issuer.tokenByPublicKey(RESOURCE, { sub: 'secret-subject', tenant: 'secret-tenant' }),
      'algorithm',
    ],
    ['another audience', () => token({ claims: { aud: 'https://other.example/mcp' } }), 'audience'],
    ['no audience', () => token({ without: ['aud'] }), 'audience'],
    ['another issuer', () => token({ claims: { iss: 'https://evil.example' } }), 'issuer'],
    ['an expiry past the tolerance', () => token({ claims: { exp: inSeconds(-6) } }), 'expired'],
    ['no expiry', () => token({ without: ['exp'] }), 'expiry'],
    ['a beginning in the future', () => token({ claims: { nbf: inSeconds(60) } }), 'not valid yet'],
    ['an unknown key', () => token({ header: { kid: 'nobody' } }), 'key'],
    ['a forged signature', async () => forged(await token()), 'signature'],
    ['a huge size', () => token({ claims: { padding: 'x'.repeat(9_000) } }), 'too long'],
    ['no JWT in it', () => Promise.resolve('guess'), 'signed JWT'],
  ];

  it.each(hostile)('a token with %s, and nothing of it is repeated [M7.1]', async (_what, make, why) => {
    await serve();
    const given = await make();
    const refused = await call(given);
    expect(refused.status).toBe(401);
    const header = refused.headers.get('www-authenticate') ?? '';
    expect(header).toMatch(/^Bearer realm="holdfast", error="invalid_token", error_description="/);
    expect(header).toMatch(new RegExp(why));
    expect(header).toContain(`resource_metadata="${METADATA}"`);
    const said = await whatWasSaid(refused);
    expect(said).toContain('unauthorized');
    for (const secret of [given, 'secret-', 'evil.example', 'other.example', 'nobody'])
      expect(said).not.toContain(secret);
    expect(driven.client.starts).toEqual([]);
  });

  it('no token at all: told where to get one, and no error [M7.1]', async () => {
    await serve();
    const refused = await call(null);
    expect(refused.status).toBe(401);
    expect(refused.headers.get('www-authenticate')).toBe(
      `Bearer realm="holdfast", resource_metadata="${METADATA}"`,
    );
  });

  it('a clock a little ahead or behind is forgiven, as far as configured [M7.1]', async () => {
    await serve({ clockToleranceSeconds: 30 });
    expect((await call(await token({ claims: { exp: inSeconds(-20) } }))).status).toBe(200);
    expect((await call(await token({ claims: { nbf: inSeconds(20) } }))).status).toBe(200);
    expect((await call(await token({ claims: { exp: inSeconds(-40) } }))).status).toBe(401);
  });

  const unsecured = () =>
    new UnsecuredJWT({ tenant: 'secret-tenant', sub: 'secret-subject' })
      .setIssuer(issuer.issuer)
      .setAudience(RESOURCE)
      .setExpirationTime('1h')
      .encode();
  const forged = (jwt: string) => {
    const [header, , signature] = jwt.split('.');
    const body = { iss: issuer.issuer, aud: RESOURCE, sub: 'secret-subject', tenant: 'secret-tenant' };
    const claims = Buffer.from(JSON.stringify({ ...body, exp: inSeconds(60) })).toString('base64url');
    return `${header}.${claims}.${signature}`;
  };
});

describe('what is refused with 403', () => {
  it.each([
    ['no tenant', { without: ['tenant'] }, 'tenant'],
    ['a tenant that is too long', { claims: { tenant: 'secret-'.repeat(50) } }, 'tenant'],
    ['an empty tenant', { claims: { tenant: '' } }, 'tenant'],
    ['a tenant that is a list', { claims: { tenant: ['secret-a'] } }, 'tenant'],
    ['a subject with U+0000', { claims: { sub: 'secret-\0' } }, 'sub'],
    ['too many roles', { claims: { roles: Array.from({ length: 101 }, (_, i) => `secret-${i}`) } }, 'roles'],
    ['roles that are no text', { claims: { roles: [{ name: 'secret-role' }] } }, 'roles'],
  ] as [string, TokenOptions, string][])(
    'a genuine token with %s, by the name of the claim [M7.1]',
    async (_what, options, claim) => {
      await serve();
      const refused = await call(await token(options));
      expect(refused.status).toBe(403);
      expect(refused.headers.get('www-authenticate')).toContain(`resource_metadata="${METADATA}"`);
      const said = await whatWasSaid(refused.clone());
      expect(said).not.toContain('secret-');
      expect(await answerOf(refused)).toMatchObject({
        error: { data: { code: 'forbidden', details: { claim } } },
      });
      expect(driven.client.starts).toEqual([]);
    },
  );

  it('a token without a required scope, by the scopes [M7.1]', async () => {
    await serve({ scopes: ['mcp'] });
    const refused = await call(await token({ claims: { scope: 'openid' } }));
    expect(refused.status).toBe(403);
    expect(refused.headers.get('www-authenticate')).toMatch(/error="insufficient_scope".* scope="mcp"/);
    expect(await answerOf(refused)).toMatchObject({
      error: { data: { code: 'forbidden', details: { scopes: ['mcp'] } } },
    });
    expect((await call(await token({ claims: { scope: 'openid mcp' } }))).status).toBe(200);
    expect((await call(await token({ claims: { scp: ['mcp'] } }))).status).toBe(200);
  });
});

describe('the keys', () => {
  it('are fetched once for many calls, and again when a token names a new one [M7.1]', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    await serve();
    for (let n = 0; n < 5; n += 1) expect((await call(await token())).status).toBe(200);
    expect(issuer.requests).toBe(1);
    await issuer.addKey('second', 'RS256');
    expect((await call(await token())).status).toBe(401); // asked a moment ago
    expect(issuer.requests).toBe(1);
    vi.setSystemTime(Date.now() + 6_000);
    expect((await call(await token())).status).toBe(200);
    expect((await call(await token({ kid: 'first' }))).status).toBe(200);
    expect(issuer.requests).toBe(2);
    issuer.keys.delete('first');
    vi.setSystemTime(Date.now() + 11 * 60_000);
    expect((await call(await token())).status).toBe(200);
    expect(issuer.requests).toBe(3);
  });

  it('that can not be fetched are 503 with Retry-After, not 401, and one request a second [M7.1]', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    issuer.fail = true;
    await serve();
    for (let n = 0; n < 5; n += 1) {
      const refused = await call(await token());
      expect(refused.status).toBe(503);
      expect(refused.headers.get('retry-after')).toBe('2');
      expect(await answerOf(refused)).toMatchObject({ error: { data: { code: 'auth_unavailable' } } });
    }
    expect(issuer.requests).toBe(1);
    expect(log.warn).toHaveBeenCalledTimes(1);
    issuer.fail = false;
    vi.setSystemTime(Date.now() + 1_001);
    expect((await call(await token())).status).toBe(200);
  });

  it('that are known go on to verify while their server is away [M7.1]', async () => {
    await serve();
    expect((await call(await token())).status).toBe(200);
    issuer.fail = true;
    expect((await call(await token())).status).toBe(200);
  });
});

describe('a process that is configured by its environment', () => {
  it('takes these tokens and names the metadata [M7.1]', async () => {
    await serve(); // closed after the test
    const config = await loadConfig({
      cwd: import.meta.dirname,
      env: {
        HOLDFAST_PORT: '0',
        HOLDFAST_OAUTH_ISSUER: issuer.issuer,
        HOLDFAST_OAUTH_RESOURCE: RESOURCE,
        HOLDFAST_OAUTH_JWKS_URL: issuer.jwksUrl,
      },
    });
    const client = driven.client as unknown as HoldfastClient;
    const metrics = createMetrics();
    const gateway = gatewayOf(config, { client, log: createLogger({ level: 'silent' }), metrics });
    try {
      const check = () => Promise.resolve({ engine: true, ledger: true, worker: null });
      base = await listen(gateway, config, { check, metrics });
      expect((await call(null)).headers.get('www-authenticate')).toContain(METADATA);
      expect((await call(await token(), { method: 'tools/list' })).status).toBe(200);
    } finally {
      await gateway.close();
    }
  });
});

describe('the metadata of the resource', () => {
  it('is served to anyone by RFC 9728, and names issuer and resource [M7.1]', async () => {
    await serve({ scopes: ['mcp'] });
    const url = `${base}/.well-known/oauth-protected-resource/mcp`;
    const response = await fetch(url, { headers: { origin: 'https://a-client.example' } });
    expect(response.status).toBe(200);
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
    expect(await response.json()).toEqual({
      resource: RESOURCE,
      authorization_servers: [issuer.issuer],
      scopes_supported: ['mcp'],
    });
    expect((await fetch(url, { method: 'POST' })).status).toBe(405);
    expect((await fetch(`${base}/.well-known/oauth-authorization-server`)).status).toBe(404);
  });
});

describe('a configuration that could let a forged token in', () => {
  it.each([
    ['issuer', { issuer: 'http://login.example.com' }],
    ['resource', { resource: 'http://tools.example.com/mcp' }],
    ['resource', { resource: 'https://user:pass@tools.example.com/mcp' }],
    ['jwksUrl', { keySet: { url: 'http://login.example.com/keys' } }],
    ['jwks', { keySet: { keys: [] } }],
    ['algorithms', { algorithms: ['HS256'] }],
    ['algorithms', { algorithms: ['none'] }],
    ['algorithms', { algorithms: [] }],
    ['clockTolerance', { clockToleranceSeconds: 3_600 }],
    ['tenantClaim', { claims: { tenant: '', subject: 'sub', roles: 'roles' } }],
  ] as unknown as [string, Partial<OAuthSettings>][])(
    'is refused at the start: %s %j [M7.1]',
    async (name, change) => {
      await serve(); // closed after the test
      expect(() => drivenGateway({ auth: { kind: 'oauth', oauth: settings(change) } })).toThrow(
        expect.objectContaining({
          code: 'invalid_configuration',
          details: expect.objectContaining({ name: `auth.oauth.${name}` }),
        }),
      );
    },
  );
});
