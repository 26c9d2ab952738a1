import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { HoldfastError } from '../../src/contract/error.ts';
import { loadConfig } from '../../worker/config.ts';
import { configurationReference } from '../../worker/configuration-reference.ts';
import { CONFIG } from '../../worker/settings.ts';

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'holdfast-config-'));
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

const ROOT = new URL('../../', import.meta.url).pathname;
const load = (env: Record<string, string> = {}, file?: string) =>
  loadConfig({ cwd, env, ...(file && { file }) });
const write = (name: string, text: string) => writeFileSync(join(cwd, name), text);

async function refusal(env: Record<string, string> = {}, file?: string): Promise<HoldfastError> {
  const error = await load(env, file).then(
    () => new Error('it was accepted'),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof Error) || error.name !== 'HoldfastError') throw error;
  return error as HoldfastError;
}

const action = (name: string, input = 'z.object({ id: z.string() })') => `
import { z } from '${ROOT}node_modules/zod/index.js';
import { defineAction, defineConfig, implementAction, sensitive } from '${ROOT}src/index.ts';
const contract = defineAction({
  name: '${name}', version: 1, description: 'a read', effect: 'safe',
  input: ${input}, output: z.object({}),
});
const action: unknown = implementAction(contract, { execute: async () => ({}) });
`;

describe('without anything set', () => {
  test('every default holds and points into the working directory', async () => {
    const config = await load();
    expect(config).toMatchObject({
      configFile: null,
      stateDir: join(cwd, '.holdfast'),
      databaseUrl: `sqlite:${join(cwd, '.holdfast', 'ledger.db')}`,
      port: 7400,
      taskQueue: 'holdfast',
      actions: [],
      encryptionKeys: [],
      hmacKey: null,
      shutdownGraceMs: 15_000,
      temporal: { namespace: 'default' },
    });
    expect(config.principal.tenant).toBe('local');
    expect(config.principal.subject).not.toBe('');
  });
});

describe('the file of the procedures', () => {
  const codeOf = async () => (await load()).procedures?.code;

  test('begins where the configuration is, and is the compiled one where there is no other', async () => {
    write(
      'holdfast.config.mjs',
      `export default { actions: [], procedures: { code: './procedures.ts', contracts: [] } };`,
    );
    expect(await codeOf()).toBe(join(cwd, 'procedures.ts'));
    write('procedures.js', '');
    expect(await codeOf()).toBe(join(cwd, 'procedures.js'));
    write('procedures.ts', '');
    expect(await codeOf()).toBe(join(cwd, 'procedures.ts'));
  });
});

describe('the environment', () => {
  test('wins over the file, which wins over the default', async () => {
    write(
      'holdfast.config.mjs',
      `export default { actions: [], port: 7501, taskQueue: 'from-file', worker: { shutdownGrace: '2s' } };`,
    );
    expect(await load()).toMatchObject({ port: 7501, taskQueue: 'from-file', shutdownGraceMs: 2_000 });
    expect(await load({ HOLDFAST_PORT: '7502' })).toMatchObject({ port: 7502, taskQueue: 'from-file' });
    expect(await load({ HOLDFAST_PORT: '' })).toMatchObject({ port: 7501 });
  });

  test('says who acts on this machine', async () => {
    const config = await load({
      HOLDFAST_TENANT: 'acme',
      HOLDFAST_SUBJECT: 'ann',
      HOLDFAST_ROLES: 'buyer, operator,',
    });
    expect(config.principal).toEqual({ tenant: 'acme', subject: 'ann', roles: ['buyer', 'operator'] });
  });

  test('may leave the encryption key to whoever keeps one with the state', async () => {
    const key = randomBytes(32).toString('base64');
    const asked: string[] = [];
    const keyOf = ({ stateDir }: { stateDir: string }) => (asked.push(stateDir), key);
    write('holdfast.config.mjs', `export default { actions: [], stateDir: 'kept' };`);
    expect((await loadConfig({ cwd, env: {}, keyOf })).encryptionKeys).toHaveLength(1);
    expect(asked).toEqual([join(cwd, 'kept')]);
    const env = { HOLDFAST_ENCRYPTION_KEY: randomBytes(32).toString('base64') };
    expect((await loadConfig({ cwd, env, keyOf })).encryptionKeys).toHaveLength(1);
    expect(asked).toHaveLength(1);
  });

  test('is read for Temporal the way Temporal’s own tools read it', async () => {
    const { temporal } = await load({
      TEMPORAL_ADDRESS: 'temporal.internal:7233',
      TEMPORAL_NAMESPACE: 'money',
    });
    expect(temporal.namespace).toBe('money');
    expect(temporal.connectionOptions.address).toBe('temporal.internal:7233');
  });

  test.each([
    ['HOLDFAST_PORT', '70000'],
    ['HOLDFAST_PORT', 'eighty'],
    ['HOLDFAST_DATABASE_URL', 'mysql://somewhere'],
    ['HOLDFAST_LOG_LEVEL', 'loud'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'carrier pigeon'],
    ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'carrier pigeon'],
    ['HOLDFAST_SHUTDOWN_GRACE', '15 seconds'],
    ['HOLDFAST_ACTIVITY_SLOTS', '0'],
    ['HOLDFAST_MAX_CACHED_WORKFLOWS', '1'],
    ['HOLDFAST_ENCRYPTION_KEY', 'short'],
    ['HOLDFAST_DEPLOYMENT', 'a.b'],
    ['HOLDFAST_BUILD_ID', 'two words'],
    ['HOLDFAST_VERSIONING', 'sometimes'],
    ['HOLDFAST_OAUTH_ISSUER', 'http://login.example.com'],
    ['HOLDFAST_OAUTH_RESOURCE', 'tools.example.com/mcp'],
    ['HOLDFAST_OAUTH_JWKS_URL', 'http://login.example.com/keys'],
    ['HOLDFAST_OAUTH_JWKS', 'no json'],
    ['HOLDFAST_OAUTH_JWKS', '{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}'],
    ['HOLDFAST_OAUTH_ALGORITHMS', 'RS256,HS256'],
    ['HOLDFAST_OAUTH_ALGORITHMS', 'none'],
    ['HOLDFAST_OAUTH_CLOCK_TOLERANCE', '1h'],
    ['HOLDFAST_OAUTH_TENANT_CLAIM', 'a "quoted" claim'],
    ['HOLDFAST_OAUTH_SCOPES', 'two words'],
  ])('%s=%s is refused by name, with the expected shape and the fix', async (name, value) => {
    const error = await refusal({ [name]: value });
    expect(error.code).toBe('invalid_configuration');
    expect(error.message).toContain(name);
    expect(error.details).toMatchObject({ name, expected: expect.any(String), fix: expect.any(String) });
  });

  test.each(Object.values(CONFIG))(
    '$env is refused by its name, and its key in the file by that, with shape and fix and without the value',
    async ({ env, key, expected, fix }) => {
      const wrong = '"'.repeat(5_000); // too long for any text, and of no other shape
      const isRefused = async (refused: Promise<HoldfastError>, name: string) => {
        const { code, message, details } = await refused;
        expect({ code, details }).toMatchObject({
          code: 'invalid_configuration',
          details: { name, expected, fix },
        });
        for (const part of [name, expected, fix]) expect(message).toContain(part);
        expect(message + JSON.stringify(details)).not.toMatch(/(\\?"){9}/);
      };
      await isRefused(refusal({ [env]: wrong }), env);
      if (key === null) return;
      const inFile = key.split('.').reduceRight<unknown>((value, name) => ({ [name]: value }), wrong);
      write('wrong.mjs', `export default ${JSON.stringify({ actions: [], ...(inFile as object) })};`);
      await isRefused(refusal({}, 'wrong.mjs'), key);
    },
  );

  test.each([
    ['TEMPORAL_CONFIG_FILE', { TEMPORAL_CONFIG_FILE: 'broken.toml' }],
    ['TEMPORAL_PROFILE', { TEMPORAL_PROFILE: 'nobody-wrote-it', TEMPORAL_CONFIG_FILE: 'empty.toml' }],
    ['TEMPORAL_TLS_CLIENT_CERT_PATH', { TEMPORAL_TLS_CLIENT_CERT_PATH: '/no/such/cert.pem' }],
  ])('%s is named where Temporal’s settings can not be read', async (name, given) => {
    write('broken.toml', '[profile.default');
    write('empty.toml', '');
    const env = { ...given } as Record<string, string>;
    if (env['TEMPORAL_CONFIG_FILE']) env['TEMPORAL_CONFIG_FILE'] = join(cwd, env['TEMPORAL_CONFIG_FILE']);
    expect((await refusal(env)).details).toMatchObject({
      name,
      expected: expect.any(String),
      fix: expect.any(String),
    });
  });

  test('makes a worker one build of a deployment, by both names or not at all [S3.3]', async () => {
    expect((await load()).deployment).toBeNull();
    const both = { HOLDFAST_DEPLOYMENT: 'money', HOLDFAST_BUILD_ID: '1.4.0+abc' };
    const deployment = { name: 'money', buildId: '1.4.0+abc', versioning: 'auto-upgrade' };
    expect(await load(both)).toMatchObject({ deployment });
    write(
      'holdfast.config.mjs',
      `export default { actions: [], worker: { deployment: 'money', versioning: 'pinned' } };`,
    );
    expect(await load({ HOLDFAST_BUILD_ID: 'b' })).toMatchObject({ deployment: { versioning: 'pinned' } });
    expect((await refusal()).message).toContain('HOLDFAST_BUILD_ID');
    rmSync(join(cwd, 'holdfast.config.mjs'));
    expect((await refusal({ HOLDFAST_BUILD_ID: 'b' })).message).toContain('HOLDFAST_DEPLOYMENT');
  });

  test('has all its wrong values named at once', async () => {
    const error = await refusal({ HOLDFAST_PORT: 'x', HOLDFAST_LOG_LEVEL: 'y' });
    expect(error.message).toMatch(/HOLDFAST_PORT[^]*HOLDFAST_LOG_LEVEL/);
    expect(error.details['issues']).toHaveLength(2);
  });

  test.each(['sqlite::memory:', 'sqlite:file:x?mode=memory'])(
    'may not name a ledger that dies with the process: %s [S10.1]',
    async (url) => {
      expect((await refusal({ HOLDFAST_DATABASE_URL: url })).code).toBe('ledger_unsuitable');
    },
  );

  test('never has the password of a wrong database address repeated', async () => {
    const error = await refusal({ HOLDFAST_DATABASE_URL: 'postgress://ann:hunter2@db/x' });
    expect(JSON.stringify([error.message, error.details])).not.toContain('hunter2');
  });
});

describe('an authorization server', () => {
  const env = {
    HOLDFAST_OAUTH_ISSUER: 'https://login.example.com/realm',
    HOLDFAST_OAUTH_RESOURCE: 'https://tools.example.com/mcp',
    HOLDFAST_OAUTH_JWKS_URL: 'https://login.example.com/keys?app=1',
  };
  const settings = {
    issuer: env.HOLDFAST_OAUTH_ISSUER,
    resource: env.HOLDFAST_OAUTH_RESOURCE,
    keySet: { url: env.HOLDFAST_OAUTH_JWKS_URL },
    algorithms: ['RS256', 'PS256', 'ES256', 'EdDSA'],
    clockToleranceSeconds: 5,
    claims: { tenant: 'tenant', subject: 'sub', roles: 'roles' },
    scopes: [],
  };

  test('is none unless configured, and has every default when it is [M7.1]', async () => {
    expect((await load()).oauth).toBeNull();
    expect((await load(env)).oauth).toEqual(settings);
  });

  test('may be configured in the file, which the environment wins over [M7.1]', async () => {
    write(
      'holdfast.config.mjs',
      `export default { actions: [], auth: { oauth: {
        issuer: 'https://login.example.com/realm', resource: 'https://in-the-file.example.com/mcp',
        jwks: { keys: [{ kty: 'OKP', crv: 'Ed25519', x: 'abc' }] }, algorithms: ['EdDSA'], clockTolerance: '1m',
        tenantClaim: 'org', rolesClaim: '/realm_access/roles', scopes: ['mcp'], audience: 'api://holdfast',
      } } };`,
    );
    const { HOLDFAST_OAUTH_RESOURCE } = env;
    expect((await load({ HOLDFAST_OAUTH_RESOURCE })).oauth).toEqual({
      ...settings,
      audience: 'api://holdfast',
      keySet: { keys: [{ kty: 'OKP', crv: 'Ed25519', x: 'abc' }] },
      algorithms: ['EdDSA'],
      clockToleranceSeconds: 60,
      claims: { tenant: 'org', subject: 'sub', roles: '/realm_access/roles' },
      scopes: ['mcp'],
    });
  });

  test('has everything that is missing, or there twice, named at once [M7.1]', async () => {
    const half = await refusal({ HOLDFAST_OAUTH_ISSUER: env.HOLDFAST_OAUTH_ISSUER });
    expect(half.code).toBe('invalid_configuration');
    expect(half.message).toMatch(/HOLDFAST_OAUTH_RESOURCE[^]*HOLDFAST_OAUTH_JWKS_URL/);
    const jwks = JSON.stringify({ keys: [{ kty: 'OKP' }] });
    expect((await refusal({ ...env, HOLDFAST_OAUTH_JWKS: jwks })).message).toContain('HOLDFAST_OAUTH_JWKS:');
    write(
      'holdfast.config.mjs',
      `export default { actions: [], auth: { tokens: [{ sha256: '${'ab'.repeat(32)}', tenant: 't', subject: 's', roles: [] }] } };`,
    );
    expect((await load()).oauth).toBeNull();
    expect((await refusal(env)).message).toContain('auth.tokens');
    write('neither.mjs', `export default { actions: [], auth: {} };`);
    expect((await refusal({}, 'neither.mjs')).message).toContain('auth: write either tokens or oauth');
    write('misspelt.mjs', `export default { actions: [], auth: { oauth: { isuer: 'x' } } };`);
    expect((await refusal({}, 'misspelt.mjs')).message).toContain('isuer');
  });
});

describe('the file', () => {
  test('may be TypeScript, with actions in it', async () => {
    write(
      'holdfast.config.ts',
      `${action('look')}\nexport default defineConfig({ actions: [action as never], taskQueue: 'typed' });`,
    );
    const config = await load();
    expect(config.taskQueue).toBe('typed');
    expect(config.actions.map(({ contract }) => contract.name)).toEqual(['look']);
    expect(config.configFile).toBe(join(cwd, 'holdfast.config.ts'));
  });

  test('is found through HOLDFAST_CONFIG and --config, the latter first', async () => {
    write('one.mjs', `export default { actions: [], port: 7601 };`);
    write('two.mjs', `export default { actions: [], port: 7602 };`);
    expect(await load({ HOLDFAST_CONFIG: 'one.mjs' })).toMatchObject({ port: 7601 });
    expect(await load({ HOLDFAST_CONFIG: 'one.mjs' }, 'two.mjs')).toMatchObject({ port: 7602 });
  });

  test('that was named must be there', async () => {
    const error = await refusal({ HOLDFAST_CONFIG: 'missing.ts' });
    expect(error.code).toBe('invalid_configuration');
    expect(error.message).toContain('missing.ts');
  });

  test('that throws is named with what it threw', async () => {
    write('holdfast.config.mjs', `throw new Error('the database module is missing');`);
    const error = await refusal();
    expect(error.code).toBe('invalid_configuration');
    expect(error.message).toContain('the database module is missing');
    expect(error.message).toContain('holdfast.config.mjs');
  });

  test('that awaits what never comes is given up, and named', async () => {
    write('holdfast.config.mjs', `await new Promise(() => undefined); export default { actions: [] };`);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const refused = refusal();
      while (vi.getTimerCount() === 0) await nextTurn();
      await vi.advanceTimersByTimeAsync(30_000);
      expect((await refused).message).toMatch(/holdfast\.config\.mjs[\s\S]*has not settled after 30 s/);
    } finally {
      vi.useRealTimers();
    }
  });

  test('with a misspelt key or a wrong value is refused', async () => {
    write('holdfast.config.mjs', `export default { actions: [], prot: 1 };`);
    const { message, details } = await refusal();
    expect(message).toContain('prot');
    expect(details).toMatchObject({ name: '(configuration)', fix: expect.any(String) });
    write('other.mjs', `export default { actions: [], port: 'x' };`);
    expect((await refusal({}, 'other.mjs')).details).toMatchObject({ name: 'port' });
  });

  test('with sensitive fields needs a key [S2.10]', async () => {
    write(
      'holdfast.config.ts',
      `${action('pay', 'z.object({ card: sensitive(z.string()) })')}\nexport default defineConfig({ actions: [action as never] });`,
    );
    const error = await refusal();
    expect(error.code).toBe('encryption_key_required');
    expect(error.message).toContain('pay');
    const key = randomBytes(32).toString('base64');
    const config = await load({ HOLDFAST_ENCRYPTION_KEY: key });
    expect(config.hmacKey).toHaveLength(32);
  });
});

test('the page of the configuration names every variable with its default', () => {
  const page = configurationReference();
  for (const { env, defaultText } of Object.values(CONFIG)) {
    expect(page).toContain(`\`${env}\``);
    expect(page).toContain(defaultText);
  }
  expect(page).toContain('TEMPORAL_ADDRESS');
});
